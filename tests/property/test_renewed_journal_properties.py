"""Whatever part of a log is left, a replica begins with what it had: also where it was renewed.

A group writes, is sent snapshots, has its own, and writes once more what it has, in a log of many
small files that now and then takes only a part of what is asked. After each step the log may end
behind any record that may not be durable yet, and any of the files may be gone that nobody needs.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import pytest

from cogwork.log.errors import LogBusy
from cogwork.log.pins import Pins
from cogwork.log.position import lsn_of, number_of, position_of
from cogwork.log.record import Record
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
    entry_of,
    vote_of,
)
from cogwork.replication.replayed import Replayed
from cogwork.replication.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.log.wal import Wal

GROUP = 17
MEMBERS = Membership(("a", "b", "c"))
ENOUGH = 1 << 30
SEEDS = 150


class SmallLog:
    """A write-ahead log in memory, of files of some records each; positions count records."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.records: list[Record] = []
        self.number, self.durable, self.room = 1, 0, ENOUGH
        self.takes_nothing = False
        self._pins = Pins()
        self._releases: deque[tuple[int, int]] = deque()

    @property
    def end_lsn(self) -> int:
        return lsn_of(self.number, len(self.records))

    @property
    def durable_lsn(self) -> int:
        is_all = self.durable == len(self.records)
        return self.end_lsn if is_all else self.records[self.durable].lsn

    @property
    def oldest(self) -> int:
        return self._pins.oldest_number(self.number)

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        if not self.room:
            raise LogBusy(1)
        self.room -= 1
        self.number += self.chance.random() < 0.12
        lsn = self.end_lsn
        self.records.append(Record(lsn, group, kind, index, term, payload))
        self._pins.note(group, lsn)
        return lsn

    def low_water(self, group: int, lsn: int) -> None:
        assert group == GROUP
        self._releases.append((self.end_lsn, lsn))
        self.sync(0)

    def read(self, lsn: int) -> Record:
        assert position_of(lsn) < self.durable, "it is not there yet"
        assert number_of(lsn) >= self.oldest, "it was let go"
        return self.records[position_of(lsn)]

    def flush(self) -> None:
        """What becomes durable, and when, `sync` says."""

    def sync(self, count: int) -> None:
        self.durable = min(len(self.records), self.durable + count)
        while self._releases and self._releases[0][0] <= self.durable_lsn:
            self._pins.release(GROUP, self._releases.popleft()[1])


def said(records: Iterable[Record], kept: Snapshot) -> tuple[HardState, list[Entry]]:
    """What all records of a log say, in the plainest way, of what follows a snapshot."""
    hard_state, entries, base = HardState(), dict[int, Entry](), 0
    for record in records:
        index = record.index
        if record.kind >= ENTRY:
            if record.kind < ENTRY_AGAIN or index not in entries:
                entries = {at: each for at, each in entries.items() if at < index}
                entries[index] = entry_of(record)
        elif record.kind == HARD_STATE:
            hard_state = HardState(record.term, vote_of(record), index)
        else:
            gone = index if record.kind == COMPACTED else ENOUGH
            entries = {at: each for at, each in entries.items() if at > gone}
            base = index
    at = entries.get(kept.index)
    if kept.index != base and (at is None or at.term != kept.term):
        return hard_state, []
    return hard_state, [each for index, each in sorted(entries.items()) if index > kept.index]


class Story:
    """A group's life. Its writes are taken at once or later, and in part."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.log = SmallLog(chance)
        self.journal = Journal(self.log, GROUP)
        self.writing = Writing(cast("Wal", self.log), lambda _: None)
        self.kept = Snapshot(membership=MEMBERS)
        self.entries: dict[int, Entry] = {}
        self.commit = self.number = 0
        self.term = 1
        self.seen: Counter[str] = Counter()

    def step(self) -> None:
        chance, log = self.chance, self.log
        log.room = chance.randrange(12) if chance.random() < 0.3 else ENOUGH
        is_settled = not self.writing.is_waiting and log.durable == len(log.records)
        what = chance.random()
        if what < 0.45:
            self.write()
        elif what < 0.5:
            self.install()
        elif what < 0.62 and is_settled:
            self.compact()
        elif what < 0.67 and is_settled:
            self.restart()
        elif what < 0.9:
            self.renew()
        self.writing.flush()
        log.room = ENOUGH
        if chance.random() < 0.7:
            log.sync(chance.choice([1, 2, 5, 1000]))
        if chance.random() < 0.5:
            self.writing.flush()

    @property
    def last(self) -> int:
        return max(self.entries, default=self.kept.index)

    def write(self) -> None:
        chance = self.chance
        self.term += chance.random() < 0.3
        first = self.last + 1
        if chance.random() < 0.3:
            first = chance.randint(max(self.commit, self.kept.index) + 1, first)
        hard_state = None
        if not self.number or chance.random() < 0.4:
            hard_state = HardState(self.term, chance.choice([None, "a"]), self.commit)
        self._add(Write(self.number + 1, hard_state, None, self._new(first, chance.randrange(5))))

    def install(self) -> None:
        self.term += 1
        index = self.commit + self.chance.randrange(1, 6)
        self.kept = Snapshot(index, self.term, MEMBERS, 1, self.number)
        self.entries, self.commit = {}, index
        new = self._new(index + 1, self.chance.randrange(3))
        self._add(Write(self.number + 1, HardState(self.term), self.kept, new))

    def _new(self, first: int, count: int) -> list[Entry]:
        text = b"%d" % self.number
        new = [Entry(first + at, self.term, Kind.COMMAND, text) for at in range(count)]
        if new:
            self.entries = {at: each for at, each in self.entries.items() if at < first}
            self.entries.update({each.index: each for each in new})
        return new

    def _add(self, write: Write) -> None:
        self.number = write.number
        self.writing.add(self.journal, write)
        self.writing.end_turn(write.number)

    def compact(self) -> None:
        self.commit = self.chance.randint(max(self.commit, self.kept.index), self.last)
        if self.commit in self.entries:
            self.kept = Snapshot(self.commit, self.entries[self.commit].term, MEMBERS, 2, 0)
            self.entries = {at: each for at, each in self.entries.items() if at > self.commit}
            self.writing.compact(self.journal, self.kept)

    def restart(self) -> None:
        found = self.found(self.log.records, self.log.oldest)
        self.journal = Journal(self.log, GROUP)
        found.recovered(self.journal, NoStorage())

    def renew(self) -> None:
        with suppress(LogBusy):
            self.seen["tried"] += 1
            self.seen["renewed"] += self.journal.renew_little()
            return
        self.seen["refused"] += 1

    def found(self, records: list[Record], oldest: int) -> Replayed:
        replayed = Replayed()
        for record in records:
            if number_of(record.lsn) >= oldest:
                replayed.take(record)
        replayed.begin_at(self.kept)
        return replayed

    def check(self) -> None:
        for count in range(self.log.durable, len(self.log.records) + 1):
            records = self.log.records[:count]
            expected = said(records, self.kept)
            for oldest in range(1, self.log.oldest + 1):
                if records and number_of(records[-1].lsn) >= oldest:
                    found = self.found(records, oldest)
                    assert (found.hard_state, [*found.entries]) == expected, (count, oldest)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_part_of_a_log_that_may_be_left_says_what_all_of_it_says(seed: int) -> None:
    story = Story(seed)
    for _ in range(story.chance.randrange(5, 60)):
        story.step()
        story.check()


def test_it_is_renewed_often_and_refused_now_and_then() -> None:
    seen: Counter[str] = Counter()
    for seed in range(20):
        story = Story(seed)
        for _ in range(40):
            story.step()
        seen += story.seen
    assert seen["renewed"] > 30
    assert seen["refused"] > 5
