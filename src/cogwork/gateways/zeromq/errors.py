"""What a client is told when something goes wrong, by codes that programs can tell apart."""

from __future__ import annotations

from enum import StrEnum

from cogwork.amqp.errors import CogworkError
from cogwork.plugin.gateway import GatewayError

__all__ = ("Code", "Fault", "GatewayOptionError", "TooLarge")


class Code(StrEnum):
    """Why something did not work: `code` in the header of an ERROR."""

    BAD_MESSAGE = "bad-message"
    UNKNOWN_SESSION = "unknown-session"
    NOT_ALLOWED = "not-allowed"
    BUSY = "busy"
    STOPPING = "stopping"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    IN_DOUBT = "in-doubt"
    REJECTED = "rejected"
    FAILED = "failed"
    DETACHED = "detached"


class Fault(CogworkError):
    """Something that a client did, or asked for, cannot be; it goes on.

    Attributes:
        code: For programs.
        text: What was wrong, and what would be right.
    """

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class TooLarge(Fault):
    """A message is larger than what the mesh takes."""

    def __init__(self, size_bytes_max: int) -> None:
        text = f"the message is too large: at most {size_bytes_max} bytes are taken"
        super().__init__(Code.BAD_MESSAGE, text)


class GatewayOptionError(GatewayError):
    """An option of the gateway is wrong, or missing."""
