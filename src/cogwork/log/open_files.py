"""The files that hold a log: which there are, which are open, and which may be used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.log.errors import FileMissing, LogCorrupt
from cogwork.log.file_name import file_name
from cogwork.log.position import number_of, position_of
from cogwork.log.record import Record, read_record, record_bytes

if TYPE_CHECKING:
    from cogwork.log.directory import Directory

__all__ = ("OpenFiles",)

FIRST_READ_BYTES = 4096


class OpenFiles:
    """The files of one log, by their numbers, the newest of which is appended to."""

    def __init__(self, directory: Directory) -> None:
        """Initialize it; it knows of none yet.

        Args:
            directory: Where they are.
        """
        self._directory = directory
        self._fds: dict[int, int] = {}
        self._spares: list[int] = []
        self._oldest = 1

    def begin_at(self, oldest: int) -> None:
        """Say which is the oldest that was found."""
        self._oldest = oldest

    def add(self, number: int, fd: int) -> None:
        """Take one that is open."""
        self._fds[number] = fd

    def fd(self, number: int) -> int:
        """Return the descriptor of one that is open."""
        return self._fds[number]

    def retire(self, oldest: int) -> bool:
        """Let go of those below a number; return whether one is there to be used again."""
        if oldest > self._oldest:
            self._let_go(oldest)
            self._oldest = oldest
        return bool(self._spares)

    def _let_go(self, oldest: int) -> None:
        for number in range(self._oldest, oldest):
            fd = self._fds.pop(number, None)
            if fd is not None:
                self._directory.close_file(fd)
            if self._spares:
                self._directory.remove(file_name(number))
            else:
                self._spares.append(number)

    def take_spare(self) -> int | None:
        """Return one that may be used again, and is nobody's from now on."""
        return self._spares.pop(0) if self._spares else None

    def put_back(self, number: int) -> None:
        """Take one back that was not used after all."""
        self._spares.insert(0, number)

    def read(self, lsn: int, newest: int) -> Record:
        """Read a record that is on the disk.

        Args:
            lsn: Its place.
            newest: The number of the last file.

        Raises:
            LogCorrupt: There is none, or it cannot be read.
            FileMissing: Its file is not there any more.
        """
        number, position = number_of(lsn), position_of(lsn)
        name = file_name(number)
        if not self._oldest <= number <= newest:
            raise FileMissing(self._directory.path_of(name))
        fd = self._fds.get(number)
        if fd is None:
            fd = self._fds[number] = self._directory.open(name)
        data = self._directory.read_at(fd, position, FIRST_READ_BYTES)
        size_bytes = record_bytes(data)
        # A length that is damaged may say anything, and its record is read whole.
        if len(data) < size_bytes <= self._directory.size_of(name) - position:
            data = self._directory.read_at(fd, position, size_bytes)
        record = read_record(data, position, number, position)
        if record is None:
            raise LogCorrupt(self._directory.path_of(name), position, "there is no record here")
        return record

    def close(self) -> None:
        """Close all of them."""
        for fd in self._fds.values():
            self._directory.close_file(fd)
        self._fds.clear()
