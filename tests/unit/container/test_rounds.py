"""Who is visited at which tick."""

from __future__ import annotations

from collections import Counter

from cogwork.container.cluster.queue_replicas import TICK_S
from cogwork.container.cluster.rounds import ROUND_TICKS, Rounds


def at_rest(*names: str) -> Rounds[str]:
    """Return rounds of these, who have been visited once."""
    made: Rounds[str] = Rounds()
    for name in names:
        made.add(name)
    assert sorted(made.due()) == sorted(names)
    return made


def test_everybody_at_rest_is_visited_once_a_round_and_about_as_many_at_each_tick() -> None:
    names = [str(number) for number in range(2 * ROUND_TICKS + 1)]
    made = at_rest(*names)
    ticks = [list(made.due()) for _ in range(3 * ROUND_TICKS)]
    assert Counter(name for tick in ticks for name in tick) == dict.fromkeys(names, 3)
    assert {len(tick) for tick in ticks} == {2, 3}


def test_a_round_is_a_second() -> None:
    assert ROUND_TICKS * TICK_S <= 1.0


def test_who_is_woken_is_visited_at_the_next_tick_and_rests_again() -> None:
    made = at_rest("a", "b")
    made.wake("b")
    made.wake("b")
    assert list(made.due()) == ["b"]
    assert not list(made.due())


def test_who_is_woken_while_it_is_visited_is_visited_again() -> None:
    made = at_rest("a")
    made.wake("a")
    for each in made.due():
        made.wake(each)
    assert list(made.due()) == ["a"]


def test_all_are_woken() -> None:
    made = at_rest("a", "b")
    made.wake_all()
    assert sorted(made.due()) == ["a", "b"]


def test_who_is_not_there_is_not_visited_whoever_wakes_it() -> None:
    made = at_rest("a", "b")
    made.wake("a")
    made.remove("a")
    made.wake("a")
    made.wake_all()
    visited = [each for _ in range(2 * ROUND_TICKS) for each in made.due()]
    assert set(visited) == {"b"}


def test_whom_a_tick_did_not_come_to_is_visited_at_the_next_one() -> None:
    made = at_rest(*"abc")
    assert sorted([*made.due(), *made.due()]) == ["b", "c"], "whose turn it is"
    made.wake_all()
    first = next(made.due())
    assert set(made.due()) == set("abc") - {first}
