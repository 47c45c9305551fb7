"""The next file of the write-ahead log, made ready while the present one fills.

Theory of operation. A file is made under a temporary name: a new one, or one that nobody needs any
more; space is reserved, the header is written and synchronised. Then it gets its own name, and once
that is synchronised it can be used. So a file with a log's name always has its header, and a log
that has gone round its files once does not depend on free space.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from cogwork.log.disk_queue import DiskQueue, Operation
from cogwork.log.file_header import FileHeader
from cogwork.log.file_name import TEMPORARY_NAME, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from cogwork.log.directory import Directory

__all__ = ("Reserve", "is_full")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no space."""
    return error.errno in _FULL


class Reserve:
    """Makes the next file.

    Attributes:
        fd: Of the file that is ready; None while there is none.
        number: Of the file that is ready, or is being made.
        error: Why the last one could not be made; None again when one is.
    """

    def __init__(
        self, directory: Directory, queue: DiskQueue, container_id: str, file_bytes: int
    ) -> None:
        """Has nothing ready.

        Args:
            directory: Where.
            queue: Does the waiting.
            container_id: Whose log it is.
            file_bytes: How large a file is.
        """
        self.fd: int | None = None
        self.number = 0
        self.error: OSError | None = None
        self._directory = directory
        self._queue = queue
        self._container_id = container_id
        self._file_bytes = file_bytes
        self._is_busy = False

    def prepare(self, number: int, spare: int | None, done: Callable[[], None]) -> None:
        """Begins to make a file ready, unless that has begun.

        Args:
            number: Which one.
            spare: The number of a file that nobody needs any more, which becomes this one.
            done: Called in the end, also where it failed.
        """

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

        self.number = number
        self._is_busy = True
        self._queue.start(self.making(number, spare), ready, failed)

    @property
    def is_idle(self) -> bool:
        """Whether none is ready, nor being made."""
        return self.fd is None and not self._is_busy

    def take(self) -> int:
        """Gives away the file that is ready."""
        assert self.fd is not None
        fd, self.fd = self.fd, None
        return fd

    def making(self, number: int, spare: int | None) -> Generator[Operation, None, int]:
        """Makes a file step by step, and returns its descriptor."""
        directory = self._directory
        if spare is None:
            fd = directory.create(TEMPORARY_NAME)
        else:
            directory.rename(file_name(spare), TEMPORARY_NAME)
            fd = directory.open(TEMPORARY_NAME, for_writing=True)
        header = FileHeader(self._container_id, number).encode()
        try:
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
