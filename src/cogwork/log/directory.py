"""A directory of log files: all that the log asks of the operating system, but for the disk thread.

What is here may wait for the disk for a moment; writing and synchronising, which wait for long, go
through the `DiskQueue`. A simulated world puts its own directory here.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from cogwork.log.errors import LogLocked

__all__ = ("Directory", "opened_privately")

LOCK_NAME = "lock"
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def opened_privately(path: str, flags: int) -> int:
    """Open a file for its owner alone, whatever the umask: an opener for the built-in `open`."""
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


class Directory:
    """Files by their names.

    Attributes:
        path: Where.
        fd: Of the directory itself, for synchronising its names.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_to_be_made: bool = True) -> None:
        """Open a directory; make it where it is not there.

        Args:
            path: Where.
            is_to_be_made: If not, it has to be there.

        Raises:
            FileNotFoundError: It is not there, and not to be made.
        """
        self.path = os.fspath(path)
        made = _make(Path(self.path)) if is_to_be_made else []
        self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        self._lock_fd = -1
        for each in made:
            _sync_directory(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def path_of(self, name: str) -> str:
        """Return where a file is, for people."""
        return str(Path(self.path) / name)

    def names(self) -> list[str]:
        """List the files, sorted."""
        return sorted(os.listdir(self.fd))

    def size_of(self, name: str) -> int:
        """Return a file's size in octets."""
        return os.stat(name, dir_fd=self.fd).st_size

    def create(self, name: str) -> int:
        """Make an empty file, or empty one, and return its descriptor."""
        return self._open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def _open(self, name: str, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_CLOEXEC, FILE_MODE, dir_fd=self.fd)
        except OSError as error:
            error.filename = self.path_of(name)  # it says what the file is called in here
            raise

    def open(self, name: str, *, for_writing: bool = False) -> int:
        """Open a file that is there, and return its descriptor."""
        return self._open(name, os.O_RDWR if for_writing else os.O_RDONLY)

    def close_file(self, fd: int) -> None:
        """Close a descriptor that nothing uses any more."""
        os.close(fd)

    def read_at(self, fd: int, position: int, size_bytes: int) -> bytes:
        """Read from an open file; less comes only at its end."""
        data = os.pread(fd, size_bytes, position)
        while 0 < len(data) < size_bytes:
            more = os.pread(fd, size_bytes - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def read(self, name: str, position: int = 0, size_bytes: int | None = None) -> bytes:
        """Read a file, or a part of it."""
        fd = self.open(name)
        try:
            if size_bytes is None:
                size_bytes = os.fstat(fd).st_size - position
            return self.read_at(fd, position, size_bytes)
        except OSError as error:  # of a descriptor, and so without a name
            raise OSError(error.errno, error.strerror, self.path_of(name)) from error
        finally:
            os.close(fd)

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, in place of any that has it."""
        os.rename(name, new_name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a file, where it is there."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def sync(self) -> None:
        """Have the present names be there after a power cut, and those that were removed not."""
        os.fsync(self.fd)

    def clear(self, last: str = "") -> None:
        """Remove all files, for good.

        Args:
            last: The one that goes when all others have gone for good, if it is there.
        """
        names = self.names()
        for name in names:
            if name != last:
                self.remove(name)
        if names:
            self.sync()
        if last:
            self.remove(last)

    def remove_all(self, last: str = "") -> None:
        """Remove all files, and the directory itself, and close it.

        Args:
            last: The file that goes when all others have gone for good.
        """
        self.clear(last)
        self.close()
        with suppress(FileNotFoundError):
            os.rmdir(self.path)

    def lock(self) -> None:
        """Keep other processes out for as long as this object is open.

        Raises:
            LogLocked: Another one was first.
            OSError: The file system has no locks, or the file cannot be written.
        """
        fd = self._open(LOCK_NAME, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 20, 0).decode(errors="replace").strip()
            os.close(fd)
            raise LogLocked(self.path, f"process {holder}" if holder else "another one") from None
        except OSError as error:  # as of a network's file system without locks
            os.close(fd)
            raise OSError(error.errno, error.strerror, self.path_of(LOCK_NAME)) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._lock_fd = fd

    def close(self) -> None:
        """Let the directory go, and the lock with it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _make(path: Path) -> list[Path]:
    """Make a directory and those above it; return those that got a new name."""
    changed = []
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
            changed.append(each.parent)
    return changed


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
