"""Feature levels: a cluster goes by what every member knows, and nobody guesses."""

from __future__ import annotations

import random

import msgspec
import pytest

from cogwork.cluster import declarations as declarations_module
from cogwork.cluster import levels as levels_module
from cogwork.cluster.declarations import (
    Declarations,
    Declare,
    Primaries,
    Raise,
    Supports,
    decode,
    encode,
)
from cogwork.cluster.levels import NotUnderstood
from cogwork.plugin.engine.errors import Malformed

ORDERS = Declare("stream", "", "orders", {"engine": "raft"})
ALL = {"a": 2, "b": 2, "c": 2}


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this be a version that knows levels up to 2."""
    for module in (declarations_module, levels_module):
        monkeypatch.setattr(module, "HIGHEST_LEVEL", 2)


def raised() -> Declarations:
    state = Declarations()
    assert state.apply(Raise(2, ALL, [*"abc"])).has_changed
    return state


def test_a_state_of_the_first_level_has_the_octets_of_versions_without_levels() -> None:
    state = Declarations()
    state.apply(ORDERS)
    old = (1, 2, [(1, "stream", "", "orders", {"engine": "raft"})])
    assert state.to_bytes() == msgspec.msgpack.encode(old)
    assert Declarations.from_bytes(msgspec.msgpack.encode(old)).level == 1


@pytest.mark.parametrize(
    ("supports", "missing"),
    [({"a": 2, "b": 2}, "c"), ({"a": 2, "b": 1, "c": 2}, "b"), ({}, "a, b, c")],
)
def test_the_level_stays_until_every_primary_knows_the_higher_one(
    supports: dict[str, int], missing: str
) -> None:
    state = Declarations()
    before = state.to_bytes()
    outcome = state.apply(Raise(2, supports, [*"abc"]))
    assert f"{missing} does not know level 2 yet" in outcome.problem
    assert not outcome.has_changed
    assert state.to_bytes() == before


def test_a_member_that_is_no_primary_counts_too() -> None:
    state = Declarations()
    assert "d does not" in state.apply(Raise(2, {**ALL, "d": 1}, [*"abc"])).problem


def test_the_primaries_that_the_cluster_has_count_and_not_those_that_somebody_names() -> None:
    state = Declarations()
    state.apply(Primaries([*"abx"], [*"abc"]))
    assert "x does not" in state.apply(Raise(2, ALL, [*"abc"])).problem


def test_the_level_rises_once_and_one_by_one() -> None:
    state = raised()
    assert (state.level, state.supports) == (2, ALL)
    again = state.apply(Raise(2, ALL, [*"abc"]))
    assert (again.has_changed, again.problem) == (False, "")
    assert "one by one" in state.apply(Raise(4, ALL, [*"abc"])).problem


def test_a_member_of_a_higher_level_is_kept_in_mind_while_it_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = raised()
    state.apply(Supports("learner", 2))
    for each in "abc":
        state.apply(Supports(each, 3))
    assert "learner does not know level 3" in state.apply(Raise(3, {}, [*"abc"])).problem
    state.apply(Supports("learner", 0))
    assert "learner" not in state.supports
    monkeypatch.setattr(declarations_module, "HIGHEST_LEVEL", 3)
    assert state.apply(Raise(3, {}, [*"abc"])).has_changed


def test_an_announcement_is_refused_before_its_level() -> None:
    state = Declarations()
    assert "feature level 2 is needed" in state.apply(Supports("a", 2)).problem
    assert state.supports == {}


def test_no_more_containers_announce_than_the_state_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declarations_module, "MEMBERS_MAX", 3)
    state = raised()
    assert "3 containers" in state.apply(Supports("d", 2)).problem
    assert state.apply(Supports("a", 3)).has_changed


def test_equal_commands_make_equal_states_whatever_the_order_of_their_names() -> None:
    digests = set()
    for seed in range(5):
        names = [*"abc"]
        random.Random(seed).shuffle(names)
        state = Declarations()
        state.apply(Raise(2, dict.fromkeys(names, 2), [*"abc"]))
        digests.add(state.digest)
        assert Declarations.from_bytes(state.to_bytes()).digest == state.digest
    assert len(digests) == 1


@pytest.mark.parametrize(
    "record",
    [
        ["Enchant", "queue"],  # an unknown command
        ["Delete", "queue", "", "jobs", 7],  # one with an unknown field
    ],
)
def test_a_command_of_a_later_version_is_no_bad_command(record: list[object]) -> None:
    with pytest.raises(NotUnderstood, match="feature levels up to 2 only"):
        decode(msgspec.msgpack.encode(record))


@pytest.mark.parametrize("record", [b"", b"\xc1", b"\xff", b"\x91" * 5000, b"\x93\x01\x02\x03"])
def test_what_is_no_command_of_any_version_is_a_bad_one_everywhere(record: bytes) -> None:
    with pytest.raises(Malformed):
        decode(record)


def test_a_known_command_with_a_wrong_value_is_a_bad_one_everywhere() -> None:
    with pytest.raises(Malformed):
        decode(msgspec.msgpack.encode(["Declare", "queue", "", "jobs", {"priorities": {}}]))


def test_a_level_beyond_this_version_changes_nothing_and_is_told() -> None:
    state = raised()
    before = state.to_bytes()
    with pytest.raises(NotUnderstood, match="feature level 3"):
        state.apply(Raise(3, dict.fromkeys("abc", 3), [*"abc"]))
    assert state.to_bytes() == before


@pytest.mark.parametrize("state", [(3, 1, []), (2, 1, [], [], None, [], None, "new")])
def test_a_snapshot_of_a_later_version_is_not_understood(state: tuple[object, ...]) -> None:
    with pytest.raises(NotUnderstood, match="snapshot"):
        Declarations.from_bytes(msgspec.msgpack.encode(state))


def test_new_commands_are_read_back() -> None:
    for command in (Raise(2, ALL, [*"abc"]), Supports("a", 2)):
        assert decode(encode(command)) == command
