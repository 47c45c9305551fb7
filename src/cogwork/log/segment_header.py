"""The first octets of a segment."""

from __future__ import annotations

from struct import Struct

from google_crc32c import extend, value

from cogwork.log.errors import ForeignFile, LogCorrupt, UnsupportedVersion

__all__ = ("SEGMENT_HEADER_BYTES", "SEGMENT_VERSION", "STREAM_ID_BYTES", "SegmentHeader")

MAGIC = b"cogwkseg"
SEGMENT_VERSION = 1
STREAM_ID_BYTES = 16
SEGMENT_HEADER_BYTES = 64

_START = Struct(">8sHH")
"""Stays in every version: the magic, the version, the header's size."""

_CHECKSUM = Struct(">I")
_REST = Struct(">16sQ")
_PADDING = bytes(SEGMENT_HEADER_BYTES - _START.size - _CHECKSUM.size - _REST.size)


class SegmentHeader:
    """Whose segment it is, and where it begins.

    Attributes:
        stream_id: Whose: 16 octets.
        first_offset: Of its first record.
    """

    __slots__ = ("first_offset", "stream_id")

    def __init__(self, stream_id: bytes, first_offset: int) -> None:
        """Describes a segment; the arguments are the attributes."""
        assert len(stream_id) == STREAM_ID_BYTES
        self.stream_id = stream_id
        self.first_offset = first_offset

    def encode(self) -> bytes:
        """Returns the header."""
        start = _START.pack(MAGIC, SEGMENT_VERSION, SEGMENT_HEADER_BYTES)
        rest = _REST.pack(self.stream_id, self.first_offset) + _PADDING
        return start + _CHECKSUM.pack(extend(value(start), rest)) + rest

    @classmethod
    def decode(cls, data: bytes, file: str) -> SegmentHeader:
        """Reads a header.

        Args:
            data: A file's first octets.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is none.
            UnsupportedVersion: It has another version.
        """
        if len(data) < SEGMENT_HEADER_BYTES or data[: len(MAGIC)] != MAGIC:
            raise LogCorrupt(file, 0, "this is no segment")
        _, version, _ = _START.unpack_from(data)
        if version != SEGMENT_VERSION:
            raise UnsupportedVersion(file, version, SEGMENT_VERSION)
        body = _START.size + _CHECKSUM.size
        (checksum,) = _CHECKSUM.unpack_from(data, _START.size)
        if extend(value(data[: _START.size]), data[body:SEGMENT_HEADER_BYTES]) != checksum:
            raise LogCorrupt(file, 0, "the header's checksum is wrong")
        return cls(*_REST.unpack_from(data, body))

    def check(self, stream_id: bytes, file: str) -> None:
        """Makes sure that it is a segment of a stream.

        Raises:
            ForeignFile: It is another one's.
        """
        if self.stream_id != stream_id:
            raise ForeignFile(file, f"stream {self.stream_id.hex()}", f"stream {stream_id.hex()}")
