"""What a queue says of messages and claims that it does not take: outcomes, encoded once."""

from __future__ import annotations

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import STALE_ATTEMPT
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Symbol

__all__ = (
    "CHOKED_STATE",
    "DISK_FAILED",
    "DISK_FAILED_STATE",
    "DISK_FULL_STATE",
    "FULL_STATE",
    "MALFORMED_STATE",
    "STALE_STATE",
    "fault",
    "too_large",
)

DISK_FAILED = Symbol("cogwork:disk-failed")
"""The condition of what could not be written down, and of what is refused from then on."""


def _rejection(condition: Symbol, description: str | None = None) -> bytes:
    error = AmqpError(condition=condition, description=description)
    return codec.encode(Rejected(error=error).to_described())


FULL_STATE = _rejection(Condition.RESOURCE_LIMIT_EXCEEDED, "the queue is full")

CHOKED_STATE = _rejection(
    Condition.RESOURCE_LIMIT_EXCEEDED, "the queue's dead letters are not accepted"
)

DISK_FULL_STATE = _rejection(Condition.RESOURCE_LIMIT_EXCEEDED, "the queue's disk is full")

DISK_FAILED_STATE = _rejection(DISK_FAILED, "the queue's disk has failed; nothing is stored")

MALFORMED_STATE = _rejection(Condition.DECODE_ERROR, "the message's sections are malformed")

STALE_STATE = _rejection(STALE_ATTEMPT)
"""For an attempt that its shard knows nothing of any more."""


def fault(problem: str) -> bytes:
    """Returns the outcome of a message to a queue that has stopped by a fault of its own."""
    return _rejection(Condition.INTERNAL_ERROR, f"the queue has {problem}")


def too_large(size_bytes_max: int) -> bytes:
    """Returns the outcome of a message that does not fit a record."""
    return _rejection(
        Condition.LINK_MESSAGE_SIZE_EXCEEDED,
        f"this queue takes messages of {size_bytes_max} octets at most: a record has no more room",
    )
