"""Reads values off octets in order, and never past their end (AMQP 0-9-1 §4.2.5)."""

from __future__ import annotations

import struct

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import text_of

__all__ = ("Cursor",)

_OCTET = struct.Struct(">B")
_LONG = struct.Struct(">I")


class Cursor:
    """A place in octets that moves on with each value that is read.

    Attributes:
        at: Where the next value begins.
    """

    __slots__ = ("_data", "_end", "at")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self._data = data
        self.at = at
        self._end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """How many octets are left."""
        return self._end - self.at

    def unpack(self, form: struct.Struct) -> tuple[int | float, ...]:
        """Read what `form` describes.

        Raises:
            ProtocolError: Less is left.
        """
        at = self._advance(form.size)
        return form.unpack_from(self._data, at)

    def number(self, form: struct.Struct) -> int:
        """Read one integer of the width of `form`."""
        value = self.unpack(form)[0]
        assert isinstance(value, int)
        return value

    def octets(self, size: int) -> bytes:
        """Read `size` octets."""
        at = self._advance(size)
        return self._data[at : at + size]

    def short_string(self) -> str:
        """Read a string of at most 255 octets."""
        return text_of(self.octets(self.number(_OCTET)))

    def long_string(self) -> bytes:
        """Read a string's octets."""
        return self.octets(self.number(_LONG))

    def part(self) -> Cursor:
        """Read a size, and return a cursor over that many octets; this one goes on behind them."""
        size = self.number(_LONG)
        at = self._advance(size)
        return Cursor(self._data, at, at + size)

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            ProtocolError: There is.
        """
        if self.left:
            raise ProtocolError(
                ReplyCode.FRAME_ERROR, f"{self.left} octets follow the last value, at {self.at}"
            )

    def _advance(self, size: int) -> int:
        at = self.at
        if size > self._end - at:
            raise ProtocolError(
                ReplyCode.FRAME_ERROR,
                f"{size} octets are needed at {at}, {self._end - at} are left",
            )
        self.at = at + size
        return at
