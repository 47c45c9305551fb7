"""What RabbitMQ says of each message that a consumer of AMQP 1.0 gets from a queue.

Its clients look into a message's annotations without asking whether there are any. So whoever
consumes from `/queues/NAME` gets the exchange and the routing key of each message, as far as
nothing else has been said of it: those of one that was sent to the queue itself.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.dataplane.encoding.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("annotator_of",)

_ANNOTATIONS: Final = ULong(0x72)
_BEFORE: Final = (0x70, 0x71, Symbol("amqp:header:list"), Symbol("amqp:delivery-annotations:map"))
"""Sections that come before the annotations (AMQP 1.0 §3.2)."""
_OWN: Final = (0x72, Symbol("amqp:message-annotations:map"))


def annotator_of(queue: str) -> Callable[[bytes], bytes]:
    """Return what gives annotations to the messages of a queue that have none.

    Args:
        queue: Its name.
    """
    said = {Symbol("x-exchange"): "", Symbol("x-routing-key"): queue}
    return partial(_annotated, encode(Described(_ANNOTATIONS, said)))


def _annotated(annotations: bytes, message: bytes) -> bytes:
    at = 0
    try:
        while at < len(message):
            section, following = decode(message, at)
            descriptor = section.descriptor if isinstance(section, Described) else None
            if descriptor in _OWN:
                return message
            if descriptor not in _BEFORE:
                break
            at = following
    except ProtocolError:  # it passes as it is, as it always did
        return message
    return b"".join((message[:at], annotations, message[at:]))
