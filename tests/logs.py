"""Write-ahead logs for tests, on real files, with disks that fail when they are told to."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from cogwork.dataplane.disk import SYNC, WRITE, Disk
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.wal import Wal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cogwork.log.disk_queue import Octets
    from cogwork.log.record import Record

CONTAINER = "north"


class FaultyDisk:
    """A disk thread that reports what a test wants.

    Attributes:
        write_errors: For each write to come an errno, 0 for none; after the last one none fails.
        sync_error: What every synchronisation reports, where it is not 0.
        allocation_error: What every reservation of space reports, where it is not 0.
    """

    def __init__(self, capacity_bytes: int = 64 << 20) -> None:
        self.disk = Disk(capacity_bytes)
        self.write_errors: list[int] = []
        self.sync_error = 0
        self.allocation_error = 0
        self._faults: dict[int, tuple[int, int]] = {}

    def fileno(self) -> int:
        return self.disk.fileno()

    def submit(self, fd: int, offset: int, data: Octets, sync: bool) -> int:
        error = self.write_errors.pop(0) if data and self.write_errors else 0
        if error:
            return self._fault(fd, error, WRITE)
        if sync and self.sync_error:
            return self._fault(fd, self.sync_error, SYNC)
        return self.disk.submit(fd, offset, data, sync)

    def allocate(self, fd: int, size_bytes: int, sync: bool) -> int:
        if self.allocation_error:
            return self._fault(fd, self.allocation_error, WRITE)
        return self.disk.allocate(fd, size_bytes, sync)

    def completed(self) -> list[tuple[int, int, int]]:
        return [
            (ticket, *self._faults.pop(ticket, (error, step)))
            for ticket, error, step in self.disk.completed()
        ]

    def close(self) -> None:
        self.disk.close()

    def _fault(self, fd: int, error: int, step: int) -> int:
        ticket = self.disk.submit(fd, 0, b"", False)
        self._faults[ticket] = (error, step)
        return ticket


NO_SPACE = errno.ENOSPC


class Log:
    """A log with all that it needs; what it held at the start is in `found`."""

    def __init__(self, path: Path, container_id: str = CONTAINER, **options: Any) -> None:
        self.disk = FaultyDisk()
        self.queue = DiskQueue(self.disk)
        self.events: list[object] = []
        self.lows: list[bool] = []
        try:
            self.wal = Wal(Directory(path), self.queue, container_id, **options)
            self.wal.on_low = self.lows.append
            self.wal.on_full = self.events.append
            self.wal.on_failure = self.events.append
            self.found: list[Record] = list(self.wal.recover())
        except BaseException:
            self.queue.close()
            raise
        self.queue.finish()

    def put(self, *payloads: bytes, group: int = 1) -> list[int]:
        """Append one flush of records, and wait for it."""
        lsns = [self.wal.append(group, 1, 0, 0, payload) for payload in payloads]
        self.wal.flush()
        self.queue.finish()
        return lsns

    def payloads(self) -> list[bytes]:
        return [record.payload for record in self.found]

    def close(self) -> None:
        self.wal.close()
        self.queue.close()

    def abandon(self) -> None:
        """End as a process does that is killed: without a last word."""
        self.queue.finish()
        self.wal._is_open = False
        self.wal.close()
        self.queue.close()


def opened(
    path: Path, act: Callable[[Log], object] = lambda _: None, **options: Any
) -> list[bytes]:
    """Open a log, does something with it, closes it, and return what it held at first."""
    log = Log(path, **options)
    act(log)
    log.close()
    return log.payloads()
