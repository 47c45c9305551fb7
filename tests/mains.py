"""A disk whose power may be cut, for tests of what is found after that."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from cogwork.dataplane.disk import SYNC, WRITE

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from cogwork.log.disk_queue import Octets

SECTOR_BYTES = 512

Files = dict[str, bytes]
"""What a directory holds, by name."""


def put(path: Path, files: Files) -> Path:
    """Make a directory that holds files, and nothing else."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


class Mains:
    """A disk thread that writes when it is asked what is done, and knows what is synchronised."""

    def __init__(self) -> None:
        self.synced: dict[int, bytes] = {}
        self.waiting: list[tuple[int, int, int, Octets | int, bool]] = []
        self.ticket = 0
        self.event, self.behind = os.pipe()

    def fileno(self) -> int:
        return self.event

    def submit(self, fd: int, offset: int, data: Octets, sync: bool) -> int:
        return self._queue(fd, offset, data, sync)

    def allocate(self, fd: int, size_bytes: int, sync: bool) -> int:
        return self._queue(fd, 0, size_bytes, sync)

    def _queue(self, fd: int, offset: int, what: Octets | int, sync: bool) -> int:
        self.ticket += 1
        self.waiting.append((self.ticket, fd, offset, what, sync))
        os.write(self.behind, b"x")
        return self.ticket

    def completed(self) -> list[tuple[int, int, int]]:
        if self.waiting:
            os.read(self.event, 1 << 16)
        self._write()
        done = []
        for ticket, fd, _, _, sync in self.waiting:
            if sync and not os.path.isdir(f"/proc/self/fd/{fd}"):
                self.synced[os.fstat(fd).st_ino] = os.pread(fd, 1 << 20, 0)
            done.append((ticket, 0, SYNC if sync else WRITE))
        self.waiting = []
        return done

    def _write(self) -> None:
        for _, fd, offset, what, _ in self.waiting:
            if isinstance(what, int):
                os.truncate(fd, max(what, os.fstat(fd).st_size))
            elif what:
                os.pwrite(fd, what if isinstance(what, bytes) else b"".join(what), offset)

    def close(self) -> None:
        os.close(self.event)
        os.close(self.behind)

    def trust(self, path: Path) -> None:
        """Take all files of a directory for synchronised."""
        for file in path.glob("*.*"):
            self.synced[file.stat().st_ino] = file.read_bytes()

    def halt(self, path: Path) -> tuple[Files, Files]:
        """End in the middle of the writes that wait.

        Returns:
            The directory's files as they are synchronised, and with all that was to be written.
        """
        self._write()
        written = {file.name: file.read_bytes() for file in path.glob("*.*")}
        synced = {
            name: self.synced.get((path / name).stat().st_ino, b"").ljust(len(data), b"\0")
            for name, data in written.items()
        }
        return synced, written


def any_sectors(synced: Files, written: Files, chance: random.Random) -> Files:
    """Return what is left after a power cut: of what is not synchronised, any sectors."""
    return {
        name: b"".join(
            (data if chance.random() < 0.5 else synced[name])[at : at + SECTOR_BYTES]
            for at in range(0, len(data), SECTOR_BYTES)
        )
        for name, data in written.items()
    }
