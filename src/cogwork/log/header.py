"""How every file of a log begins: what it is, in which version, under a checksum."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from google_crc32c import extend, value

from cogwork.log.errors import LogCorrupt, UnsupportedVersion

__all__ = ("HeaderFormat", "version_of")

_START = Struct(">8sHH")
"""Stays in every version: the magic, the version, the header's size."""

_CHECKSUM = Struct(">I")
_FIELDS_AT = _START.size + _CHECKSUM.size


def version_of(data: bytes) -> int:
    """Return the version of a file's format, which stands in its header."""
    return int(_START.unpack_from(data)[1])


class HeaderFormat(NamedTuple):
    """The header of one kind of file; the fields in it are the kind's own.

    Attributes:
        magic: Eight octets that no other kind begins with.
        version: Of the file's format, as it is written; those before it are read.
        size_bytes: The header's; zeros follow the fields.
        name: The kind's, for errors.
    """

    magic: bytes
    version: int
    size_bytes: int
    name: str

    def encode(self, fields: bytes) -> bytes:
        """Return a header that holds such fields."""
        start = _START.pack(self.magic, self.version, self.size_bytes)
        rest = fields.ljust(self.size_bytes - _FIELDS_AT, b"\0")
        return start + _CHECKSUM.pack(extend(value(start), rest)) + rest

    def decode(self, data: bytes, file: str) -> bytes:
        """Return the fields of a header, and the zeros behind them.

        Args:
            data: A file's first octets.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is none.
            UnsupportedVersion: It has another version.
        """
        if len(data) < self.size_bytes or data[: len(self.magic)] != self.magic:
            raise LogCorrupt(file, 0, f"this is no {self.name}")
        version = version_of(data)
        if not 0 < version <= self.version:
            raise UnsupportedVersion(file, version, self.version)
        (checksum,) = _CHECKSUM.unpack_from(data, _START.size)
        rest = data[_FIELDS_AT : self.size_bytes]
        if extend(value(data[: _START.size]), rest) != checksum:
            raise LogCorrupt(file, 0, "the header's checksum is wrong")
        return rest
