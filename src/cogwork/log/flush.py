"""What one turn of the loop appended, on its way to the disk."""

from __future__ import annotations

from cogwork.log.position import number_of, position_of

__all__ = ("Flush",)


class Flush:
    """Octets for one file.

    Attributes:
        fd: The file's descriptor.
        data: What.
        end_lsn: Where the log goes on.
        oldest_number: The oldest file that is needed, as its mark says.
        is_done: Whether it is durable, as far as it alone is concerned.
    """

    __slots__ = ("data", "end_lsn", "fd", "is_done", "oldest_number")

    def __init__(self, fd: int, data: bytes, end_lsn: int, oldest_number: int) -> None:
        """Describes a flush; the arguments are the attributes."""
        self.fd = fd
        self.data = data
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
        return position_of(self.end_lsn) - len(self.data)
