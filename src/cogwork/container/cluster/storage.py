"""The data directory at work: the disk thread, the write-ahead log, the replicas' files.

DIR/wal/            the write-ahead log, one for everything
DIR/streams/GROUP/  what a replica of a stream keeps beside it
DIR/pages/GROUP/    what queues on disk have beyond memory (`container.journals.paging`)
DIR/sent            what queues have sent ahead of the log
DIR/backup/         hard links to what is being copied (`container.backup.source`)
DIR/exchanges       durable exchanges and bindings (`container.vhost.kept_exchanges`)
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.container.journals.sent_file import SentFile
from cogwork.dataplane.disk import Disk
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import DiskFull, DiskTooSmall, FileMissing
from cogwork.log.wal import LEAST_BYTES, Wal

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.log.errors import LogFailed
    from cogwork.log.record import Record

__all__ = ("Storage",)

TICK_S = 0.5

MIB = 1 << 20

log = logging.getLogger("cogwork")


class Storage:
    """Owned by the container; there is one where there is a data directory.

    Attributes:
        path: Where it is.
        aside: The way to the disk for what is large and nobody waits for: a thread of its own, so
            that no append waits for it.
        wal: The write-ahead log.
        was_empty: Whether nothing was kept there before.
        on_low: As the log's.
        on_full: Called with whether there is no space, when that changes.
        on_failure: Called when nothing can be written any more.
    """

    def __init__(self, data_dir: str, container_id: str) -> None:
        """Open the directory, which is this process's alone from now on.

        Args:
            data_dir: Where.
            container_id: Whose it is.

        Raises:
            LogError: Another process uses it, it is another container's, or it is damaged.
            OSError: It cannot be made.
        """
        self.path = Path(data_dir)
        self._demand_log()
        shutil.rmtree(self.path / "backup", ignore_errors=True)  # of a life that ended meanwhile
        self.was_empty = not self.groups() and not any((self.path / "wal").glob("*.wal"))
        self._queue = DiskQueue(Disk())
        self.aside = DiskQueue(Disk())
        try:
            folder = Directory(self.path / "wal")
            self.wal = Wal(folder, self._queue, container_id, aside=self.aside)
        except BaseException:
            self._close_queues()
            raise
        self.on_low: Callable[[bool], object] | None = None
        self.on_full: Callable[[bool], object] | None = None
        self.on_failure: Callable[[LogFailed], object] | None = None
        self.wal.on_low = self._low
        self.wal.on_full = self._full
        self.wal.on_failure = self._failed
        self._is_low = False
        self._timer: asyncio.TimerHandle | None = None

    def _demand_log(self) -> None:
        """Refuse replicas without the log that says what they are: they would not be had here.

        Raises:
            FileMissing: There are some, and no file of the log.
        """
        folder = self.path / "wal"
        if self.groups() and not any(folder.glob("*.wal")):
            raise FileMissing(str(folder))

    def recover(self, take: Callable[[Record], None]) -> None:
        """Hand over what the log holds, record by record; then it can be appended to.

        Raises:
            DiskTooSmall: There is no space for a new log, or the file that it needs.
            LogError: It is damaged.
        """
        try:
            for record in self.wal.recover():
                take(record)
        except DiskFull as error:
            raise DiskTooSmall(str(self.path), self.free_bytes, LEAST_BYTES) from error

    @property
    def free_bytes(self) -> int:
        """How much is free where the directory is."""
        return shutil.disk_usage(self.path).free

    def start(self) -> None:
        """Have the event loop hear of the disk."""
        loop = asyncio.get_running_loop()
        for queue in (self._queue, self.aside):
            loop.add_reader(queue.fileno(), queue.dispatch)
        prefer = getattr(loop, "prefer", None)
        if prefer is not None:
            prefer(self._queue.fileno())
        self._timer = loop.call_later(TICK_S, self._tick)

    def sent_file(self) -> SentFile | None:
        """Open the file of what queues have sent ahead of the log; None where none can be made."""
        try:
            return SentFile(self.path)
        except OSError as error:
            log.warning("durable queues wait for the disk on each delivery: %s", error)
            return None

    @property
    def pages_path(self) -> Path:
        """Where queues have what is more than memory may hold."""
        return self.path / "pages"

    def directory_of(self, group: int) -> Directory:
        """Open the directory of a replica; make it where it is not there."""
        return Directory(self.path / "streams" / str(group))

    def groups(self) -> list[int]:
        """List the groups that have a directory."""
        path = self.path / "streams"
        names = [each.name for each in path.iterdir()] if path.is_dir() else []
        return [int(name) for name in names if name.isdecimal()]

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(TICK_S, self._tick)
        self.wal.tick(loop.time())

    def _low(self, is_low: bool) -> None:
        if is_low and not self._is_low:
            why = self.wal.shortage or "no space left on the disk"
            log.error(
                "cannot extend the write-ahead log (%s): queues accept no messages; a data "
                "directory needs at least %d MiB in all, and %.1f MiB are free",
                *(why, LEAST_BYTES // MIB, self.free_bytes / MIB),
            )
        elif self._is_low and not is_low:
            log.warning("the write-ahead log can grow again: queues accept messages")
        self._is_low = is_low
        if self.on_low is not None:
            self.on_low(is_low)

    def _full(self, is_full: bool) -> None:  # the log's callback
        if is_full:
            why = self.wal.shortage or "the disk is full"
            log.error("cannot append to the write-ahead log (%s): queues and streams wait", why)
        else:
            log.warning("the write-ahead log accepts appends again")
        if self.on_full is not None:
            self.on_full(is_full)

    def _failed(self, failure: LogFailed) -> None:
        log.critical("%s", failure)
        if self.on_failure is not None:
            self.on_failure(failure)

    def close(self) -> None:
        """Write what is to be written, and let the directory go."""
        if self._timer is not None:
            self._timer.cancel()
            for queue in (self._queue, self.aside):
                asyncio.get_running_loop().remove_reader(queue.fileno())
        self.wal.close()
        self._close_queues()

    def _close_queues(self) -> None:
        self._queue.close()
        self.aside.close()
