"""Where in a segment an offset or a time is: an entry for about every 64 KiB."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct

__all__ = ("INDEX_ENTRY_BYTES", "INDEX_SPACING_BYTES", "SegmentIndex")

INDEX_SPACING_BYTES = 64 << 10
_ENTRY = Struct(">QqQ")
INDEX_ENTRY_BYTES = _ENTRY.size


class SegmentIndex:
    """Some of a segment's blocks: the first one, and then one after so many octets.

    Attributes:
        offsets: Of each one's first record.
        times_ms: Of each.
        positions: Where in the file each begins.
    """

    __slots__ = ("offsets", "positions", "times_ms")

    def __init__(self) -> None:
        """Start with no entries."""
        self.offsets: list[int] = []
        self.times_ms: list[int] = []
        self.positions: list[int] = []

    def note(self, offset: int, time_ms: int, position: int) -> None:
        """Take notice of a block, behind all before, and remember some of them."""
        if self.positions and position < self.positions[-1] + INDEX_SPACING_BYTES:
            return
        self.offsets.append(offset)
        self.times_ms.append(time_ms)
        self.positions.append(position)

    def encode(self) -> bytes:
        """Return the index's form on disk."""
        entries = zip(self.offsets, self.times_ms, self.positions, strict=True)
        return b"".join(_ENTRY.pack(*entry) for entry in entries)

    @classmethod
    def decode(cls, data: bytes) -> SegmentIndex:
        """Read an index of whole entries."""
        made = cls()
        for offset, time_ms, position in _ENTRY.iter_unpack(data):
            made.offsets.append(offset)
            made.times_ms.append(time_ms)
            made.positions.append(position)
        return made

    def position_of(self, offset: int) -> int:
        """Return where a block begins that does not lie behind an offset of the segment."""
        return self.positions[max(bisect_right(self.offsets, offset) - 1, 0)]

    def position_before(self, time_ms: int) -> int:
        """Return where a block begins, not behind the first one of a time or later."""
        return self.positions[max(bisect_left(self.times_ms, time_ms) - 1, 0)]
