"""The last octets of a segment: what it holds, and where its index is."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from struct import Struct

from google_crc32c import value

from cogwork.log.errors import LogCorrupt

__all__ = ("SEGMENT_FOOTER_BYTES", "SegmentFooter")

MAGIC = b"cogwkend"
_FIELDS = Struct(">QIIIQQqq")
_CHECKSUM = Struct(">I")

SEGMENT_FOOTER_BYTES = len(MAGIC) + _CHECKSUM.size + _FIELDS.size


@dataclass(frozen=True, slots=True)
class SegmentFooter:
    """What a segment holds.

    Attributes:
        index_position: Where in the file the index begins, and the blocks end.
        index_count: How many entries the index has.
        index_checksum: Of the index.
        block_count: How many blocks there are.
        first_offset: Of the first record.
        next_offset: After the last record.
        first_time_ms: Of the first record.
        last_time_ms: Of the last record.
    """

    index_position: int
    index_count: int
    index_checksum: int
    block_count: int
    first_offset: int
    next_offset: int
    first_time_ms: int
    last_time_ms: int

    def encode(self) -> bytes:
        """Return the footer."""
        fields = _FIELDS.pack(*astuple(self))
        return MAGIC + _CHECKSUM.pack(value(fields)) + fields

    @classmethod
    def decode(cls, data: bytes, file: str, position: int) -> SegmentFooter:
        """Read a footer.

        Args:
            data: A file's last octets.
            file: Its name, for errors.
            position: Where in it they are, for errors.

        Raises:
            LogCorrupt: It is none.
        """
        body = len(MAGIC) + _CHECKSUM.size
        if len(data) != SEGMENT_FOOTER_BYTES or data[: len(MAGIC)] != MAGIC:
            raise LogCorrupt(file, position, "a segment's end is missing")
        (checksum,) = _CHECKSUM.unpack_from(data, len(MAGIC))
        if value(data[body:]) != checksum:
            raise LogCorrupt(file, position, "the footer's checksum is wrong")
        return cls(*_FIELDS.unpack_from(data, body))
