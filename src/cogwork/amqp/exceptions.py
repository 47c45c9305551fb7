"""Who is at fault: the peer (`ProtocolError`), this program (`LocalProtocolError`, `EncodeError`).

The peer's faults carry an error condition of the specification and the scope that they end: the
connection, the session or the link (AMQP 1.0 §2.8.14). `errors` re-exports all of this.
"""

from __future__ import annotations

from enum import Enum, auto

from cogwork.amqp.types import Symbol

__all__ = (
    "CogworkError",
    "Condition",
    "DecodeError",
    "EncodeError",
    "LocalProtocolError",
    "ProtocolError",
    "Scope",
)


class Condition:
    """Every error condition of the specification (AMQP 1.0 §2.8.15 to §2.8.18)."""

    INTERNAL_ERROR = Symbol("amqp:internal-error")
    NOT_FOUND = Symbol("amqp:not-found")
    UNAUTHORIZED_ACCESS = Symbol("amqp:unauthorized-access")
    DECODE_ERROR = Symbol("amqp:decode-error")
    RESOURCE_LIMIT_EXCEEDED = Symbol("amqp:resource-limit-exceeded")
    NOT_ALLOWED = Symbol("amqp:not-allowed")
    INVALID_FIELD = Symbol("amqp:invalid-field")
    NOT_IMPLEMENTED = Symbol("amqp:not-implemented")
    RESOURCE_LOCKED = Symbol("amqp:resource-locked")
    PRECONDITION_FAILED = Symbol("amqp:precondition-failed")
    RESOURCE_DELETED = Symbol("amqp:resource-deleted")
    ILLEGAL_STATE = Symbol("amqp:illegal-state")
    FRAME_SIZE_TOO_SMALL = Symbol("amqp:frame-size-too-small")

    CONNECTION_FORCED = Symbol("amqp:connection:forced")
    CONNECTION_FRAMING_ERROR = Symbol("amqp:connection:framing-error")
    CONNECTION_REDIRECT = Symbol("amqp:connection:redirect")

    SESSION_WINDOW_VIOLATION = Symbol("amqp:session:window-violation")
    SESSION_ERRANT_LINK = Symbol("amqp:session:errant-link")
    SESSION_HANDLE_IN_USE = Symbol("amqp:session:handle-in-use")
    SESSION_UNATTACHED_HANDLE = Symbol("amqp:session:unattached-handle")

    LINK_DETACH_FORCED = Symbol("amqp:link:detach-forced")
    LINK_TRANSFER_LIMIT_EXCEEDED = Symbol("amqp:link:transfer-limit-exceeded")
    LINK_MESSAGE_SIZE_EXCEEDED = Symbol("amqp:link:message-size-exceeded")
    LINK_REDIRECT = Symbol("amqp:link:redirect")
    LINK_STOLEN = Symbol("amqp:link:stolen")


class Scope(Enum):
    """What ends with the error."""

    CONNECTION = auto()
    SESSION = auto()
    LINK = auto()


class CogworkError(Exception):
    """Everything that Cogwork raises on purpose."""


class EncodeError(CogworkError, ValueError):
    """A value of this program has no AMQP encoding."""


class LocalProtocolError(CogworkError):
    """This program tried to do what the protocol forbids in the present state."""


class FrameTooLarge(LocalProtocolError):
    """A performative does not fit into a frame that the peer takes: nothing was sent."""


class ProtocolError(CogworkError):
    """The peer broke the protocol.

    Attributes:
        condition: The error condition to tell the peer.
        description: What was wrong, where, and what would be right.
        scope: What ends with it.
    """

    def __init__(
        self, condition: Symbol, description: str, scope: Scope = Scope.CONNECTION
    ) -> None:
        super().__init__(condition, description, scope)
        self.condition = condition
        self.description = description
        self.scope = scope

    def __str__(self) -> str:
        return f"{self.condition}: {self.description}"


class DecodeError(ProtocolError):
    """Bytes that are not AMQP.

    Attributes:
        offset: Where in the decoded bytes, from 0.
    """

    def __init__(self, description: str, offset: int) -> None:
        super().__init__(Condition.DECODE_ERROR, f"{description}, at byte {offset}")
        self.args = (description, offset)  # what pickle calls __init__ with
        self.offset = offset
