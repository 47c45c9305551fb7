"""A group sleeps once nothing is under way, and wakes where somebody goes or comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lone_group import entry, group_of, leader_of, settle

from cogwork.raft.group import Group
from cogwork.raft.membership import Membership
from cogwork.raft.messages import Append, AppendReply, Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_S = 0.1
NOBODY: frozenset[str] = frozenset()


def idle_leader() -> tuple[Group, float]:
    group = leader_of(quiesce_s=IDLE_S)
    return group, group.wake_s


def ask(group: Group, now_s: float) -> None:
    group.read_index("a read", now_s)


def hand_over(group: Group, now_s: float) -> None:
    group.transfer("b", now_s)


def take_in(group: Group, now_s: float) -> None:
    """Have another one vote in place of c, which is not there."""
    group.change(Membership(("a", "b", "d")), now_s)


def leave_out(group: Group, now_s: float) -> None:
    """Have c vote no more, which is not there to be told."""
    group.change(Membership(("a", "b")), now_s)


def acknowledge(group: Group, now_s: float) -> None:
    """Have b and the disk follow until there is nothing new."""
    while settle(group):
        group.step("b", AppendReply(group.term, group.last_index), now_s)


def test_an_idle_group_sleeps() -> None:
    group, now_s = idle_leader()
    assert group.rest(NOBODY, now_s + 1.5 * IDLE_S)
    assert group.is_quiescent


def test_a_group_without_a_majority_stays_awake() -> None:
    group, now_s = idle_leader()
    assert not group.rest(frozenset("bc"), now_s + 1.5 * IDLE_S)


@pytest.mark.parametrize(
    ("do", "absent"), [(ask, ""), (hand_over, ""), (take_in, "cd"), (leave_out, "c")]
)
def test_a_group_in_which_something_is_under_way_stays_awake(
    do: Callable[[Group, float], None], absent: str
) -> None:
    group, now_s = idle_leader()
    do(group, now_s)
    if absent:
        acknowledge(group, now_s)
    else:
        settle(group)
    assert group.commit == group.last_index
    assert not group.rest(frozenset(absent), now_s + 1.5 * IDLE_S)


@pytest.mark.parametrize("hear", [Group.suspect, Group.greet])
def test_a_leader_that_sleeps_wakes_where_a_member_goes_or_comes(
    hear: Callable[[Group, str, float], None],
) -> None:
    group, now_s = idle_leader()
    assert group.rest(NOBODY, now_s + 1.5 * IDLE_S)
    hear(group, "b", now_s + 1.0)
    assert not group.is_quiescent


def test_a_follower_that_sleeps_wakes_where_its_leader_is_back_and_nobody_else() -> None:
    group = group_of()
    group.step("b", Append(1, 0, 0, 1, [entry(1, 1)]), 0.0)
    settle(group)
    group.step("b", Heartbeat(1, 1, is_quiescing=True), 0.0)
    assert group.is_quiescent
    group.greet("c", 1.0)
    assert group.is_quiescent
    group.greet("b", 1.0)
    assert not group.is_quiescent
    assert group.wake_s > 1.0
