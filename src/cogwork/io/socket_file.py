"""The file by which a Unix-domain socket is reached."""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ("PATH_BYTES_MAX", "SocketFile", "check_path", "remove_abandoned")

PATH_BYTES_MAX = 107
"""What fits the address of a Unix-domain socket, with the zero at its end."""


class SocketFile:
    """A file that a socket was just bound to."""

    def __init__(self, path: str) -> None:
        """Initialize it; it remembers which file it is.

        Args:
            path: Of the file.
        """
        self._path = Path(path)
        self._number = self._path.lstat().st_ino

    def remove(self) -> None:
        """Remove the file, unless another one has been put in its place."""
        with suppress(OSError):
            if self._path.lstat().st_ino == self._number:
                self._path.unlink()


def check_path(path: str) -> None:
    """Look whether an address has room for a path; the system's own words name no limit.

    Raises:
        OSError: It has not.
    """
    size_bytes = len(os.fsencode(path))
    if size_bytes > PATH_BYTES_MAX:
        raise OSError(f"a socket's path has at most {PATH_BYTES_MAX} bytes, and not {size_bytes}")


def remove_abandoned(path: str) -> None:
    """Remove a socket's file that nobody listens at any more; other files stay.

    Raises:
        OSError: Somebody listens there; or the file is none of a socket, or cannot be removed.
    """
    try:
        is_socket = stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise FileExistsError(errno.EEXIST, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except BlockingIOError:
            pass  # so many wait to be accepted
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
