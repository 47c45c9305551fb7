"""The write-ahead log of a container: the records of all its groups, one after the other.

Theory of operation. `append` gives a record its place and keeps its octets; `flush`, once a turn of
the loop, hands all of them to the disk thread in one piece, which ends with a mark (see `mark`).
Several flushes may be on their way; they become durable in order. Files are of one size and made
ready ahead (`Reserve`), and filled ahead where the log is synchronised often: then it goes on in
the filled one without waiting for the end of the present one. Each group says what it no longer
needs; files that no group needs are used again. A group that holds an old file, while the log has
grown too long, is asked to append what it needs anew.

What happens without space: as files are made ahead, it is known a file before it is needed
(`on_low`). The record that would need another one is refused with `DiskFull`, what was taken before
waits, and `tick` tries again. What the disk fails to write or to synchronise for any other reason
ends the log until a new start: nothing after it can be relied on.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from cogwork.log.errors import DiskFull, LogBusy, LogFailed, RecordTooLarge
from cogwork.log.file_header import HEADER_BYTES, FileHeader
from cogwork.log.file_name import file_name
from cogwork.log.flush import Flush
from cogwork.log.flushes import Flushes
from cogwork.log.mark import KIND_END, KIND_MARK, MARK_BYTES, Mark
from cogwork.log.open_files import OpenFiles
from cogwork.log.pins import Pins
from cogwork.log.position import POSITION_BITS
from cogwork.log.record import GROUP_MAX, OVERHEAD_BYTES, encode_record
from cogwork.log.recovery import Recovery
from cogwork.log.repair import repair
from cogwork.log.reserve import Reserve, is_full, may_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.log.directory import Directory
    from cogwork.log.disk_queue import DiskQueue
    from cogwork.log.record import Record

__all__ = ("Wal",)

FILE_BYTES = 64 << 20
LEAST_BYTES = 2 * FILE_BYTES + (2 << 20)
"""What a data directory needs at least: the present file and the next one, which have their size
from the start, and up to 2 MiB for all else that is there before anything is kept."""

FILE_BYTES_MIN = 4096
FILES_MAX = 8
WAITING_BYTES_MAX = 32 << 20
RETRY_AFTER_S = 1.0
FILL_AFTER_FLUSHES = 500
"""So many flushes of one file make it worth while to have the next one filled."""


def _ignore(*_: object) -> None:
    """Take notice of nothing."""


def _locked(directory: Directory, container_id: str) -> Recovery:
    """Lock a directory, and look at what is in it."""
    try:
        directory.lock()
        return Recovery(directory, container_id)
    except BaseException:
        directory.close()
        raise


class Wal:
    """A log; `recover` comes before everything else.

    Attributes:
        on_durable: Called with `durable_lsn` when it has grown.
        on_low: Called with whether the present file is the last one that there is space for, with
            each attempt that fails, and when one succeeds at last.
        on_full: Called with whether there is no space, when that changes.
        on_failure: Called once with a `LogFailed` after which nothing is appended any more.
        on_pressure: Called with a group that holds an old file while the log is too long. The
            group appends anew what it needs, and calls `low_water`.
        durable_lsn: Every record whose LSN is below it is on the disk.
        held_number: The number of the oldest file that is kept although no group may need it, as
            it is being copied; None while nothing is.
        is_low: Whether the present file is the last one that there is space for.
    """

    def __init__(
        self,
        directory: Directory,
        queue: DiskQueue,
        container_id: str,
        *,
        aside: DiskQueue | None = None,
        file_bytes: int = FILE_BYTES,
        files_max: int = FILES_MAX,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        """Open a log, or the place for a new one.

        Args:
            directory: Where; it is locked from now on, and belongs to the log.
            queue: The way to the disk.
            container_id: Whose log it is.
            aside: A way to the disk on which nothing is waited for: there the next file is made
                ready. None for the same one.
            file_bytes: How large each file is.
            files_max: How many there may be before groups are asked to let go of the oldest.
            waiting_bytes_max: How much may wait for the disk.

        Raises:
            LogLocked: Another process uses the directory.
            LogError: What is there cannot be used; the type says why.
        """
        assert file_bytes >= FILE_BYTES_MIN
        self.on_durable: Callable[[int], object] = _ignore
        self.on_low: Callable[[bool], object] = _ignore
        self.on_full: Callable[[bool], object] = _ignore
        self.on_failure: Callable[[LogFailed], object] = _ignore
        self.on_pressure: Callable[[int], object] = _ignore
        self._directory = directory
        self._queue = queue
        self._files_max = files_max
        self._file_bytes = file_bytes
        self._limit = 0
        self._waiting_bytes_max = waiting_bytes_max
        self._aside = aside or queue
        self._pins = Pins()
        self._files = OpenFiles(directory)
        self._parts: list[bytes] = []
        self._flushes = Flushes(
            queue,
            on_written=self._advance,
            on_full=lambda: self._set_full(is_full=True),
            on_failed=lambda flush, error: self._fail(file_name(flush.number), error),
        )
        self._releases: deque[tuple[int, dict[int, int]]] = deque()
        self._start = self._position = 0
        self._number = 0
        self._flush_count = 0
        self._is_filled = False
        self.durable_lsn = 0
        self.held_number: int | None = None
        self._last_record_end = 0
        self._mark = Mark(0, 1)
        self._asked_for = (0, 0)
        self.is_low = self._is_full = False
        self._failure: LogFailed | None = None
        self._retry_s = 0.0
        self._is_open = False
        self._recovery: Recovery | None = (recovery := _locked(directory, container_id))
        header = FileHeader(container_id, 0, file_bytes, recovery.key)
        self._reserve, self._key = Reserve(directory, self._aside, header), header.key

    # -- the start

    def recover(self) -> Iterator[Record]:
        """Yield what the log holds; when that is read to its end, the log can be appended to.

        A torn end is cut off: nothing in it was ever reported as durable. Records that their group
        has let go come too, where they share a file with some that are needed.

        Raises:
            LogCorrupt: A record that was durable cannot be read.
            FileMissing: A file is not there.
            DiskFull: There is no space for a new log.
        """
        recovery, self._recovery = self._recovery, None
        assert recovery is not None, "a log is recovered once"
        for record in recovery.records():
            self._pins.note(record.group, record.lsn)
            yield record
        try:
            repaired = self._queue.run(repair(self._directory, recovery, self._reserve))
        except OSError as error:
            if is_full(error):
                raise DiskFull(self._directory.path) from error
            raise
        self._last_record_end = recovery.last_record_end
        self._files.begin_at(min(recovery.numbers, default=1))
        self._number = repaired.number
        self._files.add(self._number, repaired.fd)
        self._start = self._position = repaired.position
        self._limit = self._file_bytes - MARK_BYTES
        self.durable_lsn = self.end_lsn
        self._is_open = True
        self._prepare_next()

    # -- appending

    @property
    def end_lsn(self) -> int:
        """The place of the next record, as far as nothing comes between."""
        return self._number << POSITION_BITS | self._position

    @property
    def is_full(self) -> bool:
        """Whether there is no space."""
        return self._is_full

    @property
    def takes_nothing(self) -> bool:
        """Whether that is so, or the disk has failed."""
        return self.is_full or self._failure is not None

    @property
    def shortage(self) -> str:
        """Why no further file can be made; empty where one can."""
        error = self._reserve.error
        return "" if error is None or is_full(error) else os.strerror(error.errno or 0)

    @property
    def room_bytes(self) -> int:
        """How much more the present file takes."""
        return max(0, self._limit - self._position)

    def oldest_groups(self) -> list[int]:
        """List the groups that hold the oldest file; none where that is the present one."""
        oldest = self.oldest_number
        return self._pins.groups_at(oldest) if oldest < self._number else []

    def holds_oldest(self, group: int) -> bool:
        """Return whether a group holds the oldest file."""
        return self._pins.holds_oldest(group)

    @property
    def oldest_number(self) -> int:
        """The number of the oldest file that is needed."""
        oldest, held = self._pins.oldest_number(self._number), self.held_number
        return oldest if held is None else min(oldest, held)

    @property
    def waiting_bytes(self) -> int:
        """How much is not durable yet."""
        return self._flushes.size_bytes + self._position - self._start

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        """Append a record; it is on its way with the next `flush`.

        Args:
            group: Whose it is, 1 to `GROUP_MAX`.
            kind: What it is, 0 to 255.
            index: The group's number of it, below 2⁶⁴.
            term: The group's, below 2⁶⁴.
            payload: The group's.

        Returns:
            Its LSN.

        Raises:
            DiskFull: There is no space.
            LogBusy: Too much waits for the disk.
            LogFailed: The disk has failed.
            RecordTooLarge: It does not fit a file.
        """
        size = OVERHEAD_BYTES + len(payload)
        if (
            self._is_full
            or self._failure is not None
            or self._flushes.size_bytes + self._position - self._start > self._waiting_bytes_max
        ):
            raise self._refusal()
        assert 0 < group <= GROUP_MAX
        if self._position + size > self._limit:
            self._go_on_in_next_file(size)
        lsn = self._number << POSITION_BITS | self._position
        self._parts += encode_record(lsn, group, kind, index, term, payload)
        self._position += size
        self._last_record_end = lsn + size
        self._pins.note(group, lsn)
        return lsn

    def flush(self) -> None:
        """Hand what was appended to the disk; call it once in each turn of the loop."""
        if self._parts:
            if self._position + MARK_BYTES <= self._limit:
                self._append_mark(KIND_MARK)
            self._close_buffer()
        self._flushes.send()
        self._press()

    def tick(self, now_s: float) -> None:
        """Let time pass: about once a second.

        Tries again where there was no space, and marks what has become durable since, so that a
        later damage of it is found even where nothing more is appended.

        Args:
            now_s: By a clock that never goes back.
        """
        if now_s >= self._retry_s and (self._flushes.is_stalled or self._reserve.error is not None):
            self._retry_s = now_s + RETRY_AFTER_S
            self._try_again()
        if not self._parts and self._flushes.is_empty and self._has_news():
            self._append_mark(KIND_MARK)
            self._close_buffer()
        self.flush()

    def _refusal(self) -> DiskFull | LogFailed | LogBusy:
        if self._failure is not None:
            return LogFailed(self._failure.file, self._failure.errno)
        if self._is_full:
            return DiskFull(self._directory.path, self.shortage)
        return LogBusy(self.waiting_bytes)

    def _go_on_in_next_file(self, size: int) -> None:
        """End the present file; the next one must be ready, and have room for a record."""
        assert self._is_open, "recover comes first"
        if HEADER_BYTES + size > self._limit:
            raise RecordTooLarge(size - OVERHEAD_BYTES, self._limit - HEADER_BYTES - OVERHEAD_BYTES)
        if self._reserve.fd is None:
            if self._reserve.error is not None:
                self._set_full(is_full=True)
            self._reserve.hurry()
            raise self._refusal()
        self._append_mark(KIND_END)
        self._close_buffer()
        self._number += 1
        self._flush_count = 0
        self._is_filled = self._reserve.is_filled
        self._files.add(self._number, self._reserve.take())
        self._start = self._position = HEADER_BYTES
        self._prepare_next()

    def _append_mark(self, kind: int) -> None:
        self._mark = Mark(self.durable_lsn, self.oldest_number)
        self._parts += self._mark.encode(self.end_lsn, kind, self._key)
        self._position += MARK_BYTES

    def _close_buffer(self) -> None:
        size_bytes = self._position - self._start
        fd, oldest_number = self._files.fd(self._number), self._mark.oldest_number
        self._flushes.add(Flush(fd, self._parts, size_bytes, self.end_lsn, oldest_number))
        self._parts = []
        self._flush_count += 1
        self._start = self._position

    def _has_news(self) -> bool:
        """Whether a mark would say more than the newest one does, or have all be durable."""
        if self._position + MARK_BYTES > self._limit:
            return False
        is_unproved = self._mark.durable_lsn < self._last_record_end <= self.durable_lsn
        is_begun = self.durable_lsn < self.end_lsn  # a file in which nothing has followed
        return is_unproved or is_begun or self._mark.oldest_number < self.oldest_number

    # -- the disk

    def _advance(self) -> None:
        """Count as durable what is, without a gap."""
        before_lsn = self.durable_lsn
        for flush in self._flushes.take_durable():
            self.durable_lsn = flush.end_lsn
            self._retire(flush.oldest_number)
        if self.durable_lsn != before_lsn:
            self._release()
            self.on_durable(self.durable_lsn)
        self._look_for_space()
        self._flushes.send()
        self._fill_next()

    def _fail(self, name: str, error: OSError) -> None:
        self._failure = LogFailed(self._directory.path_of(name), error.errno or 0)
        self._flushes.stop()
        self.on_failure(self._failure)

    # -- space

    def _set_full(self, *, is_full: bool) -> None:
        if self._is_full != is_full:
            self._is_full = is_full
            self.on_full(is_full)

    def _look_for_space(self) -> None:
        if self._is_full and self._failure is None:
            is_short = self._flushes.is_stalled or self._reserve.error is not None
            self._set_full(is_full=is_short)

    def _try_again(self) -> None:
        """Make the next file, and write what could not be written."""
        if self._reserve.is_idle:
            self._prepare_next()
        self._flushes.retry()

    def _prepare_next(self) -> None:
        self._reserve.prepare(self._number + 1, self._files.take_spare(), self._prepared)

    def _prepared(self) -> None:
        error, spare = self._reserve.error, self._reserve.spare
        if error is not None and spare is not None:
            self._files.put_back(spare)
        if error is None:
            self._look_for_space()
        elif not may_pass(error):
            self._fail(file_name(self._reserve.number), error)
            return
        if error is not None or self.is_low:
            self.is_low = error is not None
            self.on_low(self.is_low)

    def _fill_next(self) -> None:
        """Have the next file filled, where it pays and is not needed soon."""
        if self._limit - self._position < self._file_bytes // 8:
            self._reserve.hurry()
        elif self._flush_count >= FILL_AFTER_FLUSHES and self._reserve.can_fill:
            self._reserve.fill(self._filled)

    def _filled(self) -> None:
        self._prepared()
        is_better = self._reserve.fd is not None and self._reserve.is_filled > self._is_filled
        if is_better and self._is_open and self._failure is None:
            self._go_on_in_next_file(0)
            self._flushes.send()

    # -- what nobody needs any more

    def low_water(self, group: int, lsn: int) -> None:
        """Say that a group needs none of its records below an LSN, `end_lsn` meaning none at all.

        It takes effect when all that was appended so far is durable, as it may be what makes the
        older records superfluous.

        Args:
            group: Which one.
            lsn: The place of the oldest record that it needs.
        """
        end_lsn = self.end_lsn
        if not self._releases or self._releases[-1][0] != end_lsn:
            self._releases.append((end_lsn, {}))
        self._releases[-1][1][group] = lsn
        self._release()

    def _release(self) -> None:
        releases = self._releases
        while releases and releases[0][0] <= self.durable_lsn:
            for group, lsn in releases.popleft()[1].items():
                self._pins.release(group, lsn)

    def _retire(self, oldest_number: int) -> None:
        """Let files go, now that a durable mark says that they are not needed."""
        has_spare = self._files.retire(oldest_number)
        if has_spare and self._reserve.is_idle and self._is_open:
            self._prepare_next()

    def _press(self) -> None:
        """Ask the groups that hold the oldest file, once whenever the log has grown by a file."""
        oldest = self.oldest_number
        if self._number - oldest < self._files_max or self._asked_for == (oldest, self._number):
            return
        self._asked_for = (oldest, self._number)
        for group in self._pins.groups_at(oldest):
            self.on_pressure(group)

    # -- reading

    def read(self, lsn: int) -> Record:
        """Read a record that was flushed and is still needed.

        Args:
            lsn: Its place, as `append` returned it.

        Raises:
            LogCorrupt: There is none, or it cannot be read.
            FileMissing: Its file is not there any more.
        """
        return self._files.read(lsn, self._number)

    # -- the end

    def close(self) -> None:
        """Flush, waits for the disk, and let the directory go."""
        self._reserve.hurry()
        if self._is_open and self._failure is None:
            self.flush()
            self._queue.finish()
            self.tick(0.0)
        self._queue.finish()
        self._is_open = False  # the next file may be ready now: nothing goes on in it
        self._aside.finish()
        if self._reserve.fd is not None:
            self._directory.close_file(self._reserve.take())
        self._files.close()
        self._directory.close()
