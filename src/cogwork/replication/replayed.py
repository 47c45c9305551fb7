"""What one replica finds in the container's write-ahead log after a restart; see `journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import Malformed
from cogwork.raft.core import Recovered
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
    snapshot_of,
    vote_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.log.record import Record
    from cogwork.raft.entries import Entry
    from cogwork.raft.storage import Storage
    from cogwork.replication.journal import Journal

__all__ = ("Replayed",)


class Replayed:
    """What a group's records say, read in order after a restart.

    The oldest may be gone: entries may come before the snapshot that they follow.

    Attributes:
        hard_state: The last one.
        snapshot: The last one.
        entries: Those that follow it, as far as they were written.
    """

    def __init__(self) -> None:
        self.hard_state = HardState()
        self.snapshot = Snapshot()
        self.entries: list[Entry] = []
        self._lsns: list[int] = []
        self._again: list[Record] = []
        self._is_said = True

    def take(self, record: Record) -> None:
        """Take the next record.

        Raises:
            Malformed: It is none of a group.
        """
        if record.kind >= ENTRY_AGAIN:
            self._take_again(record)
            return
        self._again.clear()
        if record.kind >= ENTRY:
            self._take_entry(record)
        elif record.kind == HARD_STATE:
            self.hard_state = HardState(record.term, vote_of(record), record.index)
        elif record.kind in (INSTALLED, COMPACTED):
            self._take_snapshot(record)
        elif record.kind == GIVEN_UP:
            self.hard_state, self.snapshot = HardState(), Snapshot()
            self.entries.clear()
            self._lsns.clear()
        else:
            raise Malformed("a group's record", f"its kind is {record.kind}")

    def _take_again(self, record: Record) -> None:
        """Take an entry that was written once more; those of its index and behind it stay.

        Before the first one here it counts once nothing is missing between: else only a part of
        what was to be written got there, and whoever wrote it went by the old records.
        """
        before = self._first - record.index
        if not self.entries or before <= 0:
            if -before >= len(self.entries):
                self._take_entry(record)
            return
        if self._again and self._again[-1].index != record.index - 1:
            self._again.clear()
        self._again.append(record)
        if before == 1:
            self.entries[:0] = [entry_of(each) for each in self._again]
            self._lsns[:0] = [each.lsn for each in self._again]
            self._again.clear()

    def _take_entry(self, record: Record) -> None:
        if not self.entries and record.index <= self.snapshot.index:
            return
        # Below the first one: what it replaces from there on had let go of what came before.
        place = max(0, record.index - self.entries[0].index) if self.entries else 0
        if place > len(self.entries):
            # What is before it was in a file that the log has let go: a snapshot stands for that,
            # as `begin_at` demands.
            place = 0
        del self.entries[place:], self._lsns[place:]
        self.entries.append(entry_of(record))
        self._lsns.append(record.lsn)

    @property
    def _first(self) -> int:
        return self.entries[0].index if self.entries else self.snapshot.index + 1

    def renew(self, journal: Journal) -> Iterator[None]:
        """Have a journal write once more what there is, in pieces: of a replica that cannot be had.

        It ends where an attempt to have it finds meanwhile that less is needed.
        """
        kept = self._kept
        journal.go_on(self.hard_state, self.snapshot, self._lsns, is_said=self._is_said)
        for _ in journal.renew():
            yield
            if self._kept != kept:
                return
        self._lsns, self._is_said = journal.lsns, True

    @property
    def _kept(self) -> tuple[Snapshot, int, bool]:
        return self.snapshot, len(self._lsns), self._is_said

    def _take_snapshot(self, record: Record) -> None:
        self.snapshot = snapshot_of(record)
        kept = record.index + 1 - self._first if record.kind == COMPACTED else len(self.entries)
        del self.entries[: max(0, kept)], self._lsns[: max(0, kept)]

    def begin_at(self, snapshot: Snapshot) -> None:
        """Begin with a snapshot that is kept elsewhere, and what follows it here."""
        if snapshot.index < self._first - 1:
            raise Malformed(
                "a replica's state",
                f"it ends at entry {snapshot.index}, and the log begins at {self._first}",
            )
        place = snapshot.index - self._first
        follows = place == -1 or (
            place < len(self.entries) and self.entries[place].term == snapshot.term
        )
        kept = place + 1 if follows else len(self.entries)
        del self.entries[:kept], self._lsns[:kept]
        self._is_said = follows and self._is_said  # also where it is begun with again
        self.snapshot = snapshot

    def recovered(self, journal: Journal, storage: Storage) -> Recovered:
        """Return what the group begins with, and have the journal go on from there."""
        journal.go_on(self.hard_state, self.snapshot, self._lsns, is_said=self._is_said)
        return Recovered(
            hard_state=self.hard_state,
            snapshot=self.snapshot,
            entries=tuple(self.entries),
            storage=storage,
        )
