"""Who counts what is durable: the leader, and a follower that is a majority together with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lone_group import entry, group_of, leader_of, sent, settle

from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.messages import Append, AppendReply, Commit, HeartbeatReply
from cogwork.raft.ready import Read

if TYPE_CHECKING:
    from cogwork.raft.group import Group


def follower_of(*voters: str, entries: int = 2) -> Group:
    """Return a follower of b in term 1 that has entries of it, which are not durable here yet."""
    group = group_of(Membership(voters))
    group.step("b", Append(1, 0, 0, 0, [entry(n, 1) for n in range(1, entries + 1)]), 0.0)
    return group


def test_a_follower_among_three_commits_what_its_leader_and_it_have_durable() -> None:
    group = follower_of("a", "b", "c")
    first = group.ready()
    assert first.write is not None
    group.step("b", Commit(1, 0, durable=9), 0.0)
    assert group.commit == 0, "its own disk has not answered"
    group.persisted(first.write.number, 0.0)
    assert group.commit == 2
    assert [each.index for ready in settle(group) for each in ready.committed] == [1, 2]


def test_a_follower_among_three_waits_for_its_leaders_disk() -> None:
    group = follower_of("a", "b", "c")
    settle(group)
    assert group.commit == 0
    group.step("b", Commit(1, 0, durable=1), 0.0)
    assert group.commit == 1


def test_a_follower_and_its_leader_are_no_majority_of_five() -> None:
    group = follower_of("a", "b", "c", "d", "e")
    settle(group)
    group.step("b", Commit(1, 0, durable=2), 0.0)
    assert group.commit == 0


def test_a_follower_counts_no_entry_of_an_earlier_term() -> None:
    group = group_of(entries=[entry(1, 1)], term=1)
    group.step("b", Append(2, 1, 1, 0), 0.0)
    group.step("b", Commit(2, 0, durable=1), 0.0)
    settle(group)
    assert group.commit == 0
    group.step("b", Append(2, 1, 1, 0, [entry(2, 2)]), 0.0)
    group.step("b", Commit(2, 0, durable=2), 0.0)
    settle(group)
    assert group.commit == 2


def test_what_an_earlier_leader_had_durable_is_not_counted_for_the_next_one() -> None:
    group = follower_of("a", "b", "c")
    settle(group)
    group.step("c", Append(2, 1, 1, 0, [entry(2, 2)]), 0.0)
    settle(group)
    assert group.commit == 0
    group = follower_of("a", "b", "c", entries=1)
    group.step("b", Commit(1, 0, durable=2), 0.0)
    group.step("c", Append(2, 0, 0, 0, [entry(1, 2), entry(2, 2)]), 0.0)
    settle(group)
    assert group.commit == 0


def test_a_follower_counts_by_no_members_of_an_earlier_leader() -> None:
    members = Entry(2, 1, Kind.MEMBERS, Membership(("a", "b")).to_bytes())
    group = group_of(Membership(("a", "b", "c", "d", "e")), [entry(1, 1), members], term=1)
    assert group.membership.voters == ("a", "b")
    group.step("b", Append(2, 1, 1, 0), 0.0)
    group.step("b", Commit(2, 0, durable=1), 0.0)
    settle(group)
    assert group.commit == 0, "what may be cut off yet says who they are"
    group.step("b", Append(2, 0, 0, 0, [entry(1, 2)]), 0.0)
    assert group.membership.voters == ("a", "b", "c", "d", "e"), "it was cut off"
    group.step("b", Commit(2, 0, durable=1), 0.0)
    settle(group)
    assert group.commit == 0


def told(group: Group) -> list[tuple[str, Commit]]:
    return [(to, each) for to, each in sent(group) if isinstance(each, Commit)]


def test_a_leader_of_three_tells_what_is_durable_and_does_not_repeat_it_as_a_commit() -> None:
    group = leader_of()
    group.propose(b"x", 0.0)
    assert told(group) == [("b", Commit(1, 1, 2)), ("c", Commit(1, 1, 2))]
    group.step("b", AppendReply(1, 2), 0.0)
    assert group.commit == 2
    assert told(group) == []


def test_a_leader_whose_disk_is_slow_tells_what_is_committed() -> None:
    group = leader_of()
    group.propose(b"x", 0.0)
    write = group.ready().write
    assert write is not None
    group.step("b", AppendReply(1, 2), 0.0)
    group.step("c", AppendReply(1, 2), 0.0)
    assert told(group) == [("b", Commit(1, 2, 1)), ("c", Commit(1, 2, 1))]
    group.persisted(write.number, 0.0)
    assert told(group) == []


def test_a_read_is_no_older_than_what_a_follower_may_have_applied() -> None:
    group = leader_of()
    group.propose(b"x", 0.0)
    settle(group)
    group.read_index("now", 0.0)
    settle(group)
    group.step("b", HeartbeatReply(1, 1), 0.0)
    assert [each for ready in settle(group) for each in ready.reads] == []
    group.step("b", AppendReply(1, 2), 0.0)
    assert [each for ready in settle(group) for each in ready.reads] == [Read("now", 2)]
