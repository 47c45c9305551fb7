"""What becomes of the replicas of a container that leaves, and who gets them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import cogwork.container.cluster.departure
from cogwork.cluster.declarations import Declarations, Declare, Move, Moved
from cogwork.container.cluster.departure import NO_ROOM, TRIES, Departure, choose
from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.engine.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Callable

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
        near: Who can be reached.
        on_move: Called before a move is declared.
        lasts: Whether moves are not done at once.
        silent: How often nobody answers who is asked for room.
        asked: How often that was asked.
    """

    is_in_use = True
    topology = None
    voters = ("a", "b", "c")

    def __init__(self) -> None:
        self.service, self.rooms = SimpleNamespace(room=SimpleNamespace(why_none="")), self
        self.cluster = self.raft = self.moves = self
        self.mesh = self.routes = self
        self.id, self.siblings = "a", ()
        self.near = {"d"}
        self.tree = SimpleNamespace(costs={"a": 0, "d": 1, "e": 2})
        self.declarations = Declarations()
        self.moved: list[str] = []
        self.on_move: Callable[[Declaration], None] = lambda _: None
        self.lasts = False
        self.silent = 0
        self.asked = 0

    def declare(self, kind: str, name: str, **options: Value) -> None:
        assert self.declarations.apply(Declare(kind, "", name, options)).has_changed

    def way_to(self, container: str) -> bool:
        return container in self.near

    async def free(self, containers: list[str]) -> dict[str, int]:
        self.asked += 1
        return {} if self.asked <= self.silent else dict.fromkeys(containers, 0)

    async def move(self, declaration: Declaration, voters: list[str], learners: list[str]) -> None:
        """Have others hold it, at once unless it lasts."""
        self.on_move(declaration)
        self.moved.append(declaration.name)
        self.declare_move(declaration, voters, learners)
        if not self.lasts:
            self.settle(declaration)

    def declare_move(
        self, declaration: Declaration, voters: list[str], learners: list[str]
    ) -> None:
        named = (declaration.kind, "", declaration.name, declaration.number)
        self.declarations.apply(Move(*named, voters, learners, list(self.voters)))

    def settle(self, declaration: Declaration) -> None:
        named = (declaration.kind, "", declaration.name, declaration.number)
        move = self.placement(declaration).move
        self.declarations.apply(Moved(*named, move, 1, 1))

    def placement(self, declaration: Declaration) -> Placement:
        placement = self.declarations.placement(declaration)
        assert placement is not None
        return placement


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    monkeypatch.setattr(cogwork.container.cluster.departure, "AGAIN_S", 0.01)
    monkeypatch.setattr(cogwork.container.cluster.departure, "LOOK_S", 0.001)
    return Known()


def departed(known: Known) -> Departure:
    departure = Departure(known, known)  # type: ignore[arg-type]  # it knows all that is asked
    asyncio.run(asyncio.wait_for(departure.run(30.0), 5))
    return departure


def test_streams_without_replicas_are_not_waited_for(known: Known) -> None:
    known.declare("stream", "alone", engine="orb", home="b")
    known.declare("stream", "elsewhere", engine="kafka")
    known.declare("stream", "replicated")
    known.declare("queue", "work/x", durability="replicated")
    departure = departed(known)
    assert sorted(known.moved) == ["replicated", "work/x"]
    assert (departure.moved, departure.left, departure.problem) == (2, 0, None)


def test_one_that_was_chosen_and_is_lost_is_replaced(known: Known) -> None:
    known.declare("stream", "orders")
    (declaration,) = known.declarations.all("stream")
    known.lasts = True

    def lose_it(_: Declaration) -> None:
        known.on_move = settle
        asyncio.get_running_loop().call_soon(setattr, known, "near", {"e"})

    def settle(_: Declaration) -> None:
        known.lasts = False

    known.on_move = lose_it
    departure = departed(known)
    assert known.moved == ["orders", "orders"]
    assert sorted(known.placement(declaration).voters) == ["b", "c", "e"]
    assert (departure.moved, departure.left, departure.problem) == (1, 0, None)


def test_what_another_move_has_put_back_is_moved_again(known: Known) -> None:
    known.declare("stream", "orders")
    (declaration,) = known.declarations.all("stream")
    known.near, known.lasts = {"d", "e"}, True

    def put_back(_: Declaration) -> None:
        known.on_move = settle
        loop = asyncio.get_running_loop()
        loop.call_soon(known.declare_move, declaration, ["a", "b", "d"], [])

    def settle(_: Declaration) -> None:
        known.lasts = False

    known.on_move = put_back
    departure = departed(known)
    assert known.moved == ["orders", "orders"]
    assert sorted(known.placement(declaration).voters) == ["b", "d", "e"]
    assert (departure.moved, departure.left, departure.problem) == (1, 0, None)


def test_what_is_declared_meanwhile_is_moved_too(known: Known) -> None:
    known.declare("stream", "orders")

    def declare_another(_: Declaration) -> None:
        known.on_move = lambda _: None
        known.declare("stream", "late")

    known.on_move = declare_another
    departure = departed(known)
    assert sorted(known.moved) == ["late", "orders"]
    assert (departure.moved, departure.left, departure.problem) == (2, 0, None)


def test_a_move_that_is_not_taken_is_tried_again_and_given_up_at_last(known: Known) -> None:
    known.declare("stream", "orders")
    tries: list[Declaration] = []

    def refuse(declaration: Declaration) -> None:
        tries.append(declaration)
        raise Unavailable("nobody leads")

    known.on_move = refuse
    departure = departed(known)
    assert len(tries) == TRIES
    assert (departure.moved, departure.left) == (0, 1)
    assert departure.problem is not None
    assert departure.problem.startswith("stream orders: ")
    assert "nobody leads" in departure.problem


def test_who_does_not_answer_at_once_is_asked_again(known: Known) -> None:
    known.declare("stream", "orders")
    known.silent = TRIES - 1
    departure = departed(known)
    assert known.moved == ["orders"]
    assert (departure.moved, departure.left, departure.problem) == (1, 0, None)


def test_what_nobody_has_room_for_is_given_up_at_last(known: Known) -> None:
    known.declare("stream", "orders")
    known.silent = 100
    departure = departed(known)
    assert (departure.left, known.asked) == (1, TRIES)
    assert departure.problem == f"stream orders: {NO_ROOM}"


def test_nobody_is_asked_again_where_everybody_has_it(known: Known) -> None:
    known.declare("stream", "orders")
    known.tree = SimpleNamespace(costs={"a": 0, "b": 1, "c": 1})
    known.near = {"b", "c"}
    departure = departed(known)
    assert (departure.left, known.asked) == (1, 1)
    assert departure.problem == f"stream orders: {NO_ROOM}"


def test_what_nobody_can_take_stays(known: Known) -> None:
    known.declare("stream", "orders")
    known.near = set()
    departure = departed(known)
    assert (departure.moved, departure.left) == (0, 1)
    assert departure.problem == f"stream orders: {NO_ROOM}"
