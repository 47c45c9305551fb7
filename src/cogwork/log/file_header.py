"""The first octets of a file of the write-ahead log."""

from __future__ import annotations

from struct import Struct

from cogwork.log.errors import ForeignFile, LogCorrupt
from cogwork.log.header import HeaderFormat

__all__ = (
    "CONTAINER_ID_BYTES_MAX",
    "FIRST_KEY",
    "HEADER_BYTES",
    "KEY_BYTES",
    "FileHeader",
    "check_header",
)

VERSION = 2
"""Files of version 1 have no key of their own."""

CONTAINER_ID_BYTES_MAX = 64
HEADER_BYTES = 128
KEY_BYTES = 8
FIRST_KEY = bytes.fromhex("c06a3e81f4d92b57")
"""Of all files of version 1."""

_FORMAT = HeaderFormat(b"cogwkwal", VERSION, HEADER_BYTES, "file of a write-ahead log")
_FIELDS = Struct(f">QB{CONTAINER_ID_BYTES_MAX}sQ{KEY_BYTES}s")


class FileHeader:
    """Whose file it is, and which one.

    Attributes:
        container_id: Whose.
        number: Which one, from 1.
        size_bytes: How large it was made; 0 where that is not known.
        key: What the log's marks hold, by which they are known; nobody else does know it.
    """

    __slots__ = ("container_id", "key", "number", "size_bytes")

    def __init__(
        self, container_id: str, number: int, size_bytes: int = 0, key: bytes = FIRST_KEY
    ) -> None:
        """Describe a file.

        Args:
            container_id: Whose.
            number: Which one.
            size_bytes: How large it is made.
            key: The log's.

        Raises:
            ValueError: The id is empty or too long.
        """
        if not 1 <= len(container_id.encode()) <= CONTAINER_ID_BYTES_MAX:
            raise ValueError(f"a container id has 1 to {CONTAINER_ID_BYTES_MAX} octets")
        self.container_id = container_id
        self.number = number
        self.size_bytes = size_bytes
        self.key = key

    def numbered(self, number: int) -> FileHeader:
        """Return the same for another file of the log."""
        return FileHeader(self.container_id, number, self.size_bytes, self.key)

    def encode(self) -> bytes:
        """Return the header."""
        name = self.container_id.encode()
        fields = (self.number, len(name), name, self.size_bytes, self.key)
        return _FORMAT.encode(_FIELDS.pack(*fields))

    @classmethod
    def decode(cls, data: bytes, file: str) -> FileHeader:
        """Read a header.

        Args:
            data: A file's first octets.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is none.
            UnsupportedVersion: It has another version.
        """
        number, size, name, size_bytes, key = _FIELDS.unpack_from(_FORMAT.decode(data, file))
        container_id = name[:size].decode(errors="replace")
        return cls(container_id, number, size_bytes, key if any(key) else FIRST_KEY)


def check_header(data: bytes, file: str, expected: FileHeader) -> FileHeader:
    """Make sure that a file is the one that is meant; return its header.

    Args:
        data: All that it holds.
        file: Its name.
        expected: Whose it is to be, and which one.

    Raises:
        LogCorrupt: It is none, or has another one's name, or is shorter than it was made.
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
    if len(data) < header.size_bytes:
        raise LogCorrupt(file, len(data), f"it is cut short, and had {header.size_bytes} octets")
    return header
