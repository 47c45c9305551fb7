"""Makes the octets of a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google_crc32c import value

from cogwork.log.block import Block, encode_block
from cogwork.log.segment_footer import SegmentFooter
from cogwork.log.segment_header import SEGMENT_HEADER_BYTES, SegmentHeader
from cogwork.log.segment_index import SegmentIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("PIECE_BYTES", "build_segment")

PIECE_BYTES = 1 << 20
PIECE_BLOCKS = 32
"""What is made at a time: half a millisecond's work, after which others have their turn."""

JOINED_BYTES_MAX = 2048
"""Parts that are larger on average are written as they are."""


def _checked(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks that can be a segment.

    Raises:
        ValueError: They do not follow each other in offset and time.
    """
    before: Block | None = None
    for block in blocks:
        if block.count < 1:
            raise ValueError("a block holds at least one record")
        if before is not None and block.offset != before.next_offset:
            raise ValueError(f"offset {before.next_offset} is next, not {block.offset}")
        if before is not None and block.time_ms < before.time_ms:
            raise ValueError(f"the time of offset {block.offset} is before that of the one before")
        yield block
        before = block


def build_segment(stream_id: bytes, blocks: Iterable[Block]) -> Iterator[tuple[bytes, ...]]:
    """Yield a segment in pieces, of which each asks for a part of the blocks.

    A piece comes in parts, for what large blocks hold need not be joined to be written.

    Args:
        stream_id: Whose it is.
        blocks: What it holds; they follow each other.

    Raises:
        ValueError: There are none, or they do not follow each other in offset and time.
    """
    index = SegmentIndex()
    parts: list[bytes] = []
    position = SEGMENT_HEADER_BYTES
    count = held_bytes = held_blocks = 0
    first = last = None
    for block in _checked(blocks):
        if first is None:
            first = block
            parts.append(SegmentHeader(stream_id, block.offset).encode())
        index.note(block.offset, block.time_ms, position)
        parts += encode_block(block)
        position += block.size_bytes
        held_bytes += block.size_bytes
        held_blocks += 1
        if held_bytes >= PIECE_BYTES or held_blocks >= PIECE_BLOCKS:
            yield _joined(parts, held_bytes)
            parts, held_bytes, held_blocks = [], 0, 0
        count += 1
        last = block
    if first is None or last is None:
        raise ValueError("a segment has at least one block")
    encoded = index.encode()
    footer = SegmentFooter(
        index_position=position,
        index_count=len(index.positions),
        index_checksum=value(encoded),
        block_count=count,
        first_offset=first.offset,
        next_offset=last.next_offset,
        first_time_ms=first.time_ms,
        last_time_ms=last.time_ms,
    )
    yield _joined([*parts, encoded, footer.encode()], held_bytes)


def _joined(parts: list[bytes], size_bytes: int) -> tuple[bytes, ...]:
    """Join small parts: each by itself would cost more."""
    is_large = size_bytes > JOINED_BYTES_MAX * len(parts)
    return tuple(parts) if is_large else (b"".join(parts),)
