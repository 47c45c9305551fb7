"""What a group has in memory of its log."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from lone_group import THREE, entry, settle
from shelf import Shelf

from cogwork.raft.core import Recovered
from cogwork.raft.group import Group
from cogwork.raft.messages import Append, AppendReply, VoteReply
from cogwork.raft.roles import Role
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from cogwork.raft.ready import Ready

PAYLOAD = bytes(100)
TAIL_BYTES = 5_000
SPARE_BYTES = 500


def group_on(shelf: Shelf, **limits: Any) -> Group:
    recovered = Recovered(snapshot=Snapshot(membership=THREE), storage=shelf)
    settings = Settings(tail_bytes=TAIL_BYTES, spare_bytes=SPARE_BYTES, **limits)
    return Group("a", recovered, Random(1), 0.0, settings=settings)


def settle_on(shelf: Shelf, group: Group) -> list[Ready]:
    done = []
    while ready := group.ready():
        if ready.write is not None:
            shelf.kept.update((each.index, each) for each in ready.write.entries)
            group.persisted(ready.write.number, 0.0)
        done.append(ready)
    return done


def leader_on(shelf: Shelf) -> Group:
    group = group_on(shelf)
    group.tick(group.wake_s)
    for is_pre in (True, False):
        settle_on(shelf, group)
        group.step("b", VoteReply(1, is_granted=True, is_pre=is_pre), group.wake_s)
    settle_on(shelf, group)
    assert group.role is Role.LEADER
    return group


def append(shelf: Shelf, group: Group, *followers: str) -> None:
    _, index = group.propose(PAYLOAD, 0.0)
    settle_on(shelf, group)
    for follower in followers:
        group.step(follower, AppendReply(1, index), 0.0)
    settle_on(shelf, group)
    assert group.commit == index


def test_a_follower_gives_up_what_it_has_applied() -> None:
    shelf = Shelf()
    group = group_on(shelf)
    for index in range(1, 101):
        group.step("b", Append(1, index - 1, min(index - 1, 1), index, [entry(index, 1)]), 0.0)
        settle_on(shelf, group)
        assert group.tail_bytes <= SPARE_BYTES
    assert (group.last_index, group.compacted_index) == (100, 0)
    assert [each.index for each in group.entries(5, 7)] == [5, 6, 7]


def test_nothing_is_given_up_that_the_storage_does_not_have() -> None:
    group = group_on(Shelf())
    for index in range(1, 101):
        group.step("b", Append(1, index - 1, min(index - 1, 1), index, [entry(index, 1)]), 0.0)
        settle(group)
    assert [each.index for each in group.entries(1, 3)] == [1, 2, 3]
    assert group.tail_bytes > TAIL_BYTES


def test_a_leader_gives_up_what_all_have() -> None:
    shelf = Shelf()
    group = leader_on(shelf)
    for _ in range(100):
        append(shelf, group, "b", "c")
    one_bytes = shelf.kept[group.last_index].size_bytes
    assert group.tail_bytes <= SPARE_BYTES + one_bytes  # of the last one it hears after the turn


def test_a_leader_keeps_what_somebody_lacks_as_far_as_there_is_room() -> None:
    shelf = Shelf()
    group = leader_on(shelf)
    append(shelf, group, "b", "c")
    for _ in range(20):
        append(shelf, group, "b")
    shelf.looked = 0
    assert [each.index for each in group.entries(3, 22)] == list(range(3, 23))
    assert shelf.looked == 0
    for _ in range(100):
        append(shelf, group, "b")
    assert SPARE_BYTES < group.tail_bytes <= TAIL_BYTES
    group.step("c", AppendReply(1, group.last_index), 0.0)
    append(shelf, group, "b", "c")
    append(shelf, group, "b", "c")
    assert group.tail_bytes <= SPARE_BYTES
