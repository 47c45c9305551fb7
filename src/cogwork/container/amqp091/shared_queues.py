"""Queues that all containers of a cluster share, as AMQP 0-9-1 declares them: where they are.

A queue has its messages at one container, its home, or is replicated. Which of the two follows from
its arguments; where they say nothing, from how many primaries the cluster has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.declared_queue import address_of
from cogwork.container.amqp091.queues import rule_of_queue
from cogwork.plugin.capabilities import replica_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.types import Table
    from cogwork.container.amqp091.declared_queue import Traits
    from cogwork.container.amqp091.declarer import Declarer
    from cogwork.container.vhost.shared import VhostTopology

__all__ = ("HOME", "declare_shared")

HOME: Final = "x-cogwork-home"
"""The argument that names a queue's home: a container's id."""

OF_ONE_HOME: Final = ("x-queue-type", "x-max-priority")
"""Arguments that a queue has one home for, unless it is a quorum queue."""


async def declare_shared(
    channel: Declarer,
    topology: VhostTopology,
    name: str,
    traits: Traits,
    options: Mapping[str, Any],
) -> None:
    """Make a queue for the whole cluster, unless it is there.

    Args:
        channel: Whose client wants it.
        topology: What the cluster has.
        name: The queue's name.
        traits: What its declaration says.
        options: Its node's.

    Raises:
        ExchangeError: The cluster does not take it, or does not answer.
        ProtocolError: It is there, as a queue that was never declared (406).
    """
    queues = channel.queues
    queues.demand_undeclared(name)
    home = _home_of(traits, has_replicas=topology.has_replicas)
    if home is None:
        await _declare_records(channel, topology, name, traits, options)
    await topology.declare_queue(
        name,
        durable=traits.is_durable,
        auto_delete=traits.is_auto_delete,
        arguments=traits.arguments,
        home="" if home is None else home or channel.vhost.container_id,
    )
    queue = queues.find(name)
    if queue is None or queue.shared is None:
        text = f"{queues.place(name)} cannot be used at this container: its log says why"
        raise ProtocolError(ReplyCode.INTERNAL_ERROR, text)


def _home_of(traits: Traits, *, has_replicas: bool) -> str | None:
    """Return the home of a new queue, empty for this container; None where it is replicated."""
    arguments: Table = traits.arguments
    named = arguments.get(HOME)
    if arguments.get("x-queue-type") == "quorum":
        return None
    if isinstance(named, str) and named:
        return named
    has_one_home = any(each in arguments for each in OF_ONE_HOME)
    return None if has_replicas and traits.is_durable and not has_one_home else ""


async def _declare_records(
    channel: Declarer,
    topology: VhostTopology,
    name: str,
    traits: Traits,
    options: Mapping[str, Any],
) -> None:
    """Have a queue's records declared, which several containers hold."""
    vhost, address = channel.vhost, address_of(name)
    if replica_of(vhost.nodes.get(address)) is None:
        _, inherited = vhost.rule_of(address)
        rule = rule_of_queue(address, inherited, traits, options)
        rule = replace(rule, options={**rule.options, "durability": "replicated"})
        vhost.declare(address, rule, channel.client.makers, is_in_turn=True)
    try:
        await topology.declare_records(address)
    except BaseException:
        if topology.queue(name) is None:
            vhost.remove_node(address)
        raise
