"""What can be wrong with a schema, or with a message by it."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("REASON_LENGTH_MAX", "InvalidBody", "InvalidSchema", "SchemaError", "shortened")

REASON_LENGTH_MAX = 300
"""A reason goes into a rejection, and must not carry the message back."""


class SchemaError(CogworkError, ValueError):
    """Something of a schema."""


class InvalidSchema(SchemaError):
    """It is no schema, or one whose use could not be bounded."""


class InvalidBody(SchemaError):
    """A message is not what its address's schema says."""


def shortened(reason: str) -> str:
    """Returns a reason that is not too long."""
    if len(reason) <= REASON_LENGTH_MAX:
        return reason
    return reason[: REASON_LENGTH_MAX - 1] + "…"
