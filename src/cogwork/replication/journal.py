"""What one replica keeps in the container's write-ahead log; `replayed` finds it there again.

Theory of operation. Each write of a group becomes records: its hard state, a snapshot that begins
the log anew, its entries; an entry replaces all from its index on. A snapshot of the replica's own
lets earlier entries go: then the hard state and the snapshot are written once more, and of what is
older only the entries after it are needed.

A snapshot's state is durable before the records that speak of it. After a crash in between, the
records may be of another history than the state: then the snapshot is written before anything that
follows it, so that nothing of the other history is taken for what comes before.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from cogwork.log.errors import LogError
from cogwork.log.record import OVERHEAD_BYTES
from cogwork.raft.ready import HardState
from cogwork.raft.snapshot import Snapshot
from cogwork.replication.journal_records import (
    COMPACTED,
    ENTRY,
    ENTRY_AGAIN,
    GIVEN_UP,
    HARD_STATE,
    INSTALLED,
    entry_of,
    kind_of,
    snapshot_octets,
    vote_octets,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.log.record import Record
    from cogwork.raft.entries import Entry
    from cogwork.raft.ready import Write

__all__ = ("Journal", "Log")

PIECE_BYTES = 1 << 20
"""About so much is written once more at a time: some two milliseconds."""

LITTLE_BYTES = 256 << 10
LITTLE_ENTRIES = 64
"""To write so much once more takes less than to make the files for a snapshot of it."""

TINY_BYTES = 4 << 10
"""So much is written once more again and again: what is left of a group that is idle."""


class Log(Protocol):
    """The part of the write-ahead log that a journal needs."""

    @property
    def durable_lsn(self) -> int:
        """All records below can be read."""

    @property
    def end_lsn(self) -> int:
        """Where the next record will be, or later."""

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        """Append a record; return its LSN."""

    def low_water(self, group: int, lsn: int) -> None:
        """Say that nothing below is needed."""

    def read(self, lsn: int) -> Record:
        """Read a record."""


class Journal:
    """One group's records.

    Attributes:
        group: Its number in the log.
        hard_state: The last one that was written.
        snapshot: The last one that was written; index 0 for none.
    """

    def __init__(self, log: Log, group: int) -> None:
        """Initialize it; it has written nothing yet.

        Args:
            log: Where.
            group: Its number there.
        """
        self.hard_state = HardState()
        self.snapshot = Snapshot()
        self._log = log
        self.group = group
        self._lsns: deque[int] = deque()
        self._first = 1
        self._unsaid: Snapshot | None = None
        self._renewed: dict[int, int] = {}  # the places of old copies, by those of new ones
        self._is_renewed = False
        self._is_stopped = False

    def go_on(
        self, hard_state: HardState, snapshot: Snapshot, lsns: Sequence[int], *, is_said: bool
    ) -> None:
        """Go on after what was found in the log.

        Args:
            hard_state: The last one.
            snapshot: With which it begins.
            lsns: The places of the entries that follow it.
            is_said: Whether the records lead to the snapshot.
        """
        self.hard_state = hard_state
        self.snapshot = snapshot
        self._unsaid = None if is_said else snapshot
        self._lsns = deque(lsns)
        self._first = snapshot.index + 1

    @property
    def lsns(self) -> list[int]:
        """The places of the entries that are kept."""
        return list(self._lsns)

    def write(self, write: Write) -> None:
        """Append what a write says.

        Raises:
            LogError: It cannot be kept now, or ever; then nothing of it counts as written.
        """
        if self._is_stopped:
            return
        if write.hard_state is not None:
            self._put_hard_state(write.hard_state)
        snapshot = write.snapshot or self._unsaid
        if snapshot is not None:
            self._begin_anew(snapshot)
        append, group, lsns = self._log.append, self.group, self._lsns
        for number, each in enumerate(write.entries):
            lsn = append(group, ENTRY + each.kind, each.index, each.term, each.payload)
            if not number:  # and not before: where the log takes nothing, it has what there was
                self._forget_from(each.index)
            lsns.append(lsn)

    def settle(self, commit: int) -> None:
        """Say in an orderly end what is committed, as far as it is durable.

        Raises:
            LogError: The log takes nothing now.
        """
        if commit > self.hard_state.commit and not self._is_stopped:
            self._put_hard_state(self.hard_state._replace(commit=commit))

    def compact(self, snapshot: Snapshot) -> None:
        """Let the entries up to a snapshot of this replica's own go.

        Raises:
            LogError: It cannot be kept now, or ever; then nothing of it counts as written.
        """
        if self._is_stopped:
            return
        start_lsn = self._log.end_lsn
        self._put_hard_state(self.hard_state)
        if self._unsaid is None:
            self._put_snapshot(COMPACTED, snapshot)
        else:
            self._begin_anew(snapshot)
        while self._lsns and self._first <= snapshot.index:
            self._lsns.popleft()
            self._first += 1
        self._first = max(self._first, snapshot.index + 1)
        self._is_renewed = False
        # Not the first one's place: what was written once more may be found in part, or twice.
        self._log.low_water(self.group, min(self._lsns, default=start_lsn))

    def drop(self) -> None:
        """Let everything go, and say so: the group may have a replica here again one day.

        What comes late of it is not written.
        """
        self.stop()
        with suppress(LogError):
            self.forget()
        self._log.low_water(self.group, self._log.end_lsn)

    def stop(self) -> None:
        """Write nothing any more; what there is stays."""
        self._is_stopped = True

    def renew(self) -> Iterator[None]:
        """Write what there is once more, so that the log may let its old files go.

        That is for one that was stopped: where the log takes only a part of it, or there is a
        crash in the middle, what was there counts. It may be more than the log takes at a time:
        after each piece, what is written is to get to the disk.

        Raises:
            LogError: It cannot be read, or the log takes nothing now.
            OSError: It cannot be read.
        """
        log, start_lsn, old_lsns = self._log, self._log.end_lsn, self.lsns
        self._put_hard_state(self.hard_state)
        if self._unsaid is not None:
            self._begin_anew(self._unsaid)
        else:
            self._put_snapshot_again()
        lsns, size_bytes = deque[int](), 0
        for lsn in old_lsns:
            each = self._read(lsn)
            lsns.append(self._put_again(each))
            size_bytes += OVERHEAD_BYTES + len(each.payload)
            if size_bytes >= PIECE_BYTES:
                yield
                size_bytes = 0
        self._lsns = lsns
        log.low_water(self.group, start_lsn)

    def renew_little(self) -> bool:
        """Write what there is once more, as `renew`, where that is little, of a group at work.

        What has been written once more already is not little, unless it is next to nothing: else
        it would be written again and again.

        Returns:
            Whether it was; else the group has to have a snapshot of its own, and to compact.

        Raises:
            LogError: It cannot be read, or the log takes nothing now; what was there counts.
            OSError: It cannot be read.
        """
        found = self._read_little(TINY_BYTES if self._is_renewed else LITTLE_BYTES)
        if found is None:
            return False
        start_lsn = self._log.end_lsn
        self._put_hard_state(self.hard_state)
        self._put_snapshot_again()
        self._lsns = deque([self._put_again(each) for each in found])
        self._log.low_water(self.group, start_lsn)
        self._renewed = {lsn: each.lsn for lsn, each in zip(self._lsns, found, strict=True)}
        self._is_renewed = bool(found)
        return True

    def _read_little(self, size_bytes: int) -> list[Record] | None:
        """Read what is kept; None where it is more, or not all of it is durable."""
        lsns = self._lsns
        if (
            self._unsaid is not None
            or self._is_stopped
            or len(lsns) > LITTLE_ENTRIES
            or (lsns and lsns[-1] >= self._log.durable_lsn)
        ):
            return None
        found: list[Record] = []
        for lsn in lsns:
            found.append(self._read(lsn))
            size_bytes -= len(found[-1].payload)
            if size_bytes < 0:
                return None
        return found

    def forget(self) -> None:
        """Say that what is in the log so far is of a replica that was given up.

        Raises:
            LogError: The log takes nothing now.
        """
        self._log.append(self.group, GIVEN_UP, 0, 0, b"")

    def entries(self, first: int, size_bytes: int) -> Sequence[Entry]:
        """Read entries from an index on, about so many octets; none where they have gone.

        Raises:
            LogError: The first one cannot be read.
            OSError: The same.
        """
        found: list[Entry] = []
        place = first - self._first
        while 0 <= place < len(self._lsns) and size_bytes > 0:
            try:
                entry = entry_of(self._read(self._lsns[place]))
            except (LogError, OSError):
                if found:
                    break
                raise
            found.append(entry)
            size_bytes -= len(entry.payload)
            place += 1
        return found

    def holds(self, index: int) -> bool:
        """Return whether it has an entry."""
        return 0 <= index - self._first < len(self._lsns)

    def term(self, index: int) -> int | None:
        """Read the term of an entry; None where it has gone."""
        if not self.holds(index):
            return None
        return self._read(self._lsns[index - self._first]).term

    def _read(self, lsn: int) -> Record:
        """Read what is at a place, or is to be: the old copy is there until the new one is."""
        if self._renewed:
            durable_lsn = self._log.durable_lsn
            if lsn >= durable_lsn:
                lsn = self._renewed.get(lsn, lsn)
            elif max(self._renewed) < durable_lsn:
                self._renewed = {}
        return self._log.read(lsn)

    # -- records

    def _put_hard_state(self, state: HardState) -> None:
        vote = vote_octets(state.vote)
        self._log.append(self.group, HARD_STATE, state.commit, state.term, vote)
        self.hard_state = state

    def _put_snapshot(self, kind: int, snapshot: Snapshot) -> None:
        payload = snapshot_octets(snapshot)
        self._log.append(self.group, kind, snapshot.index, snapshot.term, payload)
        self.snapshot = snapshot
        self._unsaid = None

    def _put_snapshot_again(self) -> None:
        if self.snapshot.index:
            self._put_snapshot(COMPACTED, self.snapshot)

    def _put_again(self, entry: Record) -> int:
        kind = ENTRY_AGAIN + kind_of(entry)
        return self._log.append(self.group, kind, entry.index, entry.term, entry.payload)

    def _begin_anew(self, snapshot: Snapshot) -> None:
        self._put_snapshot(INSTALLED, snapshot)
        self._lsns.clear()
        self._is_renewed = False
        self._first = snapshot.index + 1

    def _forget_from(self, index: int) -> None:
        while self._lsns and self._first + len(self._lsns) > index:
            self._lsns.pop()
        if not self._lsns:
            self._first = index
