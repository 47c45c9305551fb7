"""Elections where disks are slow: a term has to get to two of them before a vote counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lone_group import group_of

from cogwork.raft.messages import Vote, VoteReply
from cogwork.raft.roles import Role

if TYPE_CHECKING:
    from cogwork.raft.group import Group

ELECTION_S = 0.3


def written(group: Group) -> int:
    """Hand out all that is to be written; return the number of the last write."""
    number = 0
    while ready := group.ready():
        if ready.write is not None:
            number = ready.write.number
    return number


def candidate(group: Group) -> float:
    """Make it a candidate; return when that was."""
    now_s = group.wake_s
    group.tick(now_s)
    pre_vote = VoteReply(group.term + 1, is_granted=True, is_pre=True)
    group.step("b", pre_vote, now_s)
    assert group.role is Role.CANDIDATE
    return now_s


def test_a_candidate_waits_for_as_long_as_two_disks_like_its_own_take() -> None:
    group = group_of(election_s=ELECTION_S)
    began_s = candidate(group)
    group.persisted(written(group), began_s + 1.0)
    assert group.wake_s > began_s + 1.0 + 1.9
    assert group.role is Role.CANDIDATE


def test_a_candidate_with_a_quick_disk_is_in_haste() -> None:
    group = group_of(election_s=ELECTION_S)
    began_s = candidate(group)
    group.persisted(written(group), began_s + 0.001)
    assert group.wake_s < began_s + ELECTION_S


def test_while_its_term_is_on_the_way_to_the_disk_it_does_not_stand_again() -> None:
    group = group_of(election_s=ELECTION_S)
    candidate(group)
    number = written(group)
    for _ in range(10):
        group.tick(group.wake_s)
        assert (group.role, group.term) == (Role.CANDIDATE, 1)
    now_s = group.wake_s
    group.persisted(number, now_s)
    assert group.wake_s > now_s, "now it begins to wait for votes"


def test_who_votes_waits_while_the_vote_is_on_the_way_to_the_disk() -> None:
    group = group_of(election_s=ELECTION_S)
    group.step("b", Vote(1, 0, 0), 0.01)
    number = written(group)
    for _ in range(10):
        group.tick(group.wake_s)
        assert group.role is Role.FOLLOWER
    now_s = group.wake_s
    group.persisted(number, now_s)
    assert group.wake_s >= now_s + ELECTION_S


def test_each_candidacy_in_vain_makes_it_wait_for_longer_until_somebody_leads() -> None:
    group = group_of(election_s=ELECTION_S, election_max_s=3.0)
    waits_s = []
    for _ in range(7):
        began_s = candidate(group)
        group.persisted(written(group), began_s)
        waits_s.append(group.wake_s - began_s)
    assert max(waits_s[:2]) < ELECTION_S
    assert waits_s[3] > 2 * waits_s[1]
    assert max(waits_s) < 10 * ELECTION_S
    group.step("b", VoteReply(group.term, is_granted=True), began_s)
    assert group.role is Role.LEADER
    group.step("b", VoteReply(group.term + 1, is_granted=False), began_s)
    group.persisted(written(group), began_s)
    began_s = candidate(group)
    group.persisted(written(group), began_s)
    assert group.wake_s - began_s < ELECTION_S
