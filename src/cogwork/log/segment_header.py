"""The first octets of a segment."""

from __future__ import annotations

from struct import Struct

from cogwork.log.errors import ForeignFile
from cogwork.log.header import HeaderFormat

__all__ = ("SEGMENT_HEADER_BYTES", "SEGMENT_VERSION", "STREAM_ID_BYTES", "SegmentHeader")

SEGMENT_VERSION = 1
STREAM_ID_BYTES = 16
SEGMENT_HEADER_BYTES = 64

_FORMAT = HeaderFormat(b"cogwkseg", SEGMENT_VERSION, SEGMENT_HEADER_BYTES, "segment")
_FIELDS = Struct(f">{STREAM_ID_BYTES}sQ")


class SegmentHeader:
    """Whose segment it is, and where it begins.

    Attributes:
        stream_id: Whose: 16 octets.
        first_offset: Of its first record.
    """

    __slots__ = ("first_offset", "stream_id")

    def __init__(self, stream_id: bytes, first_offset: int) -> None:
        """Describe a segment; the arguments are the attributes."""
        assert len(stream_id) == STREAM_ID_BYTES
        self.stream_id = stream_id
        self.first_offset = first_offset

    def encode(self) -> bytes:
        """Return the header."""
        return _FORMAT.encode(_FIELDS.pack(self.stream_id, self.first_offset))

    @classmethod
    def decode(cls, data: bytes, file: str) -> SegmentHeader:
        """Read a header.

        Args:
            data: A file's first octets.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is none.
            UnsupportedVersion: It has another version.
        """
        return cls(*_FIELDS.unpack_from(_FORMAT.decode(data, file)))

    def check(self, stream_id: bytes, file: str) -> None:
        """Make sure that it is a segment of a stream.

        Raises:
            ForeignFile: It is another one's.
        """
        if self.stream_id != stream_id:
            raise ForeignFile(file, f"stream {self.stream_id.hex()}", f"stream {stream_id.hex()}")
