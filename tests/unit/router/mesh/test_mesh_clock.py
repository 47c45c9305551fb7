"""The steady time of the mesh, and what rounding may not do to it."""

from __future__ import annotations

from random import Random

from cogwork.router.mesh.clock import SteadyClock

LATE_MAX_S = 0.5


def test_who_comes_when_asked_to_never_comes_too_early() -> None:
    chance = Random(1)
    rounded = 0
    for _ in range(1000):
        clock = SteadyClock(0.0, LATE_MAX_S)
        began_s = chance.uniform(0.0, 1000.0)
        steady_s = clock.read(began_s, 0.0)
        due_s = steady_s + chance.uniform(0.0, 10.0)
        wake_s = clock.to_container(due_s)
        rounded += clock.peek(wake_s) < due_s
        assert clock.read(wake_s, due_s) >= due_s
    assert rounded, "in none of these does the sum come out smaller"


def test_time_that_was_slept_through_does_not_count() -> None:
    clock = SteadyClock(100.0, LATE_MAX_S)
    assert clock.read(160.0, 101.0) == 101.0 + LATE_MAX_S
    assert clock.read(161.0, 200.0) == 102.0 + LATE_MAX_S
    assert clock.read(150.0, 200.0) == 102.0 + LATE_MAX_S, "it goes back"
