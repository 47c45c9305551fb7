"""Declarations: equal commands make equal states."""

from __future__ import annotations

import random

import pytest

from cogwork.cluster.declarations import (
    Command,
    Declarations,
    Declare,
    Delete,
    Move,
    Moved,
    Primaries,
    PrimariesMoved,
    Recover,
    decode,
    encode,
)
from cogwork.plugin.engine.errors import Malformed

ORDERS = Declare("stream", "", "orders", {"engine": "raft", "replicas": ["a", "b", "c"]})


def test_what_is_declared_is_found_and_numbered() -> None:
    state = Declarations()
    outcome = state.apply(ORDERS)
    assert outcome.has_changed
    assert outcome.declaration == state.find("stream", "", "orders")
    assert outcome.declaration is not None
    assert outcome.declaration.number == 1
    assert [each.name for each in state.all("stream")] == ["orders"]
    assert state.all("queue") == []


def test_to_declare_the_same_again_changes_nothing() -> None:
    state = Declarations()
    state.apply(ORDERS)
    before = state.digest
    again = state.apply(ORDERS)
    assert (again.has_changed, again.problem) == (False, "")
    assert state.digest == before


def test_other_options_are_refused_by_name() -> None:
    state = Declarations()
    state.apply(ORDERS)
    outcome = state.apply(Declare("stream", "", "orders", {"engine": "orb"}))
    assert not outcome.has_changed
    assert "engine = raft, not orb" in outcome.problem


def test_numbers_are_never_used_again() -> None:
    state = Declarations()
    state.apply(ORDERS)
    assert state.apply(Delete("stream", "", "orders")).has_changed
    assert not state.apply(Delete("stream", "", "orders")).has_changed
    made = state.apply(ORDERS).declaration
    assert made is not None
    assert made.number == 2


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (Declare("cog", "", "x", {}), "cannot be declared"),
        (Declare("stream", "", "", {}), "1 to 1024 octets"),
        (Declare("stream", "", "x" * 1025, {}), "1 to 1024 octets"),
        (Declare("stream", "", "x", {str(each): 1 for each in range(65)}), "at most 64 options"),
    ],
)
def test_what_cannot_be_is_answered_and_changes_nothing(command: Declare, problem: str) -> None:
    state = Declarations()
    before = state.digest
    assert problem in state.apply(command).problem
    assert state.digest == before


@pytest.mark.parametrize("seed", range(20))
def test_equal_commands_make_equal_octets_also_from_a_snapshot(seed: int) -> None:
    chance = random.Random(seed)
    commands: list[Command] = []
    for _ in range(200):
        name = chance.choice("abc")
        kind = chance.choice(["stream", "queue"])
        options = {key: chance.randrange(3) for key in chance.sample("xyz", chance.randrange(4))}
        vhost = chance.choice(["", "v"])
        key, number = (kind, vhost, name), chance.randrange(1, 20)
        voters, present = (chance.sample("abcde", chance.randrange(1, 4)) for _ in range(2))
        commands += chance.choices(
            [
                Declare(*key, dict(options)),
                Delete(*key),
                Move(*key, number, voters, chance.sample("fgh", 1), present),
                Moved(*key, number, chance.randrange(3), number, number),
                Primaries(voters, present),
                PrimariesMoved(chance.randrange(3), number, number),
                Recover("u", voters[0], [number], present),
            ],
            [4, 1, 6, 6, 2, 2, 1],
        )
    whole, late = Declarations(), Declarations()
    cut = chance.randrange(200)
    for number, command in enumerate(commands):
        if number == cut:
            late = Declarations.from_bytes(whole.to_bytes())
        outcome = whole.apply(decode(encode(command)))
        if number >= cut:
            assert late.apply(command) == outcome
    assert late.to_bytes() == whole.to_bytes()
    assert late.digest == whole.digest


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01", encode(ORDERS)[:-1]])
def test_octets_that_are_no_command_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="declaration"):
        decode(data)


def test_a_state_of_no_level_is_refused() -> None:
    data = bytearray(Declarations().to_bytes())
    data[1] = 0
    with pytest.raises(Malformed, match="level is 0"):
        Declarations.from_bytes(bytes(data))


def placed(state: Declarations, name: str) -> list[str]:
    """Return who holds a stream that does not say so itself, after the primaries were moved."""
    declaration = state.find("stream", "", name)
    assert declaration is not None
    placement = state.placement(declaration)
    assert placement is not None
    return placement.voters


def test_other_primaries_leave_what_is_declared_where_it_is() -> None:
    state = Declarations()
    for name in ("one", "two", "memory"):
        engine = "orb" if name == "memory" else "raft"
        state.apply(Declare("stream", "", name, {"engine": engine}))
    assert state.apply(Primaries([*"dabc"], [*"abcd"])).has_changed
    assert (placed(state, "one"), placed(state, "two")) == ([*"bcd"], [*"cda"])
    memory = state.find("stream", "", "memory")
    assert memory is not None
    assert state.placement(memory) is None, "it has no replicas"
    assert state.primaries is not None
    assert not state.primaries.is_settled
    assert not state.apply(PrimariesMoved(7, 1, 1)).has_changed, "of another move"
    assert state.apply(PrimariesMoved(1, 3, 9)).has_changed
    assert (state.primaries.voters, state.primaries.floor) == ([*"dabc"], (3, 9))
    assert not state.apply(Primaries([*"dabc"], [*"abcd"])).has_changed
    assert "twice" in state.apply(Primaries(["a", "a"], [*"abcd"])).problem


def test_a_recovery_leaves_one_primary_and_what_it_has_not_where_it_was() -> None:
    state = Declarations()
    for name in ("kept", "lost"):
        state.apply(Declare("stream", "", name, {"engine": "raft"}))
    state.apply(Recover("uuid", "e", [1], [*"abcde"]))
    assert state.primaries is not None
    assert (state.primaries.voters, state.primaries.is_settled) == (["e"], True)
    assert (placed(state, "kept"), placed(state, "lost")) == (["e"], [*"cde"])
    assert Declarations.from_bytes(state.to_bytes()).primaries == state.primaries
