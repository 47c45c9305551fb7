"""Writes, and what waits for them."""

from __future__ import annotations

from cogwork.raft.entries import Entry, Kind
from cogwork.raft.log import Log
from cogwork.raft.messages import VoteReply
from cogwork.raft.outbox import Outbox
from cogwork.raft.ready import HardState
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.storage import NoStorage

REPLY = VoteReply(1, True)


def entry(index: int, term: int) -> Entry:
    return Entry(index, term, Kind.COMMAND, b"")


def test_nothing_new_is_no_write() -> None:
    assert Outbox(0, Settings()).take_write(Log(0, 0, (), NoStorage()), 0, None, 0) is None


def test_a_message_waits_for_the_vote_it_speaks_of() -> None:
    outbox, log = Outbox(0, Settings()), Log(0, 0, (), NoStorage())
    outbox.send("b", REPLY)
    outbox.harden()
    outbox.send("c", REPLY)
    assert outbox.take_messages() == [("b", REPLY)]
    write = outbox.take_write(log, 1, "c", 0)
    assert write is not None
    assert write.hard_state == HardState(1, "c", 0)
    assert not outbox.is_hard_durable
    outbox.persisted(write.number)
    assert outbox.is_hard_durable
    assert outbox.take_messages() == [("c", REPLY)]


def test_what_is_durable_stays_so_when_word_of_an_earlier_write_comes_late_or_twice() -> None:
    outbox, log = Outbox(0, Settings()), Log(0, 0, (), NoStorage())
    for term in (1, 2):
        outbox.harden()
        write = outbox.take_write(log, term, None, 0)
        assert write is not None
    outbox.persisted(2)
    outbox.persisted(1)
    assert outbox.is_hard_durable
    outbox.send("b", REPLY)
    assert outbox.take_messages() == [("b", REPLY)]


def test_messages_that_wait_are_bounded() -> None:
    outbox = Outbox(0, Settings(held_messages=2))
    outbox.harden()
    for _ in range(5):
        outbox.send("b", REPLY)
    write = outbox.take_write(Log(0, 0, (), NoStorage()), 1, None, 0)
    assert write is not None
    outbox.persisted(write.number)
    assert len(outbox.take_messages()) == 2


def test_a_late_word_of_a_write_that_was_overtaken_says_nothing() -> None:
    """Entry (2, 1) is written, cut off, and comes again: its first write is not its second."""
    outbox, log = Outbox(0, Settings()), Log(0, 0, (), NoStorage())
    log.append(entry(1, 1))
    first = outbox.take_write(log, 1, None, 0)
    log.append(entry(2, 1))
    second = outbox.take_write(log, 1, None, 0)
    log.truncate(2)
    outbox.cut(2)
    log.append(entry(2, 3))
    third = outbox.take_write(log, 3, None, 0)
    log.truncate(2)
    outbox.cut(2)
    log.append(entry(2, 1))
    fourth = outbox.take_write(log, 4, None, 0)
    assert first is not None
    assert second is not None
    assert third is not None
    assert fourth is not None
    assert [each.index for each in fourth.entries] == [2]
    for write in (first, second, third):
        outbox.persisted(write.number)
        assert outbox.durable_index == 1
    outbox.persisted(fourth.number)
    assert outbox.durable_index == 2
    outbox.persisted(first.number)
    assert outbox.durable_index == 2


def test_a_snapshot_is_durable_with_its_write_and_what_was_before_counts_no_more() -> None:
    outbox, log = Outbox(0, Settings()), Log(0, 0, (), NoStorage())
    log.append(entry(1, 1))
    first = outbox.take_write(log, 1, None, 0)
    snapshot = Snapshot(9, 2)
    log.reset(9, 2)
    outbox.restart(snapshot)
    second = outbox.take_write(log, 2, None, 9)
    assert first is not None
    assert second is not None
    assert (second.snapshot, list(second.entries)) == (snapshot, [])
    outbox.persisted(first.number)
    assert outbox.durable_index == 0
    outbox.persisted(second.number)
    assert outbox.durable_index == 9


def test_what_is_committed_by_entries_that_may_still_be_torn_off_is_not_written_before_them() -> (
    None
):
    """Behind the hard state the write may end: entry (1, 1) is then there still."""
    log = Log(0, 0, (entry(1, 1),), NoStorage())
    outbox = Outbox(1, Settings(hint_entries=1))
    log.truncate(1)
    outbox.cut(1)
    log.append(entry(1, 2))
    outbox.harden()
    write = outbox.take_write(log, 2, None, 1)
    assert write is not None
    assert write.hard_state == HardState(2, None, 0)
    outbox.persisted(write.number)
    log.append(entry(2, 2))
    write = outbox.take_write(log, 2, None, 2)
    assert write is not None
    assert write.hard_state == HardState(2, None, 1)


def test_what_a_snapshot_commits_is_not_written_before_it() -> None:
    log = Log(0, 0, (entry(1, 1),), NoStorage())
    outbox = Outbox(1, Settings())
    log.reset(5, 2)
    outbox.restart(Snapshot(5, 2))
    outbox.harden()
    write = outbox.take_write(log, 2, None, 5)
    assert write is not None
    assert write.hard_state == HardState(2, None, 0)


def test_the_commit_index_is_written_with_a_new_term_or_vote_and_else_only_now_and_then() -> None:
    log, outbox = Log(0, 0, (), NoStorage()), Outbox(0, Settings(hint_entries=3))
    found: list[HardState | None] = []
    for index in range(1, 9):
        log.append(entry(index, 1))
        if index == 6:
            outbox.harden()
        write = outbox.take_write(log, 1, "a", index - 1)
        assert write is not None
        found.append(write.hard_state)
        outbox.persisted(write.number)
    committed = [None if each is None else each.commit for each in found]
    assert committed == [None, None, None, 3, None, 5, None, None]


def test_what_was_written_before_a_restart_is_not_written_again() -> None:
    log = Log(0, 0, (entry(1, 1), entry(2, 1)), NoStorage())
    outbox = Outbox(2, Settings(hint_entries=2), hint=2)
    log.append(entry(3, 1))
    write = outbox.take_write(log, 1, None, 2)
    assert write is not None
    assert (write.hard_state, [each.index for each in write.entries]) == (None, [3])
