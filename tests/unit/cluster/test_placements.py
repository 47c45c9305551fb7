"""Where things are: what a move declares, and how it ends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cogwork.cluster.declarations import (
    Declaration,
    Declarations,
    Declare,
    Delete,
    Move,
    Moved,
    Recover,
    decode,
    encode,
)

if TYPE_CHECKING:
    from cogwork.plugin.engine.placement import Placement

OPTIONS: dict[str, Any] = {"engine": "raft", "replicas": ["a", "b", "c"]}
ORDERS = Declare("stream", "", "orders", OPTIONS)


def move(voters: str, learners: str = "", number: int = 1) -> Move:
    return Move("stream", "", "orders", number, [*voters], [*learners], ["a", "b", "c"])


def moved(number: int, term: int = 3, index: int = 50) -> Moved:
    return Moved("stream", "", "orders", 1, number, term, index)


def state_with(*commands: Move | Moved) -> Declarations:
    state = Declarations()
    state.apply(ORDERS)
    for command in commands:
        outcome = state.apply(decode(encode(command)))
        assert (outcome.has_changed, outcome.problem) == (True, "")
    return state


def placement(state: Declarations) -> Placement:
    declaration = state.find("stream", "", "orders")
    assert declaration is not None
    found = state.placement(declaration)
    assert found is not None
    return found


def test_what_was_never_moved_is_written_as_before_there_were_moves() -> None:
    state = state_with()
    declaration = state.find("stream", "", "orders")
    assert declaration is not None
    assert state.placement(declaration) is None
    octets = msgspec.msgpack.encode([1, 2, [[1, "stream", "", "orders", OPTIONS]]])
    assert state.to_bytes() == octets
    assert state.digest == hashlib.sha256(octets).hexdigest()
    assert Declarations.from_bytes(octets).to_bytes() == octets


def test_who_held_it_may_do_so_until_the_move_is_done() -> None:
    state = state_with(move("abd", "e"))
    found = placement(state)
    assert (found.voters, found.learners, found.former) == (["a", "b", "d"], ["e"], ["c"])
    assert found.holders == ["a", "b", "d", "e", "c"]
    assert found.first_voters("c") == ["a", "b", "c"]
    assert found.first_voters("d") == []
    assert not found.is_settled
    state.apply(moved(1))
    found = placement(state)
    assert found.holders == ["a", "b", "d", "e"]
    assert (found.is_settled, found.floor) == (True, (3, 50))
    assert found.first_voters("a") == [], "it may have left, and be back"


def test_a_move_takes_the_place_of_one_that_is_not_done() -> None:
    state = state_with(move("ade"), move("abc"))
    found = placement(state)
    assert (found.voters, found.former) == (["a", "b", "c"], ["d", "e"])
    assert not state.apply(moved(1)).has_changed, "the one before"
    assert state.apply(moved(2)).has_changed
    assert not state.apply(moved(2)).has_changed
    assert placement(state).holders == ["a", "b", "c"]


def test_a_floor_never_sinks() -> None:
    state = state_with(move("abd"), moved(1, 3, 50), move("abc"), moved(2, 2, 90))
    assert placement(state).floor == (3, 50)
    state.apply(move("abd"))
    state.apply(moved(3, 4, 60))
    assert placement(state).floor == (4, 60)


def test_another_order_is_a_move_that_leaves_nobody_out() -> None:
    found = placement(state_with(move("cba")))
    assert (found.former, found.is_settled) == ([], False)


@pytest.mark.parametrize("commands", [[move("abc")], [move("abd"), move("abd")]])
def test_to_move_it_to_where_it_is_changes_nothing(commands: list[Move]) -> None:
    state = state_with(*commands[:-1])
    before = state.to_bytes()
    outcome = state.apply(commands[-1])
    assert (outcome.has_changed, outcome.problem) == (False, "")
    assert state.to_bytes() == before


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (move("abd", number=2), "is not there"),
        (Move("stream", "", "others", 1, ["a"], [], ["b"]), "is not there"),
        (move(""), "at least one voter"),
        (move("aab"), "named twice"),
        (move("ab", "a"), "named twice"),
        (move("abcdefghij"), "at most 9 voters"),
        (Move("stream", "", "orders", 1, ["x" * 65], [], ["a"]), "1 to 64 octets"),
        (Move("stream", "", "orders", 1, ["a"], [], []), "at least one voter"),
    ],
)
def test_what_cannot_be_is_answered_and_changes_nothing(command: Move, problem: str) -> None:
    state = state_with()
    before = state.to_bytes()
    outcome = state.apply(command)
    assert problem in outcome.problem
    assert not outcome.has_changed
    assert state.to_bytes() == before


def test_what_is_deleted_leaves_no_placement() -> None:
    state = state_with(move("abd"))
    state.apply(Delete("stream", "", "orders"))
    assert not state.apply(moved(1)).has_changed
    outcome = state.apply(ORDERS)
    assert outcome.declaration == Declaration(2, "stream", "", "orders", OPTIONS)
    assert state.placement(outcome.declaration) is None
    assert state.apply(move("abd")).problem, "that one has gone"
    octets = msgspec.msgpack.encode([1, 3, [[2, "stream", "", "orders", OPTIONS]]])
    assert state.to_bytes() == octets


def test_it_may_be_declared_as_it_was_or_as_it_is() -> None:
    state = state_with(move("abd"))
    for replicas in (["a", "b", "c"], ["a", "b", "d"]):
        again = Declare("stream", "", "orders", {"engine": "raft", "replicas": replicas})
        assert not state.apply(again).problem
    other = Declare("stream", "", "orders", {"engine": "raft", "replicas": ["a", "b", "e"]})
    assert "replicas" in state.apply(other).problem


def test_a_placement_comes_back_from_a_snapshot() -> None:
    state = state_with(move("abd"), moved(1), move("bde", "a"))
    again = Declarations.from_bytes(state.to_bytes())
    assert placement(again) == placement(state)
    assert again.digest == state.digest


def test_what_a_survivor_holds_is_its_alone_after_a_recovery() -> None:
    known = Declarations()
    for name in ("orders", "invoices"):
        known.apply(Declare("stream", "", name, {"replicas": ["a", "b", "c"]}))
    known.apply(move("abd"))
    before = known.digest
    assert known.apply(Recover("u", "a", [1, 7])).has_changed
    assert known.digest != before
    orders, invoices = (known.find("stream", "", name) for name in ("orders", "invoices"))
    assert orders is not None
    assert invoices is not None
    found = known.placement(orders)
    assert found is not None
    assert (found.voters, found.holders, found.is_settled, found.move) == (["a"], ["a"], True, 2)
    assert known.placement(invoices) is None
    assert Declarations.from_bytes(known.to_bytes()).digest == known.digest
