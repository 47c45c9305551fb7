"""The first octets of a file of the write-ahead log."""

from __future__ import annotations

from struct import Struct

from cogwork.log.errors import ForeignFile, LogCorrupt
from cogwork.log.header import HeaderFormat

__all__ = ("CONTAINER_ID_BYTES_MAX", "HEADER_BYTES", "VERSION", "FileHeader", "check_header")

VERSION = 1
CONTAINER_ID_BYTES_MAX = 64
HEADER_BYTES = 128

_FORMAT = HeaderFormat(b"cogwkwal", VERSION, HEADER_BYTES, "file of a write-ahead log")
_FIELDS = Struct(f">QB{CONTAINER_ID_BYTES_MAX}s")


class FileHeader:
    """Whose file it is, and which one.

    Attributes:
        container_id: Whose.
        number: Which one, from 1.
    """

    __slots__ = ("container_id", "number")

    def __init__(self, container_id: str, number: int) -> None:
        """Describes a file.

        Args:
            container_id: Whose.
            number: Which one.

        Raises:
            ValueError: The id is empty or too long.
        """
        if not 1 <= len(container_id.encode()) <= CONTAINER_ID_BYTES_MAX:
            raise ValueError(f"a container id has 1 to {CONTAINER_ID_BYTES_MAX} octets")
        self.container_id = container_id
        self.number = number

    def encode(self) -> bytes:
        """Returns the header."""
        name = self.container_id.encode()
        return _FORMAT.encode(_FIELDS.pack(self.number, len(name), name))

    @classmethod
    def decode(cls, data: bytes, file: str) -> FileHeader:
        """Reads a header.

        Args:
            data: A file's first octets.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is none.
            UnsupportedVersion: It has another version.
        """
        number, size, name = _FIELDS.unpack_from(_FORMAT.decode(data, file))
        return cls(name[:size].decode(errors="replace"), number)


def check_header(data: bytes, file: str, expected: FileHeader) -> None:
    """Makes sure that a file is the one that is meant.

    Args:
        data: Its first octets.
        file: Its name.
        expected: Whose it is to be, and which one.

    Raises:
        LogCorrupt: It is none, or has another one's name.
        UnsupportedVersion: It has another version.
        ForeignFile: It is somebody else's.
    """
    header = FileHeader.decode(data, file)
    if header.container_id != expected.container_id:
        raise ForeignFile(
            file, f"container {header.container_id}", f"container {expected.container_id}"
        )
    if header.number != expected.number:
        raise LogCorrupt(file, 0, f"it has the name of another file: it is number {header.number}")
