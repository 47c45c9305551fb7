"""The live end of a stream: the newest chunks, encoded once for all who read there.

Theory of operation. What the engine gives out goes into blocks. A block that nobody has been sent
anything of yet takes further chunks; once it is sent it is closed. So many small appends in one
turn of the event loop become one block, and a thousand receivers share it. The oldest blocks go
when there are too many: whoever is still there reads on from the engine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from cogwork.dataplane.stream.blocks import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.plugin.engine.batch import Chunk

__all__ = ("Tail", "block_of")

SIZE_BYTES_MAX = 4 * 1024 * 1024
"""What receivers may lag behind before they read from the engine."""

BLOCK_SIZE_BYTES = 256 * 1024
BLOCKS_MAX = 1024


class Tail:
    """The newest part of a stream.

    Attributes:
        next: The offset that follows it.
        size_bytes: What it holds.
    """

    def __init__(self) -> None:
        """Is empty, and nowhere yet."""
        self.next = 0
        self.size_bytes = 0
        self._blocks: deque[Block] = deque()

    @property
    def first(self) -> int:
        """The oldest offset that it holds; the next one where it is empty."""
        return self._blocks[0].offset if self._blocks else self.next

    def restart(self, following: int) -> None:
        """Start anew before an offset."""
        self._blocks.clear()
        self.size_bytes = 0
        self.next = following

    def add(self, chunk: Chunk) -> None:
        """Take the chunk that follows; anything else begins it anew."""
        if chunk.offset != self.next:
            self.restart(chunk.offset)
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.is_closed or block.size_bytes >= BLOCK_SIZE_BYTES:
            block = Block(chunk.offset)
            self._blocks.append(block)
        _add(block, chunk)
        self.next = chunk.next_offset
        self.size_bytes += len(chunk.batch.payload)
        while self.size_bytes > SIZE_BYTES_MAX or len(self._blocks) > BLOCKS_MAX:
            if len(self._blocks) == 1:
                break
            self.size_bytes -= self._blocks.popleft().size_bytes

    def block_at(self, offset: int) -> Block | None:
        """Return the block that holds an offset; None where none does."""
        blocks = self._blocks
        if not blocks or not blocks[0].offset <= offset < self.next:
            return None
        if offset >= blocks[-1].offset:
            return blocks[-1]
        return blocks[bisect_right(blocks, offset, key=_offset_of) - 1]


def block_of(chunks: Sequence[Chunk]) -> Block:
    """Make a block of chunks that follow each other; there is at least one."""
    block = Block(chunks[0].offset)
    for chunk in chunks:
        _add(block, chunk)
    return block


def _add(block: Block, chunk: Chunk) -> None:
    batch = chunk.batch
    block.add(chunk.time_ms, batch.producer, batch.sequence, batch.count, batch.payload)


def _offset_of(block: Block) -> int:
    return block.offset
