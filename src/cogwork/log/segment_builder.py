"""Makes the octets of a segment."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from google_crc32c import value

from cogwork.log.block import Block, encode_block
from cogwork.log.segment_footer import SegmentFooter
from cogwork.log.segment_header import SEGMENT_HEADER_BYTES, SegmentHeader
from cogwork.log.segment_index import SegmentIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("PIECE_BYTES", "build_segment", "check_blocks")

PIECE_BYTES = 1 << 20


def check_blocks(blocks: Sequence[Block]) -> None:
    """Makes sure that blocks can be a segment.

    Raises:
        ValueError: There are none, or they do not follow each other in offset and time.
    """
    if not blocks:
        raise ValueError("a segment has at least one block")
    for before, block in pairwise(blocks):
        if block.offset != before.next_offset:
            raise ValueError(f"offset {before.next_offset} is next, not {block.offset}")
        if block.time_ms < before.time_ms:
            raise ValueError(f"the time of offset {block.offset} is before that of the one before")
    if any(block.count < 1 for block in blocks):
        raise ValueError("a block holds at least one record")


def build_segment(stream_id: bytes, blocks: Sequence[Block]) -> Iterator[bytes]:
    """Yields a segment in pieces of about a mebibyte.

    Args:
        stream_id: Whose it is.
        blocks: What it holds; they follow each other.
    """
    first, last = blocks[0], blocks[-1]
    index = SegmentIndex()
    parts = [SegmentHeader(stream_id, first.offset).encode()]
    position = SEGMENT_HEADER_BYTES
    held_bytes = position
    for block in blocks:
        index.note(block.offset, block.time_ms, position)
        parts += encode_block(block)
        position += block.size_bytes
        held_bytes += block.size_bytes
        if held_bytes >= PIECE_BYTES:
            yield b"".join(parts)
            parts, held_bytes = [], 0
    encoded = index.encode()
    footer = SegmentFooter(
        index_position=position,
        index_count=len(index.positions),
        index_checksum=value(encoded),
        block_count=len(blocks),
        first_offset=first.offset,
        next_offset=last.next_offset,
        first_time_ms=first.time_ms,
        last_time_ms=last.time_ms,
    )
    yield b"".join((*parts, encoded, footer.encode()))
