"""What a reader of ranges can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol

__all__ = ("ArrowError", "BeyondEnd", "StreamTruncated", "UnknownStream")


class ArrowError(CogworkError):
    """A range could not be read.

    Attributes:
        stream: Of which stream.
        text: What happened.
        condition: The error condition of AMQP; None where there is none.
    """

    def __init__(self, stream: str, text: str, condition: Symbol | None = None) -> None:
        super().__init__(stream, text)
        self.stream = stream
        self.text = text
        self.condition = condition

    def __str__(self) -> str:
        """Name the stream, and what happened."""
        return f"stream {self.stream}: {self.text}"


class UnknownStream(ArrowError):
    """There is no such stream."""

    def __init__(self, stream: str, text: str = "there is none of this name") -> None:
        super().__init__(stream, text)


class StreamTruncated(ArrowError):
    """Retention has given up the beginning of the range.

    Attributes:
        first: The first offset that is left.
    """

    def __init__(self, stream: str, first: int) -> None:
        super().__init__(stream, f"its records begin at offset {first}")
        self.args = (stream, first)
        self.first = first


class BeyondEnd(ArrowError):
    """The range goes beyond what has been committed.

    Attributes:
        next: The offset after the last record.
    """

    def __init__(self, stream: str, following: int) -> None:
        super().__init__(stream, f"its records end before offset {following}")
        self.args = (stream, following)
        self.next = following
