"""Arguments of basic.consume (RabbitMQ)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.queue_arguments import type_name

if TYPE_CHECKING:
    from cogwork.amqp091.types import Table

__all__ = ("priority_in",)

PRIORITY: Final = "x-priority"

PRIORITY_MAX: Final = 2**31 - 1
"""What a store tells apart; beyond it, priorities count as the highest or the lowest."""


def priority_in(arguments: Table, place: str) -> int:
    """Return the priority of a consumer: 0 if it names none.

    Args:
        arguments: As they came.
        place: Which queue, for errors.

    Raises:
        ProtocolError: It is no integer (406).
    """
    value = arguments.get(PRIORITY, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        text = f"invalid arg '{PRIORITY}' for {place}: \"expected integer, got {type_name(value)}\""
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
    return max(-PRIORITY_MAX, min(int(value), PRIORITY_MAX))
