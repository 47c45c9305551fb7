"""What one turn of the loop appended, on its way to the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.log.position import number_of, position_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.log.disk_queue import Octets

__all__ = ("Flush",)

JOINED_BYTES_MAX = 2048
"""Parts that are larger on average go to the disk as they are: it would cost more to join them."""


class Flush:
    """Octets for one file.

    Attributes:
        fd: The file's descriptor.
        data: What, in one piece or in several.
        size_bytes: Of all of it.
        end_lsn: Where the log goes on.
        oldest_number: The oldest file that is needed, as its mark says.
        is_done: Whether it is durable, as far as it alone is concerned.
    """

    __slots__ = ("data", "end_lsn", "fd", "is_done", "oldest_number", "size_bytes")

    def __init__(
        self, fd: int, parts: Sequence[bytes], size_bytes: int, end_lsn: int, oldest_number: int
    ) -> None:
        """Describe a flush; the arguments are the attributes, but that data come in parts."""
        self.fd = fd
        is_large = size_bytes > JOINED_BYTES_MAX * len(parts)
        self.data: Octets = tuple(parts) if is_large else b"".join(parts)
        self.size_bytes = size_bytes
        self.end_lsn = end_lsn
        self.oldest_number = oldest_number
        self.is_done = False

    @property
    def number(self) -> int:
        """The file's number."""
        return number_of(self.end_lsn)

    @property
    def position(self) -> int:
        """Where in the file the data go."""
        return position_of(self.end_lsn) - self.size_bytes
