"""What becomes of the replicas of a container that leaves, and who gets them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cogwork.cluster.declarations import Declarations, Declare, Move, Moved
from cogwork.consensus.replicated.placement import Placement
from cogwork.container.cluster.departure import Departure, choose

if TYPE_CHECKING:
    from cogwork.cluster.declarations import Declaration, Value

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


class Known:
    """What a container that leaves knows of its cluster; it takes note of what it has moved.

    Attributes:
        moved: Names.
    """

    is_in_use = True
    voters = ("a", "b", "c")

    def __init__(self) -> None:
        self.service, self.rooms = SimpleNamespace(why_no_room=""), self
        self.cluster = self.raft = self.moves = self
        self.mesh = self.routes = self
        self.id, self.siblings = "a", ()
        self.tree = SimpleNamespace(costs={"a": 0, "d": 1})
        self.declarations = Declarations()
        self.moved: list[str] = []

    def declare(self, kind: str, name: str, **options: Value) -> None:
        assert self.declarations.apply(Declare(kind, "", name, options)).has_changed

    @staticmethod
    def way_to(container: str) -> bool:
        return container == "d"

    @staticmethod
    async def free(containers: list[str]) -> dict[str, int]:
        return dict.fromkeys(containers, 0)

    async def move(self, declaration: Declaration, voters: list[str], learners: list[str]) -> None:
        """Has others hold it at once."""
        self.moved.append(declaration.name)
        named = (declaration.kind, "", declaration.name, declaration.number)
        self.declarations.apply(Move(*named, voters, learners, list(self.voters)))
        self.declarations.apply(Moved(*named, 1, 1, 1))


def test_streams_without_replicas_are_not_waited_for() -> None:
    known = Known()
    known.declare("stream", "alone", engine="orb", home="b")
    known.declare("stream", "elsewhere", engine="kafka")
    known.declare("stream", "replicated")
    known.declare("queue", "work/x", durability="replicated")
    departure = Departure(known, known)  # type: ignore[arg-type]  # it knows all that is asked
    asyncio.run(asyncio.wait_for(departure.run(30.0), 5))
    assert sorted(known.moved) == ["replicated", "work/x"]
    assert (departure.moved, departure.left, departure.problem) == (2, 0, None)
