"""What all replicas of a container write, where the log does not take it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.log.errors import LogBusy, RecordTooLarge
from cogwork.raft.pace import Pace
from cogwork.replication.writing import QUICK_S, Writing

if TYPE_CHECKING:
    from cogwork.log.wal import Wal
    from cogwork.raft.ready import Write
    from cogwork.raft.snapshot import Snapshot
    from cogwork.replication.journal import Journal


class Taken:
    """A write-ahead log and a journal that take so many things and no more."""

    def __init__(self) -> None:
        self.room = 0
        self.taken: list[object] = []
        self.flushes = 0
        self.durable_lsn = 0
        self.takes_nothing = False

    @property
    def end_lsn(self) -> int:
        return len(self.taken)

    def write(self, write: Write | None) -> None:
        if write is not None:
            self._take(write)

    def compact(self, snapshot: Snapshot) -> None:
        self._take(snapshot)

    def flush(self) -> None:
        self.flushes += 1

    def _take(self, what: object) -> None:
        if not self.room:
            raise LogBusy(1)
        self.room -= 1
        self.taken.append(what)


def test_all_is_written_in_order_and_what_is_refused_is_tried_again() -> None:
    log = Taken()
    reports: list[str] = []
    writing = Writing(cast("Wal", log), reports.append)
    journal = cast("Journal", log)
    writing.add(journal, cast("Write", "a"))
    writing.compact(journal, cast("Snapshot", "b"))
    writing.end_turn(1)
    writing.add(journal, cast("Write", "c"))
    writing.end_turn(2)
    expected = [[], ["a"], ["a"], ["a", "b", "c"]]
    for room, taken in zip((0, 1, 0, 2), expected, strict=True):
        log.room = room
        writing.flush()
        assert log.taken == taken
    assert log.flushes == 4, "what was taken is on its way, whatever was refused"
    assert len(reports) == 1, "told once, however often it is refused"
    assert [writing.durable(lsn) for lsn in (1, 2, 2, 3)] == [0, 1, 0, 2]


def test_a_write_that_leaves_nothing_in_the_log_is_durable_with_all_that_is_before_it() -> None:
    log = Taken()
    log.room = 2
    writing = Writing(cast("Wal", log), lambda _: None)
    journal = cast("Journal", log)
    nothing = cast("Write", None)
    writing.add(journal, nothing)
    writing.end_turn(1)
    assert writing.flush() == 1, "the log would never tell of it"
    writing.add(journal, cast("Write", "a"))
    writing.end_turn(2)
    writing.add(journal, nothing)
    writing.end_turn(3)
    assert writing.flush() == 0, "what comes before is not durable"
    assert writing.durable(1) == 3
    log.durable_lsn = 1
    writing.add(journal, nothing)
    writing.end_turn(4)
    assert writing.flush() == 4


def test_where_nothing_is_kept_nothing_is_written() -> None:
    writing = Writing(None, lambda _: None)
    assert writing.flush() == 0
    assert writing.durable(1 << 40) == 0


def test_a_disk_is_taken_for_quick_while_no_write_waits_for_long() -> None:
    log, pace, now_s = Taken(), Pace(), [0.0]
    writing = Writing(cast("Wal", log), lambda _: None, pace=pace, clock=lambda: now_s[0])

    def write(number: int, room: int = 1) -> None:
        log.room = room
        writing.add(cast("Journal", log), cast("Write", number))
        writing.end_turn(number)
        writing.flush()
        writing.look_at_pace()

    write(1)
    assert not pace.is_quick, "nothing was seen of it yet"
    now_s[0] += QUICK_S / 2
    writing.durable(1)
    assert pace.is_quick
    write(2)
    now_s[0] += QUICK_S * 2
    assert pace.is_quick, "a write is on its way"
    writing.look_at_pace()
    assert not pace.is_quick, "it takes too long"
    writing.durable(2)
    assert not pace.is_quick, "it took too long"
    write(3)
    writing.durable(3)
    assert pace.is_quick
    write(4, room=0)
    assert not pace.is_quick, "it takes nothing"


def test_who_stands_for_election_knows_whether_a_vote_can_be_written() -> None:
    log, pace = Taken(), Pace()
    writing = Writing(cast("Wal", log), lambda _: None, pace=pace)
    for log.takes_nothing in (False, True, False):
        writing.look_at_pace()
        assert pace.takes_nothing is log.takes_nothing


class Endless(Taken):
    """A journal whose writes fit no file."""

    group = 17
    is_stopped = False

    def write(self, write: Write | None) -> None:
        if not self.is_stopped:
            raise RecordTooLarge(len(str(write)), 0)

    def stop(self) -> None:
        self.is_stopped = True


def test_a_write_that_fits_no_file_stops_its_replica_and_holds_up_no_other() -> None:
    log, endless = Taken(), Endless()
    log.room = 2
    stopped: list[tuple[int, str]] = []
    writing = Writing(
        cast("Wal", log),
        lambda _: None,
        stop=lambda group, error: stopped.append((group, type(error).__name__)),
    )
    writing.add(cast("Journal", log), cast("Write", "a"))
    writing.add(cast("Journal", endless), cast("Write", "too large"))
    writing.add(cast("Journal", endless), cast("Write", "behind it"))
    writing.add(cast("Journal", log), cast("Write", "b"))
    writing.end_turn(1)
    writing.flush()
    assert log.taken == ["a", "b"]
    assert stopped == [(17, "RecordTooLarge")]
    assert not writing.is_waiting
