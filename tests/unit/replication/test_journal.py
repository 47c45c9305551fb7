"""What a replica writes to the write-ahead log, and what it finds there again."""

from __future__ import annotations

import random

import pytest

from cogwork.log.errors import LogBusy
from cogwork.log.record import Record
from cogwork.plugin.engine.errors import Malformed
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState, Write
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.storage import NoStorage
from cogwork.replication.journal import (
    LITTLE_BYTES,
    LITTLE_ENTRIES,
    TINY_BYTES,
    Journal,
)
from cogwork.replication.replayed import Replayed

GROUP = 17
MEMBERS = Membership(("a", "b", "c"))


class Log:
    """A write-ahead log in memory; what nobody needs is really gone."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.low = 0
        self.undurable = 0

    @property
    def durable_lsn(self) -> int:
        return len(self.records) - self.undurable

    @property
    def end_lsn(self) -> int:
        return len(self.records)

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        self.records.append(Record(len(self.records), group, kind, index, term, payload))
        return len(self.records) - 1

    def low_water(self, group: int, lsn: int) -> None:
        assert group == GROUP
        assert lsn >= self.low
        self.low = lsn

    def read(self, lsn: int) -> Record:
        assert self.low <= lsn < self.durable_lsn, "it was given up, or is not there yet"
        return self.records[lsn]

    def replayed(self) -> Replayed:
        found = Replayed()
        for record in self.records[self.low :]:
            found.take(record)
        return found


def entries(first: int, last: int, term: int = 1) -> list[Entry]:
    return [Entry(index, term, Kind.COMMAND, b"%d" % index) for index in range(first, last + 1)]


def test_entries_hard_state_and_kinds_come_back() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    noop = Entry(4, 2, Kind.NOOP, b"")
    journal.write(Write(1, HardState(1, "b", 0), None, entries(1, 3)))
    journal.write(Write(2, HardState(2, None, 2), None, [noop]))
    found = log.replayed()
    assert found.hard_state == HardState(2, None, 2)
    assert found.entries == [*entries(1, 3), noop]
    assert found.snapshot == Snapshot()


def test_an_orderly_end_says_what_is_committed_and_nothing_else() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, HardState(2, "b", 0), None, entries(1, 3)))
    journal.write(Write(2, None, None, entries(4, 5)))
    assert log.replayed().hard_state == HardState(2, "b", 0)
    journal.settle(4)
    assert log.replayed().hard_state == HardState(2, "b", 4)
    count = len(log.records)
    journal.settle(4)
    journal.drop()
    journal.settle(5)
    assert len(log.records) == count + 1, "that it was given up"


def test_an_entry_replaces_all_from_its_index_on() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, None, None, entries(1, 5)))
    journal.write(Write(2, None, None, entries(3, 3, term=2)))
    assert log.replayed().entries == [*entries(1, 2), *entries(3, 3, term=2)]
    assert journal.term(3) == 2
    assert journal.term(4) is None


def test_a_snapshot_of_ones_own_lets_earlier_entries_go() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, HardState(1, "a", 0), None, entries(1, 6)))
    snapshot = Snapshot(4, 1, MEMBERS, 10, 99)
    journal.compact(snapshot)
    assert log.low == 5, "the hard state and entries 1 to 4 are not needed"
    found = log.replayed()
    assert (found.snapshot, found.hard_state) == (snapshot, HardState(1, "a", 0))
    assert found.entries == entries(5, 6)
    assert journal.entries(5, 1_000) == entries(5, 6)
    assert journal.entries(4, 1_000) == []
    journal.compact(Snapshot(6, 1, MEMBERS, 10, 99))
    assert log.replayed().entries == []
    assert log.low == 9, "all that is needed was written last"


def test_a_snapshot_of_the_leader_begins_the_log_anew() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, None, None, entries(1, 6)))
    snapshot = Snapshot(20, 3, MEMBERS, 10, 99)
    journal.write(Write(2, None, snapshot, entries(21, 22, term=3)))
    found = log.replayed()
    assert found.snapshot == snapshot
    assert found.entries == entries(21, 22, term=3)
    assert journal.entries(21, 1) == entries(21, 21, term=3)


def test_it_goes_on_after_a_restart_where_it_was() -> None:
    log = Log()
    first = Journal(log, GROUP)
    first.write(Write(1, HardState(1, "a", 0), None, entries(1, 6)))
    first.compact(Snapshot(2, 1, MEMBERS, 10, 99))
    found = log.replayed()
    found.begin_at(Snapshot(4, 1, MEMBERS, 10, 99))
    again = Journal(log, GROUP)
    recovered = found.recovered(again, NoStorage())
    assert list(recovered.entries) == entries(5, 6)
    assert recovered.snapshot.index == 4
    assert again.entries(5, 1_000) == entries(5, 6)
    again.write(Write(1, None, None, entries(7, 7)))
    assert log.replayed().entries[-1] == entries(7, 7)[0]


def test_a_state_newer_than_the_log_voids_what_does_not_follow() -> None:
    log = Log()
    Journal(log, GROUP).write(Write(1, None, None, entries(1, 6)))
    for snapshot in (Snapshot(9, 2, MEMBERS), Snapshot(6, 2, MEMBERS)):
        found = log.replayed()
        found.begin_at(snapshot)
        assert found.entries == []
        assert found.snapshot == snapshot


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_state_that_voids_the_log_is_written_to_it_however_often_it_was_tried(
    attempts: int,
) -> None:
    """The replica may not be opened the first time; what is appended after that is not void."""
    log = Log()
    Journal(log, GROUP).write(Write(1, None, None, entries(1, 9)))
    state = Snapshot(6, 2, MEMBERS)
    found = log.replayed()
    for _ in range(attempts):
        found.begin_at(state)
    again = Journal(log, GROUP)
    found.recovered(again, NoStorage())
    again.write(Write(1, None, None, entries(7, 7, term=2)))
    found = log.replayed()
    found.begin_at(state)
    assert found.entries == entries(7, 7, term=2)


def test_a_log_that_begins_after_the_state_is_told() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, None, None, entries(1, 6)))
    journal.compact(Snapshot(4, 1, MEMBERS, 10, 99))
    with pytest.raises(Malformed, match="ends at entry 2, and the log begins at 5"):
        log.replayed().begin_at(Snapshot(2, 1, MEMBERS))


def test_records_that_are_no_groups_are_told() -> None:
    with pytest.raises(Malformed, match="its kind is 9"):
        Replayed().take(Record(0, GROUP, 9, 1, 1, b""))
    found = Replayed()
    found.take(Record(0, GROUP, 16, 3, 1, b""))
    found.take(Record(1, GROUP, 16, 5, 1, b""))
    with pytest.raises(Malformed, match="the log begins at 5"):
        found.begin_at(Snapshot(3, 1, MEMBERS))


def test_little_is_written_once_more_and_what_is_older_is_let_go() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, HardState(1, "a", 0), None, entries(1, 6)))
    journal.compact(Snapshot(4, 1, MEMBERS, 10, 99))
    before = log.end_lsn
    assert journal.renew_little()
    assert log.low == before
    found = log.replayed()
    assert (found.snapshot, found.hard_state) == (
        Snapshot(4, 1, MEMBERS, 10, 99),
        HardState(1, "a"),
    )
    assert found.entries == journal.entries(5, 1_000) == entries(5, 6)
    journal.write(Write(2, None, None, entries(6, 7, term=2)))
    assert log.replayed().entries == [*entries(5, 5), *entries(6, 7, term=2)]


def test_more_than_little_is_left_and_so_is_what_cannot_be_read_yet() -> None:
    size_bytes = LITTLE_BYTES // LITTLE_ENTRIES
    for count, each_bytes, undurable, is_little in (
        (LITTLE_ENTRIES, size_bytes, 0, True),
        (LITTLE_ENTRIES, size_bytes, 1, False),
        (LITTLE_ENTRIES, size_bytes + 1, 0, False),
        (LITTLE_ENTRIES + 1, 1, 0, False),
    ):
        log = Log()
        journal = Journal(log, GROUP)
        new = [Entry(index, 1, Kind.COMMAND, bytes(each_bytes)) for index in range(1, count + 1)]
        journal.write(Write(1, None, None, new))
        log.undurable = undurable
        length = len(log.records)
        assert journal.renew_little() == is_little
        assert (len(log.records) > length) == is_little, "else nothing is written"


def test_what_was_written_once_more_is_not_again_unless_it_is_next_to_nothing() -> None:
    for size_bytes, is_tiny in ((TINY_BYTES, True), (TINY_BYTES + 1, False)):
        log = Log()
        journal = Journal(log, GROUP)
        journal.write(Write(1, None, None, [Entry(1, 1, Kind.COMMAND, bytes(size_bytes))]))
        assert journal.renew_little()
        assert [journal.renew_little() for _ in range(3)] == [is_tiny] * 3
        journal.write(Write(2, None, None, entries(2, 2)))
        journal.compact(Snapshot(1, 1, MEMBERS, 10, 99))
        assert journal.renew_little(), "it is not the same any more"


def test_a_log_that_takes_only_a_part_of_it_has_what_there_was() -> None:
    class Busy(Log):
        room = 1_000

        def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
            self.room -= 1
            if self.room < 0:
                raise LogBusy(1)
            return super().append(group, kind, index, term, payload)

    for room in range(8):
        log = Busy()
        journal = Journal(log, GROUP)
        journal.write(Write(1, HardState(1, "a", 0), None, entries(1, 8)))
        journal.compact(Snapshot(2, 1, MEMBERS, 10, 99))
        low, log.room = log.low, room
        with pytest.raises(LogBusy):
            journal.renew_little()
        assert log.low == low
        assert log.replayed().entries == journal.entries(3, 1_000) == entries(3, 8)
        with pytest.raises(LogBusy):
            journal.write(Write(2, None, None, entries(7, 7, term=2)))
        assert journal.entries(3, 1_000) == entries(3, 8), "so it is after a write that is refused"
        log.room = 1_000
        journal.write(Write(2, None, None, entries(7, 7, term=2)))
        assert journal.renew_little()
        assert log.replayed().entries == [*entries(3, 6), *entries(7, 7, term=2)]


def test_what_was_written_once_more_can_be_read_before_it_is_durable() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, None, None, entries(1, 8)))
    assert journal.renew_little()
    low, log.low = log.low, 0  # nothing goes before the copies are durable
    copies = log.end_lsn - low - 1
    journal.write(Write(2, None, None, entries(8, 9, term=2)))
    for undurable in range(2 + copies, 2, -1):
        log.undurable = undurable
        assert journal.entries(1, 7) == entries(1, 7), undurable
        assert journal.term(7) == 1
    log.low, log.undurable = low, 0
    assert journal.entries(1, 1_000) == [*entries(1, 7), *entries(8, 9, term=2)]


@pytest.mark.parametrize("seed", range(100))
def test_whatever_is_written_a_restart_finds_it(seed: int) -> None:
    chance = random.Random(seed)
    log = Log()
    journal = Journal(log, GROUP)
    expected: list[Entry] = []
    base, term, hard = 0, 1, HardState()
    for number in range(60):
        last = base + len(expected)
        what = chance.random()
        if what < 0.6:
            first = last + 1 if chance.random() < 0.7 else chance.randint(base + 1, last + 1)
            term += chance.random() < 0.3
            new = entries(first, first + chance.randrange(4), term)
            hard = HardState(term, chance.choice([None, "a", "bb"]), base)
            journal.write(Write(number, hard, None, new))
            expected = expected[: first - base - 1] + new
        elif what < 0.75:
            journal.renew_little()
        elif what < 0.85 and expected:
            index = chance.randint(base + 1, last)
            at = expected[index - base - 1]
            journal.compact(Snapshot(index, at.term, MEMBERS, number, seed))
            expected, base = expected[index - base :], index
        elif what < 0.95:
            base, term = last + chance.randrange(1, 5), term + 1
            journal.write(Write(number, None, Snapshot(base, term, MEMBERS), ()))
            expected = []
        else:
            found = log.replayed()
            journal = Journal(log, GROUP)
            found.recovered(journal, NoStorage())
        found = log.replayed()
        assert found.entries == expected, seed
        assert found.hard_state == hard, seed
        assert found.snapshot.index == base, seed
        if expected:
            assert journal.entries(base + 1, 1 << 30) == expected, seed


def test_what_was_given_up_is_void_and_another_replica_begins_anew() -> None:
    log = Log()
    journal = Journal(log, GROUP)
    journal.write(Write(1, HardState(4, "b", 0), None, entries(1, 6)))
    journal.compact(Snapshot(4, 1, MEMBERS, 10, 99))
    before = log.low
    journal.drop()
    end = len(log.records)
    assert log.low == end, "nothing is needed any more"
    journal.write(Write(2, HardState(5, "b", 0), None, entries(7, 7)))
    assert len(log.records) == end, "what waited for the log is not written any more"
    log.low = before  # no file of the log could be let go yet
    found = log.replayed()
    assert (found.hard_state, found.snapshot, found.entries) == (HardState(), Snapshot(), [])
    Journal(log, GROUP).write(Write(1, HardState(5, None, 0), None, entries(1, 2, term=5)))
    found = log.replayed()
    found.begin_at(Snapshot())
    assert found.hard_state == HardState(5, None, 0)
    assert found.entries == entries(1, 2, term=5)
