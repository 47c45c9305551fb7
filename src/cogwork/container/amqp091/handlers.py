"""Which function does what a method on a channel asks for.

A function that has to wait is a coroutine, or returns one: see `Channel.wait_for`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    from cogwork.container.amqp091.channel import Channel, Work

__all__ = ("dispatch",)

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
    try:
        work = _HANDLERS[type(method)](channel, method, content)
    except Refused as refused:
        raise refusal_of(refused) from None
    if work is not None:
        channel.wait_for(work, method)
