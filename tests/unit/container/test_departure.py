"""Who gets the replicas of a container that leaves."""

from __future__ import annotations

import pytest

from cogwork.consensus.replicated.placement import Placement
from cogwork.container.cluster.departure import choose

HELD = Placement(["a", "b.0", "c"], founders=["a", "b.0", "c"])


@pytest.mark.parametrize(
    ("rooms", "chosen"),
    [
        ({}, None),
        ({"b.0": 0, "c": 0}, None),
        ({"c": 0, "d": 9}, "d"),
        ({"d": 3, "e": 2}, "e"),
        ({"e": 2, "far": 2}, "e"),
        ({"d": 3, "e": 3}, "e"),
        ({"b.1": 0, "d": 9}, "d"),
        ({"b.1": 0, "b.0": 0}, "b.1"),
        ({"sister": 0, "b.1": 5}, "b.1"),
        ({"sister": 0}, "sister"),
        ({"b.x": 1, "d": 2}, "b.x"),
    ],
)
def test_who_has_room_is_chosen_by_what_it_has_and_whom_it_dies_with(
    rooms: dict[str, int], chosen: str | None
) -> None:
    costs = {"d": 2, "e": 1, "far": 7}
    assert choose(HELD, "a", rooms, costs, {"a", "sister"}) == chosen


def test_who_is_still_to_give_one_up_gets_none() -> None:
    assert choose(HELD.moved(["a", "c"], []), "a", {"b.0": 0}, {}, ()) is None
