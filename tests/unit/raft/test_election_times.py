"""How round trips between containers set the time of an election."""

from __future__ import annotations

import pytest
from raft_hosts import STEP_S, Lab

from cogwork.raft.heartbeats import Beat
from cogwork.raft.neighbours import Neighbour
from cogwork.raft.settings import Settings


def lab_of(election_s: float = 0.3) -> Lab:
    lab = Lab("abc", Settings(quiesce_s=1.0, priority_hold_s=1e9, election_s=election_s))
    lab.open(1, "abc")
    lab.run(2.0)
    return lab


def test_long_round_trips_make_elections_longer() -> None:
    lab = lab_of(election_s=0.05)
    host = lab.hosts["a"]
    assert host.election_s > 0.05 + 2 * 0.01
    assert host.election_s < 0.05 + 20 * 0.04


@pytest.mark.parametrize("stopped_s", [0.25, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("is_leader", [True, False])
def test_a_container_that_was_stopped_makes_no_election_longer(
    stopped_s: float, *, is_leader: bool
) -> None:
    """Heartbeats lay at its door all that time, which says nothing of how long they take."""
    lab = lab_of()
    before_s = max(host.election_s for host in lab.hosts.values())
    leader = lab.leader(1)
    lab.stopped.add(leader if is_leader else next(name for name in "abc" if name != leader))
    lab.run(stopped_s)
    lab.stopped.clear()
    for _ in range(10):
        lab.run(0.1)
        assert max(host.election_s for host in lab.hosts.values()) < before_s + 0.15


def test_a_line_that_has_become_slow_is_known_for_it_after_a_few_heartbeats() -> None:
    neighbour = Neighbour(0.0)
    neighbour.hear(Beat(1, 1), 0.0)
    for number in range(1, 9):
        neighbour.hear(Beat(1, 1, echo_us=number * 100_000), number / 10 + 0.4)
    assert 0.4 < neighbour.round_trip.bound_s < 1.6


class SlowLab(Lab):
    """Lines hand on what was sent `delay_s` ago, and that only once in `period_s`."""

    delay_s = 0.0
    period_s = 0.0

    def __init__(self, names: str) -> None:
        super().__init__(names)
        self.way: list[tuple[float, tuple[str, str, bytes]]] = []

    def turn(self) -> None:
        self.way += [(self.now_s + self.delay_s, frame) for frame in self.frames]
        is_open = self.now_s % self.period_s < STEP_S if self.period_s else True
        arrived = [frame for due_s, frame in self.way if is_open and due_s <= self.now_s]
        self.way = [each for each in self.way if not (is_open and each[0] <= self.now_s)]
        self.frames = arrived
        super().turn()


@pytest.mark.parametrize("period_s", [0.36, 0.6])
def test_a_line_that_hands_on_in_bursts_longer_than_an_election_keeps_its_leader(
    period_s: float,
) -> None:
    lab = SlowLab("abc")
    lab.period_s = period_s
    lab.open(1, "abc")
    lab.run(30.0)
    term = lab.group(lab.leader(1), 1).term
    for _ in range(20):
        assert lab.propose(1, b"x")
        lab.run(0.5)
    assert {lab.group(name, 1).term for name in "abc"} == {term}


def test_a_learner_far_away_knows_the_leader_while_its_group_sleeps() -> None:
    lab = SlowLab("abcd")
    lab.delay_s = 0.3
    lab.open(1, "abc", "d")
    lab.run(60.0)
    for _ in range(30):
        lab.run(1.0)
        assert lab.group("d", 1).leader is not None
    assert lab.asleep(1) == "abcd"
