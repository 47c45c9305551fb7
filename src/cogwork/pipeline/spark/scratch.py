"""A directory for what a driver's process and its JVM leave on disk while they run.

Theory of operation. All of it (the start script of Java, the log's configuration, Spark's blocks
and the libraries that the JVM unpacks) lies in one directory, which goes when the process ends in
order. A process that was killed leaves it; the next one that starts takes it away. Whether its
owner lives a lock says, which the system takes back with the process: process ids are used again,
and those of another container mean nothing here.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ("scratch", "sweep")

PREFIX = "cogwork-spark-"

LOCK = "lock"

AGE_S_MIN = 60.0
"""One that is younger may just be being made, and its lock not be held yet."""


class _Own(NamedTuple):
    """A directory; the lock's file is open as long as the process lives."""

    path: Path
    process: int
    lock: int


_made: list[_Own] = []


def scratch() -> Path:
    """Return the directory of this process, which is made when it is asked for first."""
    if not _made or _made[-1].process != os.getpid() or not _made[-1].path.exists():
        root = Path(tempfile.gettempdir())
        sweep(root)
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        lock = os.open(path / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        _made.append(_Own(path, os.getpid(), lock))
        atexit.register(_remove, _made[-1])
    return _made[-1].path


def _remove(own: _Own) -> None:
    if own.process == os.getpid():  # and no fork of it
        shutil.rmtree(own.path, ignore_errors=True)


def sweep(root: Path) -> None:
    """Remove the directories of processes of this user that are no more.

    Args:
        root: Where they are.
    """
    for path in root.glob(f"{PREFIX}*"):
        try:
            about = path.lstat()
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < AGE_S_MIN:
                continue
            with (path / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # its owner lives, or another sweep was quicker
            continue
