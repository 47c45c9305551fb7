"""The small parts: roles, votes, windows, the wheel, round trips, leader priority."""

from __future__ import annotations

from math import inf

import pytest

from cogwork.raft.budget import Budget, Share
from cogwork.raft.leader_priority import LeaderChanges
from cogwork.raft.membership import Membership
from cogwork.raft.progress import Phase, Progress
from cogwork.raft.roles import Cause, Role, next_role
from cogwork.raft.round_trip import RoundTrip
from cogwork.raft.snapshot import Snapshot
from cogwork.raft.votes import Votes
from cogwork.raft.wheel import Wheel

THREE = Membership(("a", "b", "c"))


def test_only_a_candidate_becomes_leader_and_only_by_winning() -> None:
    ways = [(role, cause) for role in Role for cause in Cause if _next(role, cause) is Role.LEADER]
    assert ways == [(Role.CANDIDATE, Cause.WON)]


def _next(role: Role, cause: Cause) -> Role | None:
    try:
        return next_role(role, cause)
    except AssertionError:
        return None


def test_a_higher_term_ends_every_role() -> None:
    assert {next_role(role, Cause.HIGHER_TERM) for role in Role} == {Role.FOLLOWER}


def test_the_first_answer_counts() -> None:
    votes = Votes()
    votes.note("a", is_granted=True)
    votes.note("b", is_granted=False)
    votes.note("b", is_granted=True)
    assert not votes.has_won(THREE)
    votes.note("c", is_granted=False)
    assert votes.has_lost(THREE)


def test_strangers_do_not_vote() -> None:
    votes = Votes()
    for voter in ("a", "x", "y"):
        votes.note(voter, is_granted=True)
    assert not votes.has_won(THREE)
    votes.note("c", is_granted=True)
    assert votes.has_won(THREE)


def progress_of(budget: Budget, next_index: int = 5) -> Progress:
    return Progress(next_index, Share(budget, 1), 0.0)


def test_a_probe_waits_for_its_answer_and_goes_again_from_the_same_place() -> None:
    budget = Budget(1000)
    progress = progress_of(budget)
    progress.sent(7, 100)
    assert (progress.is_paused, progress.next) == (True, 5)
    assert not progress.has_room(1, 1000)
    progress.probe(progress.next)
    assert progress.has_room(1, 1000)
    assert (progress.is_paused, progress.next) == (False, 5)


def test_what_a_probe_has_on_the_way_is_not_sent_again() -> None:
    progress = progress_of(Budget(1000))
    progress.sent(7, 100)
    progress.accepted(4)
    progress.replicate()
    assert (progress.match, progress.next, progress.is_paused) == (4, 8, False)
    assert not progress.has_room(1, 1000)
    progress.accepted(7)
    assert progress.has_room(1, 1000)


def test_a_window_is_bounded_by_messages_and_by_octets() -> None:
    progress = progress_of(Budget(1000))
    progress.accepted(4)
    progress.replicate()
    progress.sent(5, 10)
    progress.sent(6, 10)
    assert not progress.has_room(2, 1000)
    assert not progress.has_room(9, 20)
    assert progress.has_room(3, 21)
    assert progress.accepted(5)
    assert progress.has_room(2, 1000)
    assert (progress.match, progress.next) == (5, 7)
    assert not progress.accepted(4)


def test_groups_share_what_may_be_on_the_way_to_a_container() -> None:
    budget = Budget(100)
    one, other = Progress(1, Share(budget, 1), 0.0), Progress(1, Share(budget, 2), 0.0)
    one.sent(3, 150)
    assert not other.has_room(9, 1000)
    assert budget.waiting == {2}
    one.release()
    assert other.has_room(9, 1000)


def test_a_snapshot_goes_in_parts_and_goes_back_where_they_get_lost() -> None:
    budget = Budget(100)
    progress = progress_of(budget)
    progress.send_snapshot(Snapshot(9, 1, size_bytes=25))
    sending = progress.sending
    assert sending is not None
    for _ in range(2):
        assert progress.has_part_room(10, 2)
        progress.part_sent(10)
    assert not progress.has_part_room(10, 2)
    progress.part_acked(10)
    assert progress.has_part_room(10, 2)
    progress.rewind()
    assert (sending.acked, sending.sent) == (10, 10)
    progress.part_sent(10)
    progress.part_sent(5)
    assert sending.is_sent
    progress.part_acked(0)
    assert (sending.acked, sending.sent, sending.is_sent) == (0, 0, False)
    progress.release()
    assert (progress.phase, progress.sending) == (Phase.PROBE, None)


def test_a_receiver_that_has_parts_already_gets_the_rest() -> None:
    progress = progress_of(Budget(100))
    progress.send_snapshot(Snapshot(9, 1, size_bytes=25))
    progress.part_sent(10)
    progress.part_acked(20)
    assert progress.sending is not None
    assert (progress.sending.acked, progress.sending.sent) == (20, 20)


def test_an_empty_snapshot_takes_one_part() -> None:
    progress = progress_of(Budget(100))
    progress.send_snapshot(Snapshot(9, 1))
    assert progress.has_part_room(10, 2)
    progress.part_sent(0)
    assert not progress.has_part_room(10, 2)
    progress.rewind()
    assert progress.has_part_room(10, 2)


def test_the_wheel_gives_each_group_once_when_it_is_due() -> None:
    wheel = Wheel(0.01)
    wheel.put(1, 0.5)
    wheel.put(2, 0.3)
    wheel.put(2, 0.7)  # it looks again when it is there
    wheel.put(3, 0.9)
    wheel.put(3, 0.2)  # earlier than thought
    wheel.put(4, inf)
    assert wheel.wake_s == pytest.approx(0.2)
    assert wheel.due(0.19) == []
    assert wheel.due(0.5) == [3, 2, 1]
    assert wheel.due(2.0) == []
    assert wheel.wake_s == inf


def test_a_group_that_is_gone_is_not_due() -> None:
    wheel = Wheel(0.01)
    wheel.put(1, 0.5)
    wheel.remove(1)
    assert wheel.due(1.0) == []


def test_a_round_trip_is_smoothed_and_what_cannot_be_is_left_out() -> None:
    trip = RoundTrip()
    assert trip.bound_s == 0
    trip.note(0.1)
    assert trip.bound_s == pytest.approx(0.3)
    for _ in range(200):
        trip.note(0.1)
    assert trip.bound_s == pytest.approx(0.1, rel=0.01)
    trip.note(-5)
    trip.note(1e9)
    assert trip.bound_s == pytest.approx(0.1, rel=0.01)


def test_a_preferred_member_waits_longer_the_more_often_leaders_changed_lately() -> None:
    changes = LeaderChanges()
    assert changes.hold_s(10, 0) == 10
    changes.note(0)
    assert changes.hold_s(10, 1) == 10
    for at_s in range(1, 20):
        changes.note(at_s)
    assert changes.hold_s(10, 20) == 320
    assert changes.hold_s(10, 10_000) == 10
