"""What can be wrong with a schema, or with a message by it."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = (
    "REASON_LENGTH_MAX",
    "Conflict",
    "Incompatible",
    "InvalidAddress",
    "InvalidBody",
    "InvalidSchema",
    "NotRegistered",
    "SchemaError",
    "TooCostly",
    "shortened",
)

REASON_LENGTH_MAX = 300
"""A reason goes into a rejection, and must not carry the message back."""

PATH_LENGTH_MAX = 200


class SchemaError(CogworkError, ValueError):
    """Something of a schema."""


class InvalidSchema(SchemaError):
    """It is no schema, or one whose use could not be bounded."""


class InvalidAddress(InvalidSchema):
    """It is neither an address nor a pattern of addresses that could have a schema."""


class NotRegistered(InvalidSchema):
    """The address has no schema."""


class Incompatible(InvalidSchema):
    """It is a schema, but does not take every message that the version before it takes."""


class Conflict(SchemaError):
    """Somebody else has changed the schema of the address meanwhile."""


class InvalidBody(SchemaError):
    """A message is not what its address's schema says.

    Attributes:
        path: Where in the message, such as `$.items[3].price`; empty where it is not one place.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        path = path[:PATH_LENGTH_MAX]
        super().__init__(shortened(f"{path}: {reason}" if path else reason))
        self.path = path


class TooCostly(SchemaError):
    """To check the message takes more steps than were given; with all of its own it may do."""


def shortened(reason: str) -> str:
    """Return a reason that is not too long."""
    if len(reason) <= REASON_LENGTH_MAX:
        return reason
    return reason[: REASON_LENGTH_MAX - 1] + "…"
