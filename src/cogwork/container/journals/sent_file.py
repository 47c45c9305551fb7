"""The file that says which attempts have gone out ahead of their records."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

from cogwork.dataplane.queue.sent_marks import SIZE_BYTES, SentMarks, read_marks

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.dataplane.core import Core

__all__ = ("SentFile",)

FILE_NAME = "sent"
FILE_MODE = 0o600


class SentFile:
    """`DIR/sent` of a data directory.

    Attributes:
        found: What an earlier life marked: (number, attempt) by the queue's group.
    """

    def __init__(self, folder: Path) -> None:
        """Read what is there, and makes room for what is to come.

        Args:
            folder: The data directory.

        Raises:
            OSError: The file cannot be made, or there is no space for it.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        fd = os.open(folder / FILE_NAME, flags, FILE_MODE)
        try:
            self.found = read_marks(os.pread(fd, SIZE_BYTES, 0))
            os.ftruncate(fd, SIZE_BYTES)
            os.posix_fallocate(fd, 0, SIZE_BYTES)  # a store must not find the disk full
            self._memory = mmap.mmap(fd, SIZE_BYTES)
        finally:
            os.close(fd)

    def marks(self, core: Core) -> SentMarks:
        """Return where attempts are marked from now on."""
        return SentMarks(core, memoryview(self._memory))
