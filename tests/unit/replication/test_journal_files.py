"""What a replica finds in the write-ahead log, after files of it have been let go."""

from __future__ import annotations

import pytest

from cogwork.log.record import Record
from cogwork.plugin.engine.errors import Malformed
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState, Write
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.storage import NoStorage
from cogwork.replication import journal as journal_module
from cogwork.replication.journal import Journal
from cogwork.replication.renewals import while_kept
from cogwork.replication.replayed import Replayed

GROUP = 17
STATE = HardState(1, "a", 0)
MEMBERS = Membership(("a", "b", "c"))


class Records:
    """A log of which the first records can be let go, as a file of it is."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.needed_from = 0

    @property
    def end_lsn(self) -> int:
        return len(self.records)

    durable_lsn = end_lsn

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        lsn = len(self.records)
        self.records.append(Record(lsn, group, kind, index, term, payload))
        return lsn

    def low_water(self, group: int, lsn: int) -> None:
        assert group == GROUP
        self.needed_from = lsn

    def read(self, lsn: int) -> Record:
        return self.records[lsn]


def entries(first: int, end: int) -> tuple[Entry, ...]:
    return tuple(Entry(index, 1, Kind.COMMAND, b"%d" % index) for index in range(first, end))


def written() -> tuple[Records, Journal]:
    log = Records()
    journal = Journal(log, GROUP)
    journal.write(Write(1, STATE, entries=entries(1, 101)))
    journal.compact(Snapshot(60, 1, MEMBERS))
    journal.write(Write(2, STATE, entries=entries(101, 121)))
    journal.compact(Snapshot(110, 1, MEMBERS))
    return log, journal


@pytest.mark.parametrize("spared", [0, 1, 7, 40])
def test_what_begins_in_the_middle_is_read_where_a_snapshot_stands_for_the_rest(
    spared: int,
) -> None:
    """A file is let go as a whole, so records before the low-water mark may be there or not."""
    log, _ = written()
    replayed = Replayed()
    for record in log.records[log.needed_from - spared :]:
        replayed.take(record)
    replayed.begin_at(Snapshot(110, 1, MEMBERS))
    assert [each.index for each in replayed.entries] == list(range(111, 121))
    assert replayed.hard_state == STATE


def test_what_no_snapshot_stands_for_is_missed() -> None:
    log, _ = written()
    replayed = Replayed()
    for record in log.records[log.needed_from :]:
        replayed.take(record)
    with pytest.raises(Malformed, match="the log begins at 111"):
        replayed.begin_at(Snapshot(0, 0, MEMBERS))


def test_an_entry_replaces_all_from_its_index_on() -> None:
    log = Records()
    journal = Journal(log, GROUP)
    journal.write(Write(1, STATE, entries=entries(1, 11)))
    journal.write(Write(2, STATE, entries=(Entry(5, 2, Kind.COMMAND, b"five"),)))
    replayed = Replayed()
    for record in log.records:
        replayed.take(record)
    assert [each.index for each in replayed.entries] == [1, 2, 3, 4, 5]
    assert replayed.entries[-1] == Entry(5, 2, Kind.COMMAND, b"five")


def restarted(log: Records, kept: Snapshot) -> tuple[Journal, list[tuple[int, int]]]:
    """Begin with a snapshot that is kept beside a log; return the entries that follow."""
    replayed = Replayed()
    for record in log.records:
        replayed.take(record)
    replayed.begin_at(kept)
    journal = Journal(log, GROUP)
    found = replayed.recovered(journal, NoStorage())
    return journal, [(each.index, each.term) for each in found.entries]


def of_another_history() -> tuple[Records, Snapshot]:
    """A log whose replica was killed when a leader's snapshot was kept, and not yet in the log."""
    log = Records()
    Journal(log, GROUP).write(Write(1, STATE, entries=entries(1, 26)))
    return log, Snapshot(20, 3, MEMBERS)


def test_what_follows_a_snapshot_of_another_history_is_found_again() -> None:
    log, kept = of_another_history()
    journal, found = restarted(log, kept)
    assert found == []
    journal.write(Write(2, HardState(3), entries=(Entry(21, 3, Kind.COMMAND, b""),)))
    journal, found = restarted(log, kept)
    assert found == [(21, 3)]
    assert journal.term(21) == 3
    assert journal.term(22) is None


def test_a_snapshot_of_another_history_lets_nothing_of_this_one_follow() -> None:
    log, kept = of_another_history()
    journal, _ = restarted(log, kept)
    journal.compact(kept)
    assert restarted(log, kept)[1] == []


def test_what_comes_late_of_a_group_that_is_no_more_is_not_written() -> None:
    log, journal = written()
    journal.drop()
    before = len(log.records)
    journal.write(Write(3, STATE, entries=entries(121, 131)))
    journal.compact(Snapshot(120, 1, MEMBERS))
    assert (len(log.records), log.needed_from) == (before, before)


def test_a_snapshot_that_is_said_twice_keeps_what_follows() -> None:
    log, _ = written()
    journal, _ = restarted(log, Snapshot(110, 1, MEMBERS))
    journal.compact(Snapshot(110, 1, MEMBERS))
    assert [index for index, _ in restarted(log, Snapshot(110, 1, MEMBERS))[1]] == [
        *range(111, 121)
    ]


def replayed_from(records: list[Record]) -> Replayed:
    replayed = Replayed()
    for record in records:
        replayed.take(record)
    return replayed


@pytest.mark.parametrize(
    ("times", "piece_bytes"), [(1, 1), (2, 100), (1, 1 << 20), (1, None), (3, None)]
)
def test_what_is_written_once_more_is_the_same_however_much_of_it_is_there(
    times: int, piece_bytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces of a size, or at once."""
    monkeypatch.setattr(journal_module, "PIECE_BYTES", piece_bytes)
    log, journal = written()
    kept, ends = Snapshot(110, 1, MEMBERS), [len(log.records)]
    for _ in range(times):
        before = len(log.records)
        if piece_bytes is None:
            assert journal.renew_little()
        else:
            for _ in journal.renew():
                assert log.needed_from < before
        assert log.needed_from == before
        ends.append(len(log.records))
    # A crash may leave any part of what was written last.
    for end in range(ends[-2], ends[-1] + 1):
        replayed = replayed_from(log.records[:end])
        assert (replayed.hard_state, replayed.snapshot) == (STATE, kept)
        assert replayed.entries == list(entries(111, 121))
    # Once all of it is there, any of the first files may be gone.
    for first in range(log.needed_from + 1):
        replayed = replayed_from(log.records[first:])
        replayed.begin_at(kept)
        assert replayed.entries == list(entries(111, 121))
        assert replayed.hard_state == STATE


def test_what_is_written_once_more_of_another_history_does_not_follow() -> None:
    log, kept = of_another_history()
    replayed = replayed_from(log.records)
    replayed.begin_at(kept)
    assert list(replayed.renew(Journal(log, GROUP))) == []
    assert restarted(log, kept)[1] == []
    log.records = [each for each in log.records if each.lsn >= log.needed_from]
    assert restarted(log, kept)[1] == []


def test_what_may_be_of_another_history_is_not_written_once_more_of_a_group_at_work() -> None:
    log, kept = of_another_history()
    journal, _ = restarted(log, kept)
    before = len(log.records)
    assert not journal.renew_little()
    assert len(log.records) == before
    journal.compact(kept)
    assert journal.renew_little()


@pytest.fixture
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "PIECE_BYTES", 1)


@pytest.mark.usefixtures("_small_pieces")
def test_what_is_given_up_while_it_is_written_once_more_does_not_come_again() -> None:
    log, journal = written()
    kept = {GROUP: journal}
    renewal = while_kept(kept, GROUP, journal.renew())
    next(renewal)
    del kept[GROUP]
    journal.drop()
    end = len(log.records)
    assert list(renewal) == []
    assert (len(log.records), log.needed_from) == (end, end)
    assert replayed_from(log.records).entries == []


@pytest.mark.usefixtures("_small_pieces")
def test_what_is_found_to_be_less_while_it_is_written_once_more_is_still_there() -> None:
    log, _ = written()
    replayed = replayed_from(log.records)
    renewal = replayed.renew(Journal(log, GROUP))
    next(renewal)
    needed_from = log.needed_from
    replayed.begin_at(Snapshot(115, 1, MEMBERS))
    assert list(renewal) == []
    assert log.needed_from == needed_from
    journal = Journal(log, GROUP)
    replayed.recovered(journal, NoStorage())
    assert [each.index for each in journal.entries(116, 1 << 20)] == [*range(116, 121)]


def test_what_cannot_be_had_is_written_once_more_and_goes_on() -> None:
    log, _ = written()
    replayed = replayed_from(log.records)
    assert list(replayed.renew(Journal(log, GROUP))) == []
    replayed.begin_at(Snapshot(110, 1, MEMBERS))
    journal = Journal(log, GROUP)
    replayed.recovered(journal, NoStorage())
    assert min(journal.lsns) > log.needed_from
    journal.write(Write(3, STATE, entries=(Entry(115, 2, Kind.COMMAND, b"other"),)))
    found = replayed_from(log.records).entries
    assert [(each.index, each.term) for each in found] == [
        *((index, 1) for index in range(111, 115)),
        (115, 2),
    ]
