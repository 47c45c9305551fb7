"""How many items are marked ahead of an application, by how long that takes for each."""

from __future__ import annotations

import pytest

from cogwork.dataplane.client.pace import MARK_AHEAD_MAX, Pace

US = 1e-6


class Application:
    """Takes items at the pace that it is told."""

    def __init__(self, ahead_max: int = MARK_AHEAD_MAX) -> None:
        self.pace = Pace(ahead_max)
        self.now_s = 1_000.0
        self.passes = 0

    def take(self, each_s: float, *, waits: bool = False) -> int:
        """Work off what is marked in one go; return how many that were."""
        count = self.pace.ahead
        self.pace.begin(count, self.now_s, self.passes)
        self.now_s += count * each_s
        self.passes += waits
        self.pace.finish(self.now_s, self.passes)
        return count

    def taken(self, times: int, each_s: float, *, waits: bool = False) -> list[int]:
        """Do so a number of times."""
        return [self.take(each_s, waits=waits) for _ in range(times)]


@pytest.mark.parametrize("each_us", [51, 60, 1_000, 60_000_000])
def test_a_slow_application_gets_each_item_marked_alone(each_us: int) -> None:
    assert Application().taken(200, each_us * US) == [1] * 200


def test_an_application_that_waits_for_something_gets_each_item_marked_alone() -> None:
    assert Application().taken(200, 1 * US, waits=True) == [1] * 200


def test_several_are_marked_only_after_sixteen_quick_ones() -> None:
    taken = Application().taken(30, 1 * US)
    assert taken[:17] == [1] * 17
    assert taken[17:25] == [2, 4, 8, 16, 32, 64, 128, 256]
    assert max(taken) == MARK_AHEAD_MAX == 256


@pytest.mark.parametrize(("each_us", "most"), [(2, 150), (10, 30), (30, 10), (49, 6)])
def test_what_is_marked_ahead_is_worked_off_in_no_time(each_us: int, most: int) -> None:
    assert max(Application().taken(200, each_us * US)) == pytest.approx(most, abs=1)


def test_it_ends_with_the_first_slow_item() -> None:
    application = Application()
    assert application.taken(100, 1 * US)[-1] == MARK_AHEAD_MAX
    application.take(200 * US)
    assert application.taken(17, 1 * US) == [1] * 17


def test_one_pause_among_quick_items_needs_no_proof_anew() -> None:
    application = Application()
    assert application.taken(100, 1 * US)[-1] == MARK_AHEAD_MAX
    application.take(5 * US)
    assert application.taken(3, 1 * US) == [1, 2, 4]


@pytest.mark.parametrize("ahead_max", [1, 2, 10])
def test_the_application_may_name_a_bound(ahead_max: int) -> None:
    assert max(Application(ahead_max).taken(100, 1 * US)) == ahead_max


def test_what_was_begun_and_forgotten_is_not_judged() -> None:
    application = Application()
    assert application.taken(100, 1 * US)[-1] == MARK_AHEAD_MAX
    application.pace.begin(1, 0.0, 0)
    application.pace.forget()
    application.pace.finish(1e9, 1)
    assert application.pace.ahead == MARK_AHEAD_MAX


def test_a_clock_that_stands_still_is_a_quick_application() -> None:
    assert max(Application().taken(100, 0.0)) == MARK_AHEAD_MAX
