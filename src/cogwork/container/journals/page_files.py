"""One queue's page files in its directory.

What writes and reads here waits for the disk: threads call it, and whoever may wait.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.container.journals.page_file import (
    HEADER_BYTES,
    BlockPlace,
    PageTable,
    encode_page_file,
)
from cogwork.log.directory import Directory
from cogwork.log.errors import FileMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cogwork.dataplane.queue.pages import Block

__all__ = ("OpenedPageFile", "PageFiles")

SUFFIX = ".page"


class OpenedPageFile:
    """A page file, as it is read.

    Attributes:
        level: The level of its items.
        blocks: Where they are.
        index: Of each item number, place and size.
    """

    def __init__(self, files: PageFiles, number: int, table: PageTable) -> None:
        """Describe a file; the table says what is in it."""
        self.level, self.blocks, self.index = table.level, table.blocks, table.index
        self._files = files
        self._number = number

    def read(self, block: int) -> bytes:
        """Read a block.

        Raises:
            LogError: It is not what was written.
            OSError: It cannot be read.
        """
        return self._files.read(self._number, self.blocks[block])


class PageFiles:
    """Those of one queue."""

    def __init__(self, folder: Path, group: int) -> None:
        """Name the place; nothing is made there yet.

        Args:
            folder: Where all queues have theirs.
            group: The queue's number in the log.
        """
        self._path = folder / str(group)
        self._group = group

    def numbers(self) -> list[int]:
        """List the files that are there."""
        names = [each.stem for each in self._path.glob(f"*{SUFFIX}")]
        return sorted(int(name) for name in names if name.isdecimal())

    def write(
        self, number: int, level: int, blocks: Sequence[Block], index: bytes
    ) -> list[BlockPlace]:
        """Write a file, and have it durable; return where its blocks are.

        Args:
            number: Its number.
            level: The level of its items.
            blocks: Them.
            index: Of each item number, place and size.

        Raises:
            OSError: It cannot be written; nothing of it is left.
        """
        parts, places = encode_page_file(self._group, number, level, blocks, index)
        with Directory(self._path) as directory:
            fd = directory.create(self._name(number))
            try:
                for part in parts:
                    _write_all(fd, part)
                os.fdatasync(fd)
                os.fsync(directory.fd)
            except OSError:
                self.remove([number])
                raise
            finally:
                os.close(fd)
        return places

    def open(self, number: int) -> OpenedPageFile:
        """Read what a file says of itself.

        Raises:
            LogError: It is not there, or damaged.
            OSError: It cannot be read.
        """
        file = self.path_of(number)
        head = self._read(number, 0, HEADER_BYTES)
        data = self._read(number, 0, PageTable.size_of(head, file))
        return OpenedPageFile(self, number, PageTable.decode(data, self._group, number, file))

    def read(self, number: int, place: BlockPlace) -> bytes:
        """Read a block of a file.

        Raises:
            LogError: It is not what was written.
            OSError: It cannot be read.
        """
        data = self._read(number, place.position, place.size_bytes)
        return place.check(data, self.path_of(number))

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove files that nobody needs; what cannot be removed is tried again at a start."""
        for number in numbers:
            with suppress(OSError):
                os.unlink(self.path_of(number))

    def remove_all(self) -> None:
        """Remove all of them."""
        shutil.rmtree(self._path, ignore_errors=True)

    def path_of(self, number: int) -> str:
        """Return where a file is."""
        return str(self._path / self._name(number))

    @staticmethod
    def _name(number: int) -> str:
        return f"{number:010}{SUFFIX}"

    def _read(self, number: int, position: int, size_bytes: int) -> bytes:
        try:
            fd = os.open(self.path_of(number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise FileMissing(self.path_of(number)) from error
        try:
            return os.pread(fd, size_bytes, position)
        finally:
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
