"""A block of a segment: octets with their place in the stream, opaque to the log."""

from __future__ import annotations

from struct import Struct

import msgspec
from google_crc32c import extend, value

__all__ = ("BLOCK_OVERHEAD_BYTES", "Block", "block_bytes", "encode_block", "read_block")

_HEAD = Struct(">IIQIq")
"""Checksum of the rest, length of the data, first offset, count, time."""

_REST = Struct(">IQIq")
_LENGTH = Struct(">I")
CHECKSUM_BYTES = 4

BLOCK_OVERHEAD_BYTES = _HEAD.size
"""What a block takes besides its data."""


class Block(msgspec.Struct, gc=False):
    """What was sealed.

    Attributes:
        offset: Of its first record.
        count: How many records it holds; at least one.
        time_ms: Of all of them, in milliseconds since 1970 (UTC).
        data: The records, in whatever form.
        before: Octets that stand before them, in a block that is to be sealed: so nobody has to
            join the two. In one that was read all is in `data`.
    """

    offset: int
    count: int
    time_ms: int
    data: bytes
    before: bytes = b""

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        return self.offset + self.count

    @property
    def size_bytes(self) -> int:
        """What it takes in a segment."""
        return BLOCK_OVERHEAD_BYTES + len(self.before) + len(self.data)


def encode_block(block: Block) -> tuple[bytes, bytes, bytes]:
    """Return a block's form on disk, in pieces to be joined."""
    length = len(block.before) + len(block.data)
    rest = _REST.pack(length, block.offset, block.count, block.time_ms) + block.before
    checksum = extend(value(rest), block.data)
    return checksum.to_bytes(CHECKSUM_BYTES, "big"), rest, block.data


def block_bytes(data: bytes, at: int) -> int:
    """Return how much a block takes that begins here, as it says itself, unchecked.

    At least the size of what stands before its data, also where that is not whole.
    """
    if at + BLOCK_OVERHEAD_BYTES > len(data):
        return BLOCK_OVERHEAD_BYTES
    return BLOCK_OVERHEAD_BYTES + int(_LENGTH.unpack_from(data, at + CHECKSUM_BYTES)[0])


def read_block(data: bytes, at: int) -> Block | None:
    """Read a block and check it.

    Args:
        data: A part of a segment.
        at: Where in `data` the block begins.

    Returns:
        None where there is none that is whole.
    """
    start = at + BLOCK_OVERHEAD_BYTES
    if start > len(data):
        return None
    checksum, length, offset, count, time_ms = _HEAD.unpack_from(data, at)
    if start + length > len(data):
        return None
    body = data[start : start + length]
    if extend(value(data[at + CHECKSUM_BYTES : start]), body) != checksum:
        return None
    return Block(offset, count, time_ms, body)
