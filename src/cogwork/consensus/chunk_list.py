"""The chunks of a stream that are in memory.

Theory of operation. Every chunk that ever was has an ordinal. A reader keeps the ordinal of what it
reads next, and so finds it at once, however many readers there are and whatever has been given up
in front; only a reader that begins has to search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.consensus.batch import Chunk

__all__ = ("CHUNK_OVERHEAD_BYTES", "ChunkList")

CHUNK_OVERHEAD_BYTES = 400
"""What a chunk costs beside its payload, about: many small ones shall not be free."""

COMPACT_MIN = 64


class ChunkList:
    """Chunks by ordinal, offset and time; new ones at the end, old ones given up at the front.

    Attributes:
        first: The ordinal of the oldest chunk.
        next: The ordinal that the next chunk will have.
        size_bytes: What all of them take.
    """

    __slots__ = ("_base", "_chunks", "_gone", "first", "next", "size_bytes")

    def __init__(self) -> None:
        self._chunks: list[Chunk | None] = []
        self._gone = 0
        self._base = 0
        self.first = 0
        self.next = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return self.next - self.first

    def __getitem__(self, ordinal: int) -> Chunk:
        chunk = self._chunks[ordinal - self._base]
        assert chunk is not None
        return chunk

    def append(self, chunk: Chunk) -> None:
        """Adds the newest."""
        self._chunks.append(chunk)
        self.next += 1
        self.size_bytes += size_of(chunk)

    def drop_first(self) -> Chunk:
        """Gives up the oldest and returns it."""
        chunk = self[self.first]
        self._chunks[self._gone] = None
        self._gone += 1
        self.first += 1
        self.size_bytes -= size_of(chunk)
        if self._gone >= COMPACT_MIN and self._gone * 2 > len(self._chunks):
            del self._chunks[: self._gone]
            self._base += self._gone
            self._gone = 0
        return chunk

    def trim(self, before: int) -> None:
        """Gives up those that lie wholly below an offset."""
        while self.first < self.next and self[self.first].next_offset <= before:
            self.drop_first()

    def find(self, offset: int) -> int:
        """Returns the ordinal of the chunk that holds an offset; the next one if none does yet."""
        return self._base + bisect_right(self._chunks, offset, self._gone, key=_next_offset)

    def find_time(self, time_ms: int) -> int:
        """Returns the ordinal of the first chunk of this time or later."""
        return self._base + bisect_left(self._chunks, time_ms, self._gone, key=_time_ms)


def size_of(chunk: Chunk) -> int:
    """Returns about what a chunk takes."""
    return len(chunk.batch.payload) + CHUNK_OVERHEAD_BYTES


def _next_offset(chunk: Chunk | None) -> int:
    assert chunk is not None
    return chunk.next_offset


def _time_ms(chunk: Chunk | None) -> int:
    assert chunk is not None
    return chunk.time_ms
