"""Which function does what a method on a channel asks for.

A function that has to wait is a coroutine, or returns one: see `Channel.wait_for`.

In a cluster, what a method is about may have been declared at another container a moment ago. So
where a function says that something is not there, this container first applies all that is declared
by now (a linearizable read, Raft §6.4), and calls it again.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091 import (
    basic_methods,
    channel_methods,
    exchange_methods,
    queue_methods,
)
from cogwork.container.amqp091.faults import refusal_of
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declarer import Declarer, Work

__all__ = ("begin", "dispatch")

_HANDLERS: Final[Mapping[type[Method], Callable[..., Work | None]]] = {
    **channel_methods.HANDLERS,
    **exchange_methods.HANDLERS,
    **queue_methods.HANDLERS,
    **basic_methods.HANDLERS,
}
"""All that a client may send; `states` and `Method.SENT_BY` have seen to that."""


def dispatch(channel: Channel, method: Method, content: Content | None) -> None:
    """Do what a method asks for, or begin to.

    Raises:
        ProtocolError: It cannot be done.
    """
    work = begin(channel, method, content)
    if work is not None:
        channel.wait_for(work, method)


def begin(channel: Declarer, method: Method, content: Content | None) -> Work | None:
    """Do what a method asks for; return what has to wait.

    Args:
        channel: Who asks; a channel if the method is not about queues and exchanges alone.
        method: What for.
        content: The message that comes with it.

    Raises:
        ProtocolError: It cannot be done.
    """
    method = _as_meant(method)
    try:
        work = _HANDLERS[type(method)](channel, method, content)
    except Refused as refused:
        raise refusal_of(refused) from None
    except ProtocolError as error:
        if not _may_be_elsewhere(channel, error):
            raise
        work = _caught_up(channel, method, content, error)
    else:
        if work is not None and channel.vhost.topology is not None:
            work = _looked_up(channel, method, content, work)
    return work


def _as_meant(method: Method) -> Method:
    """Return a method whose name has no line breaks, which do not count in one (RabbitMQ)."""
    if isinstance(method, m.QueueDeclare | m.QueueDelete) and _is_broken(method.queue):
        return dataclasses.replace(method, queue=_joined(method.queue))
    if isinstance(method, m.ExchangeDeclare | m.ExchangeDelete) and _is_broken(method.exchange):
        return dataclasses.replace(method, exchange=_joined(method.exchange))
    return method


def _is_broken(name: str) -> bool:
    return "\n" in name or "\r" in name


def _joined(name: str) -> str:
    return name.replace("\r", "").replace("\n", "")


def _may_be_elsewhere(channel: Declarer, error: ProtocolError) -> bool:
    """Return whether what is not there may have been declared at another container just now."""
    return error.code is ReplyCode.NOT_FOUND and channel.vhost.topology is not None


async def _looked_up(
    channel: Declarer, method: Method, content: Content | None, work: Work
) -> None:
    """Do what waits; where something is not there, look whether the cluster has it by now."""
    try:
        await work
    except ProtocolError as error:
        if not _may_be_elsewhere(channel, error):
            raise
        await _caught_up(channel, method, content, error)


async def _caught_up(
    channel: Declarer, method: Method, content: Content | None, error: ProtocolError
) -> None:
    """Do what a method asks for once all is known here that the cluster has declared.

    Raises:
        ProtocolError: What it is about is still not there.
    """
    topology = channel.vhost.topology
    assert topology is not None, "else nothing can have been declared elsewhere"
    why = await topology.catch_up()
    if why:
        raise ProtocolError(error.code, f"{error.explanation}; {why}")
    work = _HANDLERS[type(method)](channel, method, content)
    if work is not None:
        await work
