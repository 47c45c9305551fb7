"""The chunks of a stream that are in memory, or whatever else has a place in it.

Theory of operation. Every chunk that ever was has an ordinal. A reader keeps the ordinal of what it
reads next, and so finds it at once, however many readers there are and whatever has been given up
in front; only a reader that begins has to search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, Protocol, TypeVar

__all__ = ("ChunkList",)

COMPACT_MIN = 64

NEWEST = 4
"""So many chunks are looked at one by one before it is searched."""


class Placed(Protocol):
    """What has offsets, a time and a size."""

    @property
    def offset(self) -> int:
        """Of its first record."""

    @property
    def next_offset(self) -> int:
        """Of the record after it."""

    @property
    def time_ms(self) -> int:
        """Never less than that of the one before."""

    @property
    def size_bytes(self) -> int:
        """What it takes."""


T = TypeVar("T", bound=Placed)


class ChunkList(Generic[T]):
    """Chunks by ordinal, offset and time; new ones at the end, old ones given up at the front.

    Attributes:
        first: The ordinal of the oldest chunk.
        next: The ordinal that the next chunk will have.
        size_bytes: What all of them take.
    """

    __slots__ = ("_base", "_chunks", "_gone", "first", "next", "size_bytes")

    def __init__(self) -> None:
        self._chunks: list[T | None] = []
        self._gone = 0
        self._base = 0
        self.first = 0
        self.next = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return self.next - self.first

    def __getitem__(self, ordinal: int) -> T:
        chunk = self._chunks[ordinal - self._base]
        assert chunk is not None
        return chunk

    def append(self, chunk: T) -> None:
        """Add the newest."""
        self._chunks.append(chunk)
        self.next += 1
        self.size_bytes += chunk.size_bytes

    def drop_first(self) -> T:
        """Give up the oldest and return it."""
        chunk = self[self.first]
        self._chunks[self._gone] = None
        self._gone += 1
        self.first += 1
        self.size_bytes -= chunk.size_bytes
        if self._gone >= COMPACT_MIN and self._gone * 2 > len(self._chunks):
            del self._chunks[: self._gone]
            self._base += self._gone
            self._gone = 0
        return chunk

    def trim(self, before: int, count: int | None = None) -> bool:
        """Give up those that lie wholly below an offset; tell whether there are more of them.

        Args:
            before: The offset.
            count: So many at most, as each takes its time; None for all.
        """
        end = self.next if count is None else min(self.next, self.first + count)
        while self.first < end and self[self.first].next_offset <= before:
            self.drop_first()
        return self.first < self.next and self[self.first].next_offset <= before

    def find(self, offset: int) -> int:
        """Return the ordinal of the chunk that holds an offset; the next one if none does yet."""
        # Whoever follows reads what is newest.
        for ordinal in range(self.next - 1, max(self.first, self.next - NEWEST) - 1, -1):
            chunk = self[ordinal]
            if offset >= chunk.offset:
                return ordinal if offset < chunk.next_offset else ordinal + 1
        return self._base + bisect_right(self._chunks, offset, self._gone, key=_next_offset)

    def find_time(self, time_ms: int) -> int:
        """Return the ordinal of the first chunk of this time or later."""
        return self._base + bisect_left(self._chunks, time_ms, self._gone, key=_time_ms)


def _next_offset(chunk: Placed | None) -> int:
    assert chunk is not None
    return chunk.next_offset


def _time_ms(chunk: Placed | None) -> int:
    assert chunk is not None
    return chunk.time_ms
