"""The next file of the write-ahead log, made ready while the present one fills.

Theory of operation. A file is made under a temporary name: a new one, or one that nobody needs any
more; space is reserved, the header is written and synchronised. Then it gets its own name, and once
that is synchronised it can be used. So a file with a log's name always has its header, and a log
that has gone round its files once does not depend on free space.

Space that is only reserved has never been written: the first write to each part of it changes what
the file system knows of the file, and that has to go to the disk with it. A log that synchronises
often has its next file filled with zeros first (`fill`). One that was used before has been written
already.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from cogwork.log.disk_queue import DiskQueue, Operation
from cogwork.log.file_header import HEADER_BYTES, FileHeader
from cogwork.log.file_name import TEMPORARY_NAME, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from cogwork.log.directory import Directory

__all__ = ("Reserve", "is_full", "may_pass")

FILL_BYTES = 256 << 10
"""How much of a file is filled at once: what others wait for meanwhile is a fraction of a
millisecond."""

_ZEROS = bytes(FILL_BYTES)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no space."""
    return error.errno in _FULL


def may_pass(error: OSError) -> bool:
    """Whether a file that could not be made for an error can perhaps be made later.

    Space, descriptors and memory come back; until then the log goes on in its present file.
    """
    return is_full(error) or error.errno in _SCARCE


class Reserve:
    """Makes the next file.

    Attributes:
        fd: Of the file that is ready; None while there is none, or it is being filled.
        number: Of the file that is ready, or is being made.
        is_filled: Whether each part of that file was written before.
        error: Why the last one could not be made; None again when one is.
        spare: The number of a file that was to become this one, while it still has its own name.
    """

    def __init__(self, directory: Directory, queue: DiskQueue, header: FileHeader) -> None:
        """Start with nothing ready.

        Args:
            directory: Where.
            queue: Does the waiting.
            header: Of each file, but for its number.
        """
        self.fd: int | None = None
        self.number = 0
        self.is_filled = False
        self.error: OSError | None = None
        self.spare: int | None = None
        self._directory = directory
        self._queue = queue
        self._header = header
        self._file_bytes = header.size_bytes
        self._is_busy = False
        self._is_wanted = False

    def prepare(self, number: int, spare: int | None, done: Callable[[], None]) -> None:
        """Begin to make a file ready, unless that has begun.

        Args:
            number: Which one.
            spare: The number of a file that nobody needs any more, which becomes this one.
            done: Called in the end, also where it failed.
        """
        self.number = number
        self.spare = spare
        self.is_filled = spare is not None
        self._is_wanted = False
        self._start(self.making(number, spare), done)

    def fill(self, done: Callable[[], None]) -> None:
        """Begin to write zeros to the file that is ready, which none can take meanwhile.

        Args:
            done: Called in the end, also where it failed, or `hurry` has ended it before.
        """
        assert self.fd is not None
        fd, self.fd = self.fd, None
        self._start(self._filling(fd), done)

    def hurry(self) -> None:
        """Leave the file as it is, filled or not, so that it can be taken as soon as may be."""
        self._is_wanted = True

    def _start(self, steps: Generator[Operation, None, int], done: Callable[[], None]) -> None:
        def ready(fd: int) -> None:
            self._is_busy = False
            self.error = None
            self.fd = fd
            done()

        def failed(error: Exception) -> None:
            assert isinstance(error, OSError)
            self._is_busy = False
            self.error = error
            done()

        self._is_busy = True
        self._queue.start(steps, ready, failed)

    @property
    def is_idle(self) -> bool:
        """Whether none is ready, nor being made."""
        return self.fd is None and not self._is_busy

    @property
    def can_fill(self) -> bool:
        """Whether one is ready that was only reserved, and there is time to fill it."""
        return self.fd is not None and not self.is_filled and not self._is_wanted

    def take(self) -> int:
        """Give away the file that is ready."""
        assert self.fd is not None
        fd, self.fd = self.fd, None
        return fd

    def making(self, number: int, spare: int | None) -> Generator[Operation, None, int]:
        """Make a file step by step, and return its descriptor."""
        directory = self._directory
        if spare is None:
            fd = directory.create(TEMPORARY_NAME)
        else:
            fd = directory.open(file_name(spare), for_writing=True)
        header = self._header.numbered(number).encode()
        try:
            if spare is not None:
                directory.rename(file_name(spare), TEMPORARY_NAME)
                self.spare = None
            yield Operation.allocation(fd, self._file_bytes)
            yield Operation(fd, 0, header, sync=True)
            directory.rename(TEMPORARY_NAME, file_name(number))
            yield Operation.sync_of(directory.fd)
        except OSError:
            directory.close_file(fd)
            directory.remove(TEMPORARY_NAME)
            directory.remove(file_name(number))
            raise
        return fd

    def _filling(self, fd: int) -> Generator[Operation, None, int]:
        """Fill a file piece by piece while nobody wants it, and return its descriptor."""
        position = HEADER_BYTES
        try:
            while position < self._file_bytes and not self._is_wanted:
                size_bytes = min(FILL_BYTES, self._file_bytes - position)
                yield Operation(fd, position, _ZEROS[:size_bytes], sync=True)
                position += size_bytes
        except OSError as error:
            if not is_full(error):
                self._directory.close_file(fd)
                raise
            position = self._file_bytes  # the file system keeps no space for it: nothing is gained
        self.is_filled = position >= self._file_bytes
        return fd
