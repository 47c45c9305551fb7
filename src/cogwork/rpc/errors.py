"""What a call raises: one type for each thing that a caller may want to tell apart."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.types import Symbol
from cogwork.client.errors import CallFailed, CallTimeout, Released

__all__ = (
    "BadArguments",
    "BadReply",
    "CallCancelled",
    "Expired",
    "NoSuchMethod",
    "NotBegun",
    "RemoteError",
    "ReplyTooLarge",
    "ServerLost",
    "ServersBusy",
    "Unreachable",
    "Unserialisable",
)

REMOTE_ERROR = Symbol("cogwork:remote-error")
CALL_CANCELLED = Symbol("cogwork:call-cancelled")
CALL_EXPIRED = Symbol("cogwork:call-expired")
NOT_BEGUN = Symbol("cogwork:call-not-begun")


class Unserialisable(CogworkError, TypeError):
    """A value that the codec cannot carry; nothing was sent.

    Attributes:
        path: Where it is, as in `disks[2].owner`.
        reason: Why it cannot be carried.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        """Name the path first."""
        return f"{self.path}: {self.reason}"


class Unreachable(Released):
    """Nobody served the address until the deadline: nothing was sent, and it can be tried again.

    Attributes:
        timeout_s: How long somebody was waited for, in seconds.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        text = f"nobody serves it, or has room: no credit within {timeout_s:g} s"
        super().__init__(address, None, text)
        self.args = (address, timeout_s)
        self.timeout_s = timeout_s


class ServersBusy(Unreachable):
    """There are servers, but none had room until the deadline: nothing was sent."""

    def __str__(self) -> str:
        """Return what is scarce."""
        return f"{self.address}: busy: there are servers, but no credit within {self.timeout_s:g} s"


class NotBegun(Released):
    """The server was stopped before it had begun the call: it can be tried again elsewhere."""


class ServerLost(CallTimeout):
    """The server has the call, or had it, and does not say any more that it is at work."""

    def __init__(self, address: str, timeout_s: float) -> None:
        super().__init__(address, timeout_s)
        self.args = (address, timeout_s)

    def __str__(self) -> str:
        """Return what did not come."""
        return f"{self.address}: no heartbeat of the server within {self.timeout_s:g} s"


class RemoteError(CallFailed):
    """The method raised an exception.

    Attributes:
        type: The exception's type, as in `builtins.KeyError`.
        message: The exception's text.
        traceback_text: Where it was raised, as Python prints it; may be empty.
        condition: What the exception, or a ZeroMQ service's FAIL, has as its code; else
            `cogwork:remote-error`.
    """

    def __init__(
        self,
        address: str,
        type: str,  # noqa: A002  # what it is
        message: str,
        traceback_text: str = "",
        condition: str | None = None,
    ) -> None:
        super().__init__(address, Symbol(condition or REMOTE_ERROR), f"{type}: {message}")
        self.args = (address, type, message, traceback_text, condition)
        self.type = type
        self.message = message
        self.traceback_text = traceback_text

    def __str__(self) -> str:
        """Name the exception; the condition would say no more."""
        return f"{self.address}: {self.description}"


class NoSuchMethod(CallFailed):
    """The service has no method of this name."""


class BadArguments(CallFailed):
    """The method does not take these arguments; the description names the one that is wrong."""


class ReplyTooLarge(CallFailed):
    """The method has run, and its result is larger than what is carried."""


class CallCancelled(CallFailed):
    """The server had begun the call, and gave it up: it was stopped, or somebody cancelled it."""


class Expired(CallFailed):
    """The call's time was over before its method began, or too little of it was left."""


class BadReply(CallFailed):
    """The reply cannot be read, or is not of the type that was asked for."""


CONDITIONS: dict[str, type[CallFailed | NotBegun]] = {
    Condition.NOT_IMPLEMENTED: NoSuchMethod,
    Condition.INVALID_FIELD: BadArguments,
    Condition.LINK_MESSAGE_SIZE_EXCEEDED: ReplyTooLarge,
    CALL_CANCELLED: CallCancelled,
    CALL_EXPIRED: Expired,
    NOT_BEGUN: NotBegun,
}
"""What a condition of an error reply means; all others are `CallFailed`."""
