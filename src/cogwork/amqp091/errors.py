"""Reply codes (AMQP 0-9-1 §1.2), and who is at fault: the peer or this program.

A reply code is a soft error, which closes its channel, or a hard error, which closes the
connection. Reply texts are worded as RabbitMQ words them, because its clients print them: the
code's name, a dash, and what is wrong.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from cogwork.amqp091.strings import MAX_SHORT_STRING_OCTETS, octets_of

__all__ = ("HARD_ERRORS", "EncodeError", "LocalProtocolError", "ProtocolError", "ReplyCode")


class ReplyCode(IntEnum):
    """Every reply code of the specification, by RabbitMQ's names."""

    REPLY_SUCCESS = 200
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541


_C = ReplyCode

HARD_ERRORS: Final = frozenset(
    {
        _C.CONNECTION_FORCED,
        _C.INVALID_PATH,
        _C.FRAME_ERROR,
        _C.SYNTAX_ERROR,
        _C.COMMAND_INVALID,
        _C.CHANNEL_ERROR,
        _C.UNEXPECTED_FRAME,
        _C.RESOURCE_ERROR,
        _C.NOT_ALLOWED,
        _C.NOT_IMPLEMENTED,
        _C.INTERNAL_ERROR,
    }
)
"""The codes that close the connection; all others close the channel."""

_ELLIPSIS = "..."


class EncodeError(ValueError):
    """A value of this program has no AMQP 0-9-1 encoding, or does not fit into a frame."""


class LocalProtocolError(Exception):
    """This program tried to do what the protocol forbids in the present state."""


class ProtocolError(Exception):
    """The peer broke the protocol, or asked for what it cannot have.

    Attributes:
        code: The reply code to tell the peer.
        explanation: What is wrong, without the code's name.
        class_id: The class of the method at fault; 0 where there is none.
        method_id: The method at fault; 0 where there is none.
    """

    def __init__(
        self, code: ReplyCode, explanation: str, class_id: int = 0, method_id: int = 0
    ) -> None:
        super().__init__(code, explanation, class_id, method_id)
        self.code = code
        self.explanation = explanation
        self.class_id = class_id
        self.method_id = method_id

    def __str__(self) -> str:
        return self.reply_text

    @property
    def is_hard(self) -> bool:
        """Whether it closes the connection, wherever it occurred."""
        return self.code in HARD_ERRORS

    @property
    def reply_text(self) -> str:
        """The text for the peer, cut to what a short string holds."""
        text = f"{self.code.name} - {self.explanation}"
        octets = octets_of(text)
        if len(octets) <= MAX_SHORT_STRING_OCTETS:
            return text
        kept = octets[: MAX_SHORT_STRING_OCTETS - len(_ELLIPSIS)]
        # A character that was cut in the middle goes as a whole.
        return kept.decode(errors="ignore") + _ELLIPSIS

    def of_method(self, class_id: int, method_id: int) -> ProtocolError:
        """Return the same error with the method at fault, unless it names one already."""
        if self.class_id:
            return self
        return ProtocolError(self.code, self.explanation, class_id, method_id)
