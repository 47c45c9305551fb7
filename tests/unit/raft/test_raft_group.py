"""One group: what it refuses, what it holds at most, what it does with false messages."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from lone_group import THREE, entry, group_of, leader_of, sent, settle

from cogwork.plugin.engine.errors import Busy, InvalidAppend, NotLeader
from cogwork.raft.core import Recovered
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.errors import Malformed, Violation
from cogwork.raft.group import Group
from cogwork.raft.membership import LEARNERS_MAX, Membership
from cogwork.raft.messages import (
    Append,
    AppendReply,
    Commit,
    Heartbeat,
    HeartbeatReply,
    ReadIndex,
    ReadIndexReply,
    SnapshotPart,
    SnapshotReply,
    Vote,
    VoteReply,
)
from cogwork.raft.ready import HardState, Read, ReadFailed
from cogwork.raft.roles import Role
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from cogwork.raft.messages import Message


def test_a_single_voter_leads_and_commits_when_its_disk_says_so() -> None:
    group = group_of(Membership(("a",)))
    group.tick(group.wake_s)
    first = group.ready()
    assert first.write is not None
    assert group.role is Role.CANDIDATE
    group.persisted(first.write.number, 0.0)
    assert group.role is Role.LEADER
    _, index = group.propose(b"x", 1.0)
    second = group.ready()
    assert second.write is not None
    assert not second.committed
    group.persisted(second.write.number, 0.0)
    assert [each.index for each in group.ready().committed] == [1, index]


def test_only_the_leader_takes_commands_and_it_is_named() -> None:
    group = group_of()
    with pytest.raises(NotLeader) as nobody:
        group.propose(b"x", 0.0)
    assert nobody.value.hint is None
    group.step("b", Heartbeat(1, 0), 0.0)
    with pytest.raises(NotLeader) as known:
        group.propose(b"x", 0.0)
    assert known.value.hint == "b"
    with pytest.raises(NotLeader):
        group.transfer("b", 0.0)
    with pytest.raises(NotLeader):
        group.change(THREE, 0.0)


def test_an_entry_that_is_too_large_is_never_taken() -> None:
    group = leader_of(entry_bytes=10)
    group.propose(bytes(10), 0.0)
    with pytest.raises(InvalidAppend):
        group.propose(bytes(11), 0.0)


def test_commands_that_are_not_committed_are_bounded_by_number() -> None:
    group = leader_of(uncommitted_entries=3)
    for _ in range(3):
        group.propose(b"x", 0.0)
    with pytest.raises(Busy):
        group.propose(b"x", 0.0)
    settle(group)
    group.step("b", AppendReply(1, 4), 0.0)
    group.propose(b"x", 0.0)


def test_commands_that_are_not_committed_are_bounded_by_octets_but_one_always_has_room() -> None:
    group = leader_of(uncommitted_bytes=1000)
    group.propose(bytes(5000), 0.0)
    with pytest.raises(Busy):
        group.propose(b"x", 0.0)
    settle(group)
    group.step("b", AppendReply(1, 2), 0.0)
    group.propose(b"x", 0.0)
    assert group.leadership is not None
    assert 0 < group.leadership.uncommitted_bytes < 1000


def test_messages_have_a_bounded_size_and_number() -> None:
    group = leader_of(append_entries=2, window_messages=3)
    for _ in range(20):
        group.propose(b"x", 0.0)
    appends = [message for to, message in sent(group) if to == "b"]
    assert [len(each.entries) for each in appends if isinstance(each, Append)] == [2, 2, 2]
    group.step("b", AppendReply(1, 3), 0.0)
    (again,) = [each for to, each in sent(group) if to == "b" and isinstance(each, Append)]
    assert [each.index for each in again.entries] == [8, 9]


def test_followers_at_the_same_place_get_the_same_message() -> None:
    group = leader_of()
    group.propose(b"x", 0.0)
    one, other = [each for _, each in sent(group) if isinstance(each, Append)]
    assert one is other


def test_what_is_applied_comes_in_bounded_parts() -> None:
    group = group_of(entries=[entry(n, 1) for n in range(1, 11)], term=1, ready_bytes=400)
    group.step("b", Append(1, 10, 1, 10), 0.0)
    sizes = [len(ready.committed) for ready in settle(group)]
    assert len(sizes) >= 3
    assert sum(sizes) == 10


def test_an_applied_entry_is_not_applied_again_after_a_restart() -> None:
    recovered = Recovered(
        hard_state=HardState(1, None, 3),
        snapshot=Snapshot(membership=THREE),
        entries=[entry(n, 1) for n in range(1, 5)],
        applied=2,
    )
    group = Group("a", recovered, Random(1), 0.0)
    assert [each.index for each in group.ready().committed] == [3]


def test_entries_wait_while_the_disk_is_behind() -> None:
    group = group_of(unpersisted_bytes=1000)
    group.step("b", Append(1, 0, 0, 0, [entry(1, 1, bytes(2000))]), 0.0)
    group.step("b", Append(1, 1, 1, 0, [entry(2, 1)]), 0.0)
    assert group.last_index == 1
    settle(group)
    group.step("b", Append(1, 1, 1, 0, [entry(2, 1)]), 0.0)
    assert group.last_index == 2


def test_an_answer_is_not_put_off_by_entries_that_come_later() -> None:
    group = group_of()
    group.step("b", Append(1, 0, 0, 0, [entry(1, 1)]), 0.0)
    number = 0
    for index in range(2, 10):
        ready = group.ready()
        assert ready.write is not None
        number = ready.write.number
        group.persisted(number, 0.0)
        group.step("b", Append(1, index - 1, 1, 0, [entry(index, 1)]), 0.0)
        if index > 2:
            assert ("b", AppendReply(1, index - 2)) in ready.messages
    assert number == 8


def test_reads_are_bounded() -> None:
    group = leader_of(reads=2)
    group.read_index(1, 0.0)
    group.read_index(2, 0.0)
    with pytest.raises(Busy):
        group.read_index(3, 0.0)


def test_a_followers_reads_are_bounded_also_while_they_wait_to_be_applied() -> None:
    group = group_of(reads=1)
    group.step("b", Heartbeat(1, 0), 0.0)
    group.read_index("t", 0.0)
    ((_, asked),) = [each for each in sent(group) if isinstance(each[1], ReadIndex)]
    assert isinstance(asked, ReadIndex)
    with pytest.raises(Busy):
        group.read_index("u", 0.0)
    group.step("b", ReadIndexReply(1, asked.number, 1), 0.0)
    with pytest.raises(Busy):
        group.read_index("u", 0.0)
    group.step("b", Append(1, 0, 0, 1, [entry(1, 1)]), 0.0)
    assert [ready.reads for ready in settle(group) if ready.reads] == [[Read("t", 1)]]
    group.read_index("u", 0.0)


def test_a_new_leader_does_not_answer_reads_before_it_has_committed() -> None:
    group = group_of(entries=[entry(1, 1)], term=1)
    group.tick(group.wake_s)
    settle(group)
    for is_pre in (True, False):
        group.step("b", VoteReply(2, is_granted=True, is_pre=is_pre), 0.0)
        settle(group)
    group.read_index("t", 0.0)
    assert not any(ready.reads for ready in settle(group))
    group.step("b", HeartbeatReply(2, 1), 0.0)
    assert not any(ready.reads for ready in settle(group))
    group.step("b", AppendReply(2, 2), 0.0)
    settle(group)
    group.step("b", HeartbeatReply(2, 1), 0.0)
    assert [ready.reads for ready in settle(group) if ready.reads] == [[Read("t", 2)]]


def test_a_followers_read_fails_when_nobody_answers_and_a_late_answer_is_none() -> None:
    group = group_of()
    with pytest.raises(NotLeader):
        group.read_index("t", 0.0)
    group.step("b", Heartbeat(1, 0), 0.0)
    group.read_index("t", 0.0)
    ((_, asked),) = [each for each in sent(group) if isinstance(each[1], ReadIndex)]
    assert isinstance(asked, ReadIndex)
    group.tick(group.wake_s)
    events = [event for ready in settle(group) for event in ready.events]
    assert ReadFailed("t") in events
    group.step("b", ReadIndexReply(1, asked.number, 0), 9.0)
    assert not any(ready.reads for ready in settle(group))


def test_a_change_that_would_need_too_many_learners_is_refused() -> None:
    learners = tuple(f"l{n}" for n in range(LEARNERS_MAX))
    group = group_of(Membership(("a",), learners))
    group.tick(group.wake_s)
    settle(group)
    with pytest.raises(ValueError, match="1024 learners"):
        group.change(Membership(("a", "b"), ()), 1.0)
    group.change(Membership(("a", "l0"), learners[1:]), 1.0)


# False messages: of a member that has lost its memory, or its mind.


def test_a_change_waits_for_a_majority_of_those_that_are_to_vote() -> None:
    group = leader_of()
    for _ in range(10):
        now_s = group.wake_s
        group.tick(now_s)
        settle(group)
        group.step("c", HeartbeatReply(1), now_s)
    group.change(Membership(("a", "b")), now_s)
    settle(group)
    assert group.membership == THREE
    group.step("b", HeartbeatReply(1), now_s)
    group.tick(group.wake_s)
    settle(group)
    assert group.membership == Membership(("a", "b"), old_voters=("a", "b", "c"))


def test_two_leaders_in_a_term_are_a_violation() -> None:
    group = group_of()
    group.step("b", Heartbeat(1, 0), 0.0)
    with pytest.raises(Violation):
        group.step("c", Heartbeat(1, 0), 0.0)
    leader = leader_of()
    with pytest.raises(Violation):
        leader.step("b", Append(1, 0, 0, 0), 0.0)


def test_what_is_committed_is_never_cut_off() -> None:
    group = group_of()
    group.step("b", Append(1, 0, 0, 2, [entry(1, 1), entry(2, 1)]), 0.0)
    settle(group)
    with pytest.raises(Violation):
        group.step("b", Append(2, 0, 0, 2, [entry(1, 1), entry(2, 2)]), 0.0)
    assert [each.term for each in group.entries(2, 2)] == [1]


def test_nothing_is_cut_off_that_does_not_differ() -> None:
    group = group_of()
    group.step("b", Append(1, 0, 0, 0, [entry(1, 1), entry(2, 1), entry(3, 1)]), 0.0)
    group.step("b", Append(1, 0, 0, 0, [entry(1, 1)]), 0.0)
    assert group.last_index == 3


def test_a_follower_commits_only_what_it_knows_to_be_the_leaders() -> None:
    group = group_of(entries=[entry(1, 1), entry(2, 1)], term=1)
    group.step("b", Commit(2, 2), 0.0)
    group.step("b", Heartbeat(2, 2), 0.0)
    assert group.commit == 0
    group.step("b", Append(2, 1, 1, 2), 0.0)
    assert group.commit == 1


def test_a_follower_that_lacks_something_does_not_fall_asleep() -> None:
    group = group_of()
    group.step("b", Append(1, 0, 0, 1, [entry(1, 1)]), 0.0)
    settle(group)
    group.step("b", Heartbeat(1, 2, is_quiescing=True), 0.0)
    assert sent(group) == [("b", HeartbeatReply(1, 0, is_behind=True))]
    assert not group.is_quiescent
    group.step("b", Append(1, 1, 1, 2, [entry(2, 1)]), 0.0)
    settle(group)
    group.step("b", Heartbeat(1, 2, is_quiescing=True), 0.0)
    assert not sent(group)
    assert group.is_quiescent


@pytest.mark.parametrize(
    "message",
    [
        AppendReply(1, 10**9),
        AppendReply(1, 0, rejected=10**9, hint_index=10**9, hint_term=10**9),
        AppendReply(1, 0, rejected=1),
        SnapshotReply(1, 5, 10**9),
        HeartbeatReply(1, 10**9),
        HeartbeatReply(1, 0, is_behind=True),
        ReadIndexReply(0, 3, 10**9),
        VoteReply(1, is_granted=True),
        Vote(1, 10**9, 10**9),
    ],
)
def test_false_answers_commit_nothing_and_change_no_log(message: Message) -> None:
    group = leader_of()
    group.propose(b"x", 0.0)
    settle(group)
    group.step("b", message, 0.0)
    group.step("stranger", message, 0.0)
    settle(group)
    assert (group.commit, group.last_index, group.role) == (1, 2, Role.LEADER)


# Snapshots.


def part(offset: int, data: bytes, snapshot: Snapshot, term: int = 1) -> SnapshotPart:
    return SnapshotPart(term, snapshot, offset, data)


SNAPSHOT = Snapshot(9, 1, THREE, 6, tag=5)


def test_a_snapshot_is_resumed_by_another_leader_that_has_the_same() -> None:
    group = group_of()
    group.step("b", part(0, b"abc", SNAPSHOT), 0.0)
    assert ("b", SnapshotReply(1, 9, 3)) in sent(group)
    group.step("c", part(0, b"abc", SNAPSHOT, term=2), 0.0)
    assert ("c", SnapshotReply(2, 9, 3)) in sent(group)
    group.step("c", part(3, b"def", SNAPSHOT, term=2), 0.0)
    (ready,) = settle(group)
    assert [(chunk.offset, chunk.data) for chunk in ready.chunks] == [(3, b"def")]
    assert ready.received == SNAPSHOT


def test_another_snapshot_begins_anew() -> None:
    group = group_of()
    group.step("b", part(0, b"abc", SNAPSHOT), 0.0)
    other = Snapshot(9, 1, THREE, 6, tag=6)
    group.step("c", part(3, b"def", other, term=2), 0.0)
    assert ("c", SnapshotReply(2, 9, 0)) in sent(group)


def test_a_snapshot_counts_when_it_is_accepted_and_durable() -> None:
    group = group_of(entries=[entry(1, 1)], term=1)
    group.step("b", part(0, b"abcdef", SNAPSHOT), 0.0)
    settle(group)
    assert (group.commit, group.last_index) == (0, 1)
    assert group.accept_snapshot(SNAPSHOT)
    ready = group.ready()
    assert (ready.restore, ready.write and ready.write.snapshot) == (SNAPSHOT, SNAPSHOT)
    assert not any(isinstance(each, AppendReply) for _, each in ready.messages)
    assert ready.write is not None
    group.persisted(ready.write.number, 0.0)
    assert sent(group) == [("b", AppendReply(1, 9))]
    assert (group.commit, group.applied, group.compacted_index) == (9, 9, 9)
    assert not group.accept_snapshot(SNAPSHOT)


def test_a_snapshot_that_is_no_good_comes_again() -> None:
    group = group_of()
    group.step("b", part(0, b"abcdef", SNAPSHOT), 0.0)
    settle(group)
    group.refuse_snapshot(SNAPSHOT)
    assert sent(group) == [("b", SnapshotReply(1, 9, 0))]
    group.step("b", part(0, b"abcdef", SNAPSHOT), 0.0)
    assert [ready.received for ready in settle(group)] == [SNAPSHOT]


def test_a_snapshot_of_what_the_log_has_commits_it_and_nothing_is_lost() -> None:
    group = group_of(entries=[entry(n, 1) for n in range(1, 12)], term=1)
    group.step("b", part(0, b"abc", SNAPSHOT), 0.0)
    (ready,) = settle(group)
    assert [each.index for each in ready.committed] == list(range(1, 10))
    assert group.last_index == 11
    assert ("b", AppendReply(1, 9)) in ready.messages


def test_a_part_behind_the_end_is_a_violation() -> None:
    group = group_of()
    with pytest.raises(Violation):
        group.step("b", part(0, b"abcdefg", SNAPSHOT), 0.0)


def test_what_is_not_applied_cannot_be_compacted() -> None:
    group = group_of(entries=[entry(1, 1)], term=1)
    with pytest.raises(AssertionError):
        group.compact(1)


def test_a_snapshot_knows_the_membership_of_its_time() -> None:
    later = Membership(("a", "b"))
    group = group_of()
    members = Entry(2, 1, Kind.MEMBERS, later.to_bytes())
    group.step("b", Append(1, 0, 0, 2, [entry(1, 1), members, entry(3, 1)]), 0.0)
    settle(group)
    assert group.membership == later
    assert group.snapshot_of(1, 10).membership == THREE
    assert group.snapshot_of(2, 10).membership == later
    group.compact(2)
    assert group.snapshot_of(2, 10).membership == later


def test_a_membership_that_is_none_changes_nothing() -> None:
    group = group_of(entries=[entry(1, 1), entry(2, 1)], term=1)
    later = Membership(("b",))
    good = Entry(2, 2, Kind.MEMBERS, later.to_bytes())
    with pytest.raises(Malformed):
        group.step("c", Append(2, 1, 1, 0, [good, Entry(3, 2, Kind.MEMBERS, b"?")]), 0.0)
    assert (group.membership, group.last_index) == (THREE, 2)
    assert [each.term for each in group.entries(2, 2)] == [1]


def test_a_membership_is_taken_back_with_its_entry() -> None:
    later = Membership(("b",))
    group = group_of()
    members = Entry(1, 1, Kind.MEMBERS, later.to_bytes())
    group.step("b", Append(1, 0, 0, 0, [members]), 0.0)
    assert group.membership == later
    group.step("c", Append(2, 0, 0, 0, [entry(1, 2)]), 0.0)
    assert group.membership == THREE
