"""What the files of a write-ahead log hold, read after a restart; it changes nothing.

Theory of operation. The newest mark says from which file on the log is needed, and up to where it
must be whole. From there records are read, file by file, up to the first that is not whole. Where
that is below what the mark says was durable, something is damaged; otherwise it is the torn end of
a log whose process was stopped in the middle, and what comes after was never reported as durable.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cogwork.log.errors import FileMissing, LogCorrupt
from cogwork.log.file_header import HEADER_BYTES, KEY_BYTES, FileHeader, check_header
from cogwork.log.file_name import file_name, file_numbers
from cogwork.log.mark import KIND_END, LOG_GROUP, Mark, find_newest_mark
from cogwork.log.position import lsn_of, number_of, position_of
from cogwork.log.record import scan_records

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from cogwork.log.directory import Directory
    from cogwork.log.record import Record

__all__ = ("Recovery",)


class Recovery:
    """Reads a log.

    Attributes:
        mark: The newest one.
        key: The log's; a new one where there is no log yet.
        numbers: Of all files, sorted.
        end_lsn: Where the log ends; known when all records have been read.
        last_record_end: Where the last record of a group ends; 0 where there is none.
    """

    def __init__(self, directory: Directory, container_id: str) -> None:
        """Find the newest mark.

        Args:
            directory: Where.
            container_id: Whose log it is to be.

        Raises:
            LogCorrupt: A file is damaged.
            ForeignFile: A file is of another container.
            UnsupportedVersion: A file has another version.
        """
        self._directory = directory
        self._container_id = container_id
        self.numbers = file_numbers(directory.names())
        self.mark = Mark(0, 1)
        self.key = b""
        for number in reversed(self.numbers):
            data, key = self._read(number)
            self.key = self.key or key
            mark = find_newest_mark(data, number, key)
            if mark is not None:
                self.mark = mark
                break
        self.key = self.key or os.urandom(KEY_BYTES)
        self.end_lsn = lsn_of(self.mark.oldest_number, HEADER_BYTES)
        self.last_record_end = 0

    @property
    def is_empty(self) -> bool:
        """Whether there never was a log."""
        return not self.numbers

    def records(self) -> Iterator[Record]:
        """Yield the records of all groups, up to the end.

        Raises:
            LogCorrupt: A record that was durable cannot be read.
            FileMissing: A file is not there.
        """
        number = self.mark.oldest_number
        while not self.is_empty:
            if number not in self.numbers:
                raise FileMissing(self._directory.path_of(file_name(number)))
            is_ended = yield from self._records_of(number)
            if not is_ended:
                break
            number += 1
        if self.end_lsn < self.mark.durable_lsn:
            name = file_name(number_of(self.end_lsn))
            raise LogCorrupt(
                self._directory.path_of(name),
                position_of(self.end_lsn),
                "a record that was durable cannot be read",
            )

    def _records_of(self, number: int) -> Generator[Record, None, bool]:
        """Yield a file's records; return whether the next file goes on."""
        self.end_lsn = lsn_of(number, HEADER_BYTES)
        data, _ = self._read(number)
        for record in scan_records(data, HEADER_BYTES, number):
            self.end_lsn = record.end_lsn
            if record.group != LOG_GROUP:
                self.last_record_end = record.end_lsn
                yield record
            elif record.kind == KIND_END:
                return True
        return False

    def _read(self, number: int) -> tuple[bytes, bytes]:
        """Return what a file holds, and its key."""
        name = file_name(number)
        data = self._directory.read(name)
        expected = FileHeader(self._container_id, number)
        return data, check_header(data, self._directory.path_of(name), expected).key
