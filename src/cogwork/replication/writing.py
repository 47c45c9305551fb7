"""What all replicas of a container write to its log: in order, and again where it was refused."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cogwork.log.errors import LogError, RecordTooLarge
from cogwork.raft.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.log.wal import Wal
    from cogwork.raft.ready import Write
    from cogwork.raft.snapshot import Snapshot
    from cogwork.replication.journal import Journal

__all__ = ("Writing",)


QUICK_S = 0.002
"""A write that is durable so soon has others wait for it gladly: see `Pace`."""


class _Write(NamedTuple):
    """Whose write it is, and what makes it."""

    journal: Journal
    make: Callable[[], None]


class Writing:
    """The writes that the log has not taken, and those that are not durable."""

    def __init__(
        self,
        wal: Wal | None,
        report: Callable[[str], None],
        *,
        stop: Callable[[int, Exception], None] | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with nothing to write.

        Args:
            wal: The log; None where there are no replicas.
            report: Takes what the operator should know.
            stop: Has the replica of a group stop, of which something can never be written.
            pace: Is told how quick the disk is.
            clock: In seconds; it never goes back.
        """
        self._wal = wal
        self._report = report
        self._stop = stop
        self._pace = pace or Pace()
        self._clock = clock
        self._waiting: deque[_Write | int] = deque()
        self._numbers: deque[tuple[int, int, float]] = deque()
        self._is_refused = False

    @property
    def is_waiting(self) -> bool:
        """Whether there is something that the log has not taken."""
        return bool(self._waiting)

    def add(self, journal: Journal, write: Write) -> None:
        """Have a group's write made."""
        self._waiting.append(_Write(journal, partial(journal.write, write)))

    def compact(self, journal: Journal, snapshot: Snapshot) -> None:
        """Have a group's earlier entries let go, after the writes that were added before.

        Those may be of another history than the snapshot, if it is a leader's.
        """
        self._waiting.append(_Write(journal, partial(journal.compact, snapshot)))

    def end_turn(self, number: int) -> None:
        """Give all writes since the last turn a number, by which `durable` knows them."""
        self._waiting.append(number)

    def flush(self) -> int:
        """Hand writes to the log, in order; what it does not take now waits for the next time.

        Returns:
            The highest number whose writes are durable already, as they left nothing in the log:
            of these it has nothing to tell (a replica that is closed writes nothing). 0 for none.
        """
        wal = self._wal
        if wal is None or not self._waiting:
            return 0
        try:
            while self._waiting:
                first = self._waiting[0]
                if isinstance(first, int):
                    self._numbers.append((wal.end_lsn, first, self._clock()))
                else:
                    self._make(first)
                self._waiting.popleft()
            self._is_refused = False
        except LogError as error:
            if not self._is_refused:
                self._report(f"cannot append to the write-ahead log: {error}")
            self._is_refused = True
        wal.flush()
        is_durable = self._numbers and self._numbers[0][0] <= wal.durable_lsn
        return self.durable(wal.durable_lsn) if is_durable else 0

    def _make(self, write: _Write) -> None:
        """Make a write; one that can never be made ends its replica, and hold up no other."""
        try:
            write.make()
        except RecordTooLarge as error:
            write.journal.stop()
            if self._stop is not None:
                self._stop(write.journal.group, error)

    def durable(self, lsn: int) -> int:
        """Return the highest number whose writes are all below a place; 0 for none."""
        number = 0
        while self._numbers and self._numbers[0][0] <= lsn:
            _, number, since_s = self._numbers.popleft()
            self._pace.is_quick = self._clock() - since_s <= QUICK_S
        return number

    def look_at_pace(self) -> None:
        """Take a disk for slow that lets a write wait, or take none."""
        self._pace.takes_nothing = self._wal is not None and self._wal.takes_nothing
        if self._is_refused or (self._numbers and self._clock() - self._numbers[0][2] > QUICK_S):
            self._pace.is_quick = False
