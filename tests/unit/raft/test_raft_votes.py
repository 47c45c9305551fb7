"""Votes that come later than the election that they were asked for in, and who is to stand."""

from __future__ import annotations

from random import Random

import pytest
from lone_group import THREE, group_of, leader_of, sent, settle

from cogwork.raft.core import Recovered
from cogwork.raft.group import Group
from cogwork.raft.membership import Membership
from cogwork.raft.messages import (
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from cogwork.raft.pace import Pace
from cogwork.raft.roles import Role
from cogwork.raft.snapshot import Snapshot


def test_a_vote_of_an_earlier_term_makes_no_leader() -> None:
    group = group_of(term=1)
    group.tick(group.wake_s)
    settle(group)
    group.step("c", VoteReply(2, is_granted=True, is_pre=True), 0.0)
    settle(group)
    assert (group.role, group.term) == (Role.CANDIDATE, 2)
    group.step("b", VoteReply(1, is_granted=True), 0.0)
    assert group.role is Role.CANDIDATE
    group.step("b", VoteReply(2, is_granted=True), 0.0)
    assert group.role is Role.LEADER


def test_a_pre_vote_of_an_earlier_term_begins_no_election() -> None:
    group = group_of()
    group.tick(group.wake_s)
    settle(group)
    group.step("c", Heartbeat(5, 0), 0.0)
    settle(group)
    group.tick(group.wake_s)
    settle(group)
    assert (group.role, group.term) == (Role.PRE_CANDIDATE, 5)
    group.step("b", VoteReply(1, is_granted=True, is_pre=True), 0.0)
    assert (group.role, group.term) == (Role.PRE_CANDIDATE, 5)
    group.step("b", VoteReply(6, is_granted=True, is_pre=True), 0.0)
    assert (group.role, group.term) == (Role.CANDIDATE, 6)


def test_who_stands_in_an_earlier_term_gets_no_vote_and_takes_none_away() -> None:
    group = group_of(THREE, term=5)
    group.step("b", Vote(4, 9, 4), 0.0)
    assert sent(group) == [("b", VoteReply(5, is_granted=False))]
    assert group.vote is None
    group.step("c", Vote(5, 0, 0), 0.0)
    assert sent(group) == [("c", VoteReply(5, is_granted=True))]
    assert group.vote == "c"


def test_a_leader_hands_over_to_who_is_there_where_nobody_is_named() -> None:
    group = leader_of()
    now_s = group.wake_s
    for _ in range(10):
        group.tick(now_s)
        settle(group)
        group.step("c", HeartbeatReply(1), now_s)
        now_s = group.wake_s
    group.transfer(None, now_s)
    assert sent(group)[-1] == ("c", TimeoutNow(1))


def test_who_cannot_write_down_its_vote_does_not_stand() -> None:
    pace = Pace(takes_nothing=True)
    recovered = Recovered(snapshot=Snapshot(membership=THREE))
    group = Group("a", recovered, Random(1), 0.0, pace=pace)
    group.step("b", Heartbeat(1, 0), 0.0)
    group.step("b", TimeoutNow(1), 0.0)
    assert (group.role, group.term, group.leader) == (Role.FOLLOWER, 1, "b")
    pace.takes_nothing = False
    group.step("b", TimeoutNow(1), 0.0)
    assert (group.role, group.term) == (Role.CANDIDATE, 2)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_leader_hands_over_to_a_preferred_member_that_is_there(is_there: bool) -> None:
    group = group_of(Membership(("b", "a", "c")), priority_hold_s=1.0)
    group.tick(group.wake_s)
    settle(group)
    for is_pre in (True, False):
        group.step("c", VoteReply(1, is_granted=True, is_pre=is_pre), 0.0)
        settle(group)
    for member in "bc":
        group.step(member, AppendReply(1, 1), 0.0)
    asked = sent(group)
    begun_s = group.wake_s
    while group.wake_s < begun_s + 2.0:
        now_s = group.wake_s
        group.tick(now_s)
        asked += sent(group)
        for member in "bc" if is_there else "c":
            group.step(member, HeartbeatReply(1), now_s)
    assert (("b", TimeoutNow(1)) in asked) is is_there
