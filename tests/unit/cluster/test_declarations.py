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
    decode,
    encode,
)
from cogwork.consensus.errors import Malformed

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
            ],
            [4, 1, 6, 6],
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


def test_a_state_of_another_version_is_refused() -> None:
    data = bytearray(Declarations().to_bytes())
    data[1] = 9
    with pytest.raises(Malformed, match="version"):
        Declarations.from_bytes(bytes(data))
