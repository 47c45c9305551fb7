"""A leader has its group sleep once nothing is under way, and no sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lone_group import leader_of, settle

from cogwork.consensus.raft.membership import Membership
from cogwork.consensus.raft.messages import AppendReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.consensus.raft.group import Group

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
    """Has another one vote in place of c, which is not there."""
    group.change(Membership(("a", "b", "d")), now_s)


def leave_out(group: Group, now_s: float) -> None:
    """Has c vote no more, which is not there to be told."""
    group.change(Membership(("a", "b")), now_s)


def acknowledge(group: Group, now_s: float) -> None:
    """Has b and the disk follow until there is nothing new."""
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
