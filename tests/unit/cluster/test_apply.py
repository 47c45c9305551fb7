"""Several commands in one: all of them, or none."""

from __future__ import annotations

import pytest

from cogwork.amqp091.tables import encode_table
from cogwork.cluster.declarations import (
    APPLY_LEVEL,
    Apply,
    Command,
    Declarations,
    Declare,
    Delete,
    Part,
    Raise,
    Set,
    decode,
    encode,
)
from cogwork.cluster.levels import HIGHEST_LEVEL, NotUnderstood
from cogwork.cluster.topology import Bind, DeclareExchange

NO_TABLE = encode_table({})
BOB = Set("user", "", "bob", {"mesh": True}, None)
LOGS = DeclareExchange("", "logs", "topic", True, False, False, NO_TABLE, None)
BOUND = Bind("", "logs", "queue", "jobs", 0, b"a.#", NO_TABLE)
ORDERS = Declare("stream", "", "orders", {"engine": "raft"})
WRONG = Set("limit", "", "connections", {"value": 3}, {"value": 2})


def at_level(level: int) -> Declarations:
    """Return declarations of a feature level."""
    made = Declarations()
    for each in range(2, level + 1):
        assert not made.apply(Raise(each, {"a": HIGHEST_LEVEL}, ["a"])).problem
    return made


def test_all_commands_are_done_and_each_says_what_it_did() -> None:
    state = at_level(APPLY_LEVEL)
    outcome = state.apply(Apply([BOB, LOGS, BOUND, ORDERS]))
    assert outcome.has_changed
    assert [part for part, _ in outcome.parts] == [BOB, LOGS, BOUND, ORDERS]
    assert all(done.has_changed for _, done in outcome.parts)
    alone = at_level(APPLY_LEVEL)
    commands: list[Command] = [BOB, LOGS, BOUND, ORDERS]
    for each in commands:
        alone.apply(each)
    assert state.digest == alone.digest


@pytest.mark.parametrize("place", range(5))
def test_where_one_cannot_be_done_nothing_is(place: int) -> None:
    state = at_level(APPLY_LEVEL)
    state.apply(Set("user", "", "eve", {"mesh": False}, None))
    before, octets = state.digest, state.to_bytes()
    parts: list[Part] = [BOB, LOGS, BOUND, Delete("user", "", "eve")]
    parts.insert(place, WRONG)
    outcome = state.apply(Apply(parts))
    assert (outcome.has_changed, outcome.failed, outcome.parts) == (False, place, ())
    assert "there is no limit" in outcome.problem
    assert (state.digest, state.to_bytes()) == (before, octets)
    assert state.apply(ORDERS).declaration is not None, "it goes on as if nothing had been"


def test_below_its_level_it_is_refused() -> None:
    outcome = at_level(APPLY_LEVEL - 1).apply(Apply([BOB]))
    assert f"feature level {APPLY_LEVEL} is needed" in outcome.problem


def test_it_is_read_as_it_was_written() -> None:
    command = Apply([BOB, LOGS, BOUND, ORDERS])
    assert decode(encode(command)) == command


def test_a_part_of_a_later_version_is_not_passed_over() -> None:
    octets = encode(Apply([BOB])).replace(b"\xa3Set", b"\xa3Sat")
    with pytest.raises(NotUnderstood, match="'Sat'"):
        decode(octets)
