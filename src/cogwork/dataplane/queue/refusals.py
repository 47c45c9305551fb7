"""What a queue says of messages and claims that it does not take: outcomes, encoded once."""

from __future__ import annotations

import functools

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import CLAIM_IN_DOUBT, STALE_ATTEMPT
from cogwork.amqp.format_codes import not_understood
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Symbol

__all__ = (
    "CHOKED_STATE",
    "DISK_FAILED",
    "DISK_FAILED_STATE",
    "DISK_FULL_STATE",
    "FULL_STATE",
    "IN_DOUBT_STATE",
    "MALFORMED_STATE",
    "ODD_FIELDS",
    "STALE_STATE",
    "fault",
    "odd_state",
    "odd_text",
    "too_large",
)

ODD_FIELDS = (
    ("header.durable", "a boolean"),
    ("header.priority", "a ubyte"),
    ("header.ttl", "a uint: milliseconds"),
    ("header.first-acquirer", "a boolean"),
    ("header.delivery-count", "a uint"),
    ("properties.message-id", "a ulong, a uuid, a binary or a string"),
    ("properties.group-id", "a string"),
    ("x-opt-delivery-delay", "milliseconds, as a number below 2^63"),
    (
        "x-opt-delivery-time",
        "a timestamp, or milliseconds since 1970 (UTC) as a number below 2^63",
    ),
)
"""What a queue reads of a message, in the order of `ODD_…` in `message/envelope.pxd`: the name, and
what it may be."""

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
"""For an attempt of an item that somebody else has, or has had."""

IN_DOUBT_STATE = _rejection(CLAIM_IN_DOUBT)
"""For an attempt that its shard knows nothing of (any more), or where that cannot be asked."""


def fault(problem: str) -> bytes:
    """Return the outcome of a message to a queue that has stopped by a fault of its own."""
    return _rejection(Condition.INTERNAL_ERROR, f"the queue has {problem}")


@functools.lru_cache(maxsize=256)
def odd_state(field: int, code: int) -> bytes:
    """Return the outcome of a message that says something which is not understood.

    Args:
        field: Which of `ODD_FIELDS`, from 1.
        code: The format code of its value, or `OUT_OF_RANGE`.
    """
    return _rejection(Condition.INVALID_FIELD, odd_text(field, code))


def odd_text(field: int, code: int) -> str:
    """Return what in a message is not understood; the arguments are those of `odd_state`."""
    name, expected = ODD_FIELDS[field - 1]
    return not_understood(name, code, expected)


def too_large(size_bytes_max: int) -> bytes:
    """Return the outcome of a message that does not fit a record."""
    return _rejection(
        Condition.LINK_MESSAGE_SIZE_EXCEEDED,
        f"this queue takes messages of {size_bytes_max} octets at most: a record has no more room",
    )
