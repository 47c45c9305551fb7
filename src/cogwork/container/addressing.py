"""Turns the configuration's tables of addresses into the router's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.router.addresses import (
    AddressRule,
    AddressRuleError,
    AddressTable,
    Distribution,
    SlowSubscriber,
    Unmatched,
    parse_rule,
)
from cogwork.router.patterns import is_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.settings import Address, Node, Queue, QueueOptions

__all__ = ("table_of",)

_QUEUE_OPTIONS = (
    "ttl_s",
    "dead_letter",
    "maximum_length",
    "maximum_length_policy",
    "maximum_delivery_count",
    "in_doubt",
    "in_doubt_timeout_s",
    "priorities",
    "delay",
    "ordering",
    "deduplication_window_s",
    "deduplication_count",
)


class AddressingError(CogworkError):
    """An address rule of the configuration that the router refuses."""


def table_of(
    addresses: Iterable[Address], queues: Iterable[Queue], nodes: Iterable[Node]
) -> AddressTable:
    """Builds a virtual host's address table.

    Args:
        addresses: `[[address]]`.
        queues: `[[queue]]`; each is an exact name.
        nodes: `[[node]]`; an exact name, or a prefix that ends in `/`.

    Raises:
        AddressingError: A rule cannot be used.
    """
    try:
        rules = [_address_rule(address) for address in addresses]
        rules += [_queue_rule(queue) for queue in queues]
        rules += [_node_rule(node) for node in nodes]
        return AddressTable.with_defaults(rules)
    except AddressRuleError as error:
        raise AddressingError(str(error)) from error


def _address_rule(address: Address) -> AddressRule:
    table: dict[str, object] = {
        "kind": address.node or "direct",
        "slow_subscriber": address.slow_subscriber,
        "block_timeout_s": address.block_timeout_s,
        "unmatched": address.unmatched,
        "ttl_s": address.ttl_s,
        "dead_letter": address.dead_letter,
        "options": _queue_options(address) if address.node == "queue" else {},
    }
    for key in ("prefix", "pattern", "distribution", "fanout", "bias"):
        value = getattr(address, key)
        if value is not None:
            table[key] = value
    return parse_rule(table)


def _queue_rule(queue: Queue) -> AddressRule:
    return AddressRule(
        pattern=queue.address,
        distribution=Distribution.BALANCED,
        kind="queue",
        slow_subscriber=SlowSubscriber.BLOCK,
        unmatched=Unmatched.ACCEPT,
        options=_queue_options(queue),
    )


def _node_rule(node: Node) -> AddressRule:
    where = (
        {"prefix": node.address}
        if node.address.endswith("/") and not is_pattern(node.address)
        else {"pattern": node.address}
    )
    return AddressRule(**where, kind=node.kind, options=node.options)  # type: ignore[arg-type]  # one key of two


def _queue_options(options: QueueOptions) -> dict[str, object]:
    found = {key: getattr(options, key) for key in _QUEUE_OPTIONS}
    return {key: value for key, value in found.items() if value is not None}
