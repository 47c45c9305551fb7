"""What a group reads again where the log cannot be read any more."""

from __future__ import annotations

import errno
from types import SimpleNamespace

from cogwork.log.errors import LogCorrupt
from cogwork.log.record import Record
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState, Write
from cogwork.replication.files import KeptState
from cogwork.replication.journal import Journal
from cogwork.replication.member_storage import MemberStorage

ENTRIES = tuple(Entry(index, 1, Kind.COMMAND, b"%d" % index) for index in range(1, 11))
STATE = KeptState.of(6, 1, Membership(("a",)), b"state")


class Log:
    """A log of which some records are damaged.

    Attributes:
        damaged: What reading some of them raises, by LSN.
    """

    durable_lsn = end_lsn = 0

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.damaged: dict[int, Exception] = {}

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        self.records.append(Record(len(self.records), group, kind, index, term, payload))
        return len(self.records) - 1

    def low_water(self, group: int, lsn: int) -> None:
        """Let nothing go."""

    def read(self, lsn: int) -> Record:
        if lsn in self.damaged:
            raise self.damaged[lsn]
        return self.records[lsn]


def made() -> tuple[Log, MemberStorage, list[str]]:
    log, reports = Log(), list[str]()
    journal = Journal(log, 17)
    journal.write(Write(1, HardState(1, "a", 0), entries=ENTRIES))
    files = SimpleNamespace(state=STATE)
    return log, MemberStorage(journal, files, reports.append), reports  # type: ignore[arg-type]  # all that is asked


def test_what_cannot_be_read_counts_as_given_up_and_is_told_once() -> None:
    log, storage, reports = made()
    log.damaged = {5: LogCorrupt("1.wal", 99, "it is"), 8: OSError(errno.EMFILE, "too many")}
    assert storage.entries(1, 1000) == [*ENTRIES[:4]], "what is before it can be had"
    for _attempt in range(2):
        assert storage.entries(5, 1000) == ()
        assert storage.term(5) is None
        assert storage.term(8) is None
    assert storage.entries(6, 1000) == [*ENTRIES[5:7]]
    assert [text.split(": ")[0] for text in reports] == [
        "cannot read an entry and treats it as deleted"
    ] * 2
    assert "1.wal is damaged at position 99" in reports[0]


def test_the_term_that_a_snapshot_ends_with_is_known_without_its_entry() -> None:
    log, storage, reports = made()
    log.damaged = {6: LogCorrupt("1.wal", 99, "it is")}
    assert storage.term(6) == 1
    assert reports == []
