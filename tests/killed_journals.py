"""A replica's journal on a disk whose power is cut, and what has to be in it then."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

from mains import Files, Mains, put

from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import LogError
from cogwork.log.record import OVERHEAD_BYTES, Record
from cogwork.log.wal import Wal
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState, Write
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.storage import NoStorage
from cogwork.replication.journal import Journal
from cogwork.replication.journal_records import (
    COMPACTED,
    ENTRY,
    ENTRY_AGAIN,
    HARD_STATE,
    INSTALLED,
)
from cogwork.replication.replayed import Replayed
from cogwork.replication.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GROUP, OTHER = 17, 18
MEMBERS = Membership(("a", "b", "c"))
FILE_BYTES = 4096


class Noted(NamedTuple):
    """A record of the group's: where it ends, and what it says."""

    end_lsn: int
    kind: int
    index: int  # type: ignore[assignment]  # a record's, as the journal calls it
    what: Entry | HardState | None


class Said:
    """What records say one after the other, in the plainest way."""

    def __init__(
        self, hard_state: HardState | None = None, base: int = 0, entries: Iterable[Entry] = ()
    ) -> None:
        self.hard_state = hard_state or HardState()
        self.base = base
        self.entries = {each.index: each for each in entries}

    def after(self, records: list[Noted]) -> Said:
        said = Said(self.hard_state, self.base, self.entries.values())
        for record in records:
            said.take(record.kind, record.index, record.what)
        return said

    @property
    def last(self) -> int:
        return max(self.entries, default=self.base)

    def take(self, kind: int, index: int, what: Entry | HardState | None) -> None:
        if isinstance(what, Entry):
            if kind >= ENTRY_AGAIN and index in self.entries:
                return
            self.entries = {at: each for at, each in self.entries.items() if at < index}
            self.entries[index] = what
        elif isinstance(what, HardState):
            self.hard_state = what
        else:
            gone = index if kind == COMPACTED else self.last
            self.entries = {at: each for at, each in self.entries.items() if at > gone}
            self.base = index

    def following(self, snapshot: Snapshot) -> list[Entry]:
        """The entries that follow a snapshot; none where they are of another history."""
        at = self.entries.get(snapshot.index)
        if snapshot.index == self.base or (at is not None and at.term == snapshot.term):
            return [each for each in self.entries.values() if each.index > snapshot.index]
        return []


class Noting:
    """A write-ahead log, with a note of each record of the group."""

    def __init__(self, wal: Wal) -> None:
        self.wal = wal
        self.noted: list[Noted] = []

    @property
    def durable_lsn(self) -> int:
        return self.wal.durable_lsn

    @property
    def end_lsn(self) -> int:
        return self.wal.end_lsn

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        lsn = self.wal.append(group, kind, index, term, payload)
        what: Entry | HardState | None = None
        if kind >= ENTRY:
            what = Entry(index, term, kind % ENTRY, payload)
        elif kind == HARD_STATE:
            what = HardState(term, payload[1:].decode() or None, index)
        self.noted.append(Noted(lsn + OVERHEAD_BYTES + len(payload), kind, index, what))
        return lsn

    def low_water(self, group: int, lsn: int) -> None:
        self.wal.low_water(group, lsn)

    def read(self, lsn: int) -> Record:
        return self.wal.read(lsn)


class Opened:
    """A replica's journal in a directory, and what it found there."""

    def __init__(self, path: Path, kept: Snapshot) -> None:
        self.mains = Mains()
        self.queue = DiskQueue(self.mains)
        try:
            self.wal = Wal(Directory(path), self.queue, "north", file_bytes=FILE_BYTES)
        except LogError:
            self.mains.close()
            raise
        try:
            replayed = Replayed()
            for record in self.wal.recover():
                if record.group == GROUP:
                    replayed.take(record)
            self.mains.trust(path)
            self.log = Noting(self.wal)
            self.journal = Journal(self.log, GROUP)
            replayed.begin_at(kept)
            self.found = replayed.recovered(self.journal, NoStorage())
        except LogError:
            self.close()
            raise

    def close(self) -> None:
        """End as a process does that is killed, but for what was handed to the disk."""
        self.wal.on_durable = lambda _: None
        self.queue.finish()
        self.wal._is_open = False
        self.wal.close()
        self.mains.close()


class Acknowledging:
    """A journal that notes where the records of each write end."""

    def __init__(self, journal: Journal, noted: list[Noted]) -> None:
        self.journal = journal
        self.noted = noted
        self.ends: dict[int, int] = {}

    def write(self, write: Write) -> None:
        self.journal.write(write)
        self.ends[write.number] = len(self.noted)

    def up_to(self, number: int) -> int:
        """So many records belong to writes up to one."""
        return max((end for each, end in self.ends.items() if each <= number), default=0)


class KilledJournal:
    """One replica's journal through several kills.

    Attributes:
        records: All that it wrote and found again.
        acknowledged: So many of them belong to writes that were reported as durable.
        kept: The snapshot beside the journal; it is durable before the journal speaks of it.
        renewed: How often it wrote once more what there was.
    """

    def __init__(self, seed: int, path: Path) -> None:
        self.chance = random.Random(seed)
        self.path, self.probe = path / "replica", path / "probe"
        self.path.mkdir(parents=True)
        self.records: list[Noted] = []
        self.acknowledged = 0
        self.kept = Snapshot(membership=MEMBERS)
        self.renewed = 0
        self._starts = [(0, Said())]
        self._now = Said()
        self._term = self._number = 0
        self._committed = 0
        self._last: dict[int, int] = {}

    # -- a life

    def live(self) -> tuple[Files, Files]:
        """Work until it is killed; return what is synchronised, and what was to be written."""
        opened = Opened(self.path, self.kept)
        opened.log.noted = self.records
        self._work(opened)
        halves = opened.mains.halt(self.path)
        opened.close()
        return halves

    def _work(self, opened: Opened) -> None:
        wal = opened.wal
        writing = Writing(wal, lambda _: None)
        journal = Acknowledging(opened.journal, self.records)

        def durable(lsn: int) -> None:
            number = writing.durable(lsn)
            if number:
                self.acknowledged = max(self.acknowledged, journal.up_to(number))
                if self.chance.random() < 0.2:
                    self._committed = max(self._committed, self._last[number])

        wal.on_durable = durable
        for turn in range(self.chance.randrange(2, 30)):
            self._number += 1
            if self.chance.random() < 0.7:
                writing.add(cast("Journal", journal), self._write())
            self._last[self._number] = self._now.last
            writing.end_turn(self._number)
            with suppress(LogError):
                wal.append(OTHER, 1, turn, 0, bytes(self.chance.randrange(300)))
                wal.low_water(OTHER, wal.end_lsn)
            writing.flush()
            if self.chance.random() < 0.6:
                opened.queue.dispatch()
            if self.chance.random() < 0.15:
                self._compact(writing, opened.journal)
            if self.chance.random() < 0.2:
                with suppress(LogError):
                    self.renewed += opened.journal.renew_little()
        wal.flush()
        if self.chance.random() < 0.4:
            self._install()  # and is killed before the journal says so

    def _write(self) -> Write:
        chance, now = self.chance, self._now
        self._term += chance.random() < 0.3
        snapshot = None
        if chance.random() < 0.1:
            snapshot = self._install()
        first = now.last + 1
        if chance.random() < 0.3:
            first = chance.randint(self._committed + 1, first)
            self._replace_from(first)
        payload = chance.randbytes(chance.randrange(60))
        entries = [
            Entry(first + at, self._term, chance.choice(list(Kind)), payload)
            for at in range(chance.randrange(4))
        ]
        for each in entries:
            now.take(ENTRY, each.index, each)
        hard_state = None
        if self._number == 1 or chance.random() < 0.5:
            hard_state = HardState(self._term, chance.choice([None, "a", "bb"]), self._committed)
        return Write(self._number, hard_state, snapshot, entries)

    def _install(self) -> Snapshot:
        """Take a leader's snapshot, often one of another history than the entries here."""
        self._term += 1
        index = self._committed + self.chance.randrange(1, 5)
        self.kept = Snapshot(index, self._term, MEMBERS, 1, self._number)
        self._replace_from(index + 1)
        self._now.take(INSTALLED, index, None)
        self._committed = index
        return self.kept

    def _replace_from(self, index: int) -> None:
        """What was written from there on can no longer become committed."""
        for number, last in self._last.items():
            self._last[number] = min(last, index - 1)

    def _compact(self, writing: Writing, journal: Journal) -> None:
        index = self.chance.randint(self.kept.index, self._committed)
        if index in self._now.entries:
            self.kept = Snapshot(index, self._now.entries[index].term, MEMBERS, 2, self._number)
            self._now.take(COMPACTED, index, None)
        if self.chance.random() < 0.8:
            writing.compact(journal, self.kept)

    # -- what is found

    def said(self, count: int) -> Said:
        """What the group had written after so many records, since it began with what was found."""
        start, said = next(each for each in reversed(self._starts) if each[0] <= count)
        return said.after(self.records[start:count])

    def check(self, files: Files, count: int) -> None:
        """Open a directory in which so many records are whole.

        Raises:
            LogError: It is refused.
        """
        opened = Opened(put(self.probe, files), self.kept)
        found = opened.found
        said = self.said(count)
        following = said.following(self.kept)
        try:
            assert found.hard_state == said.hard_state
            assert found.snapshot == self.kept
            assert list(found.entries) == following
            assert found.hard_state.commit <= self.kept.index + len(following)
            for each in following:
                assert opened.journal.entries(each.index, 1)[0] == each
        finally:
            opened.close()

    def go_on(self, files: Files, count: int) -> None:
        """Live on with what is left."""
        put(self.path, files)
        del self.records[count:]
        said = self.said(count)
        began = Said(said.hard_state, self.kept.index, said.following(self.kept))
        self._starts.append((count, began))
        self._now = began.after([])
        self.acknowledged = count
        self._committed = max(self.kept.index, said.hard_state.commit)
        self._last.clear()
