"""How fast a reader goes, beside live traffic and without any."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cogwork.io.idle import Idleness
from cogwork.pipeline.arrow.serving.pace import (
    GROWTH,
    HOLD_S,
    LOOK_S,
    ROUND_S,
    SHARE_MIN,
    STALE_S,
    Pace,
)

WORK_S = 0.006
"""What a batch takes."""


class Machine:
    """Processors, of which so many are idle, and a reader that works as fast as it may."""

    def __init__(self, pace: Pace, idle: float) -> None:
        self.pace = pace
        self.idle = idle
        self.now_s = 100.0
        self.worked_s = 0.0
        self.idle_s = 0.0
        self.is_live = False

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.idle_s += seconds * self.idle

    def batch(self, clients: int = 1) -> float:
        """Make one; return how long the reader had to do nothing before."""
        if self.is_live:
            self.pace.tell_live(self.now_s)
        if self.pace.wants_look(self.now_s):
            self.pace.look(self.now_s, Idleness(self.now_s, self.idle_s))
        pause_s = self.pace.pause_s(self.now_s, self.worked_s, clients)
        self.pass_time(pause_s + WORK_S)
        self.worked_s += WORK_S
        return pause_s

    def run(self, seconds: float, clients: int = 1) -> float:
        """Work for a while; return which share of it."""
        began_s, worked_s = self.now_s, self.worked_s
        while self.now_s < began_s + seconds:
            self.batch(clients)
        return (self.worked_s - worked_s) / (self.now_s - began_s)


def busy(spare: float = 1.5, readers: int = 1, idle: float = 0.2) -> Machine:
    """Make a machine with live traffic on which few processors are idle."""
    machine = Machine(Pace(spare, readers), idle)
    machine.is_live = True
    machine.run(1.0)
    return machine


def test_without_traffic_nobody_is_held_back() -> None:
    machine = Machine(Pace(1.5, 1), idle=0.0)
    assert machine.run(3.0) == pytest.approx(1)


def test_beside_traffic_nobody_is_held_back_while_processors_are_idle() -> None:
    machine = busy(idle=2.0)
    assert machine.run(3.0) == pytest.approx(1)


def test_beside_traffic_a_reader_takes_a_small_share_while_too_few_are() -> None:
    machine = busy()
    assert machine.run(3.0) == pytest.approx(SHARE_MIN, rel=0.1)


def test_it_is_slow_at_the_second_look() -> None:
    machine = Machine(Pace(1.5, 1), idle=0.0)
    machine.is_live = True
    machine.run(2 * LOOK_S)
    assert machine.pace.share == SHARE_MIN


def test_it_goes_faster_step_by_step_when_more_are_idle() -> None:
    machine = busy()
    machine.idle = 2.0
    machine.run(1.2 * LOOK_S)  # what is looked at began while there were fewer
    shares = []
    for _ in range(5):
        machine.run(1.2 * LOOK_S)
        shares.append(machine.pace.share)
    assert all(SHARE_MIN < share < 1 for share in shares)
    assert shares == sorted(shares)
    assert max(later / share for share, later in pairwise(shares)) < GROWTH**3
    machine.run(15.0)
    assert machine.pace.share == 1


def test_it_stays_as_it_is_when_just_as_many_are_idle_as_wanted() -> None:
    machine = busy()
    machine.idle = 1.55
    machine.run(1.0)
    share = machine.pace.share
    machine.run(3.0)
    assert machine.pace.share == share


def test_it_goes_at_full_speed_again_when_the_traffic_has_ended() -> None:
    machine = busy()
    machine.is_live = False
    machine.run(HOLD_S + 0.1)
    assert machine.run(1.0) == pytest.approx(1)


def test_nothing_is_saved_up_while_there_is_nothing_to_read() -> None:
    machine = busy()
    machine.pass_time(STALE_S / 2)
    assert machine.batch() == 0
    assert machine.batch() == pytest.approx(WORK_S / SHARE_MIN - WORK_S)


def test_each_client_gets_a_batch_within_a_round() -> None:
    machine = busy()
    clients = 500
    pause_s = [machine.batch(clients) for _ in range(20)]
    assert max(pause_s) <= ROUND_S / clients
    assert machine.run(1.0, clients) > SHARE_MIN


def test_several_readers_share_what_is_least() -> None:
    machine = busy(readers=3)
    assert machine.run(3.0) == pytest.approx(SHARE_MIN / 3, rel=0.1)


def test_with_no_processors_wanted_nobody_is_held_back() -> None:
    machine = busy(spare=0, idle=0.0)
    assert machine.run(3.0) == pytest.approx(1)


def test_where_nobody_counts_nobody_is_held_back() -> None:
    pace = Pace(1.5, 1)
    for step in range(10):
        pace.tell_live(step)
        pace.look(step, None)
    assert pace.pause_s(10, 5.0, 1) == 0


def test_what_was_idle_long_ago_does_not_count() -> None:
    pace = Pace(1.5, 1)
    pace.look(0, Idleness(0, 0))
    pace.look(2 * STALE_S, Idleness(2 * STALE_S, 0))
    assert pace.share == 1
