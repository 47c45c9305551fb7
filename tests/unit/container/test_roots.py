"""Which primaries may become the root: what may be set, and what waits while there is none."""

from __future__ import annotations

import asyncio

import pytest

from cogwork.cluster.declarations import (
    ROOT,
    Apply,
    Declarations,
    Declare,
    Delete,
    Primaries,
    Raise,
    Set,
    Value,
)
from cogwork.cluster.levels import HIGHEST_LEVEL
from cogwork.container.cluster import roots
from cogwork.container.cluster.roots import (
    brings_root,
    demand_enabled,
    demand_root,
    disabled_roots,
    with_root,
)
from cogwork.container.cluster.settings import check
from cogwork.plugin.engine.errors import Unavailable


def raised(level: int) -> Declarations:
    state = Declarations(check)
    for each in range(2, level + 1):
        assert state.apply(Raise(each, {"a": HIGHEST_LEVEL}, ["a"])).has_changed
    return state


def setting(*names: str) -> Set:
    return Set(ROOT, "", "root", {"disabled": [*names]}, None)


def test_the_setting_is_kept_and_read_back() -> None:
    state = raised(HIGHEST_LEVEL)
    assert disabled_roots(state) == frozenset()
    assert state.apply(setting("a", "b")).has_changed
    again = Declarations.from_bytes(state.to_bytes(), check)
    assert disabled_roots(again) == {"a", "b"}
    assert again.digest == state.digest
    assert state.apply(Delete(ROOT, "", "root")).has_changed
    assert disabled_roots(state) == frozenset()


def test_the_setting_needs_its_feature_level() -> None:
    assert "feature level 8 is needed" in raised(7).apply(setting("a")).problem


def test_two_that_disable_somebody_at_once_do_not_both_succeed() -> None:
    state = raised(HIGHEST_LEVEL)
    assert not state.apply(setting("a")).problem
    assert "is there already" in state.apply(setting("b")).problem
    assert disabled_roots(state) == {"a"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "disabled is a list"),
        ({"disabled": ["b", "a"]}, "each id once, sorted"),
        ({"disabled": ["a", "a"]}, "each id once, sorted"),
        ({"disabled": ["x" * 65]}, "1 to 64 octets"),
        ({"disabled": [f"{each:03}" for each in range(101)]}, "at most 100 ids"),
        ({"disabled": ["a"], "allow_none": 1}, "true or false"),
        ({"disabled": ["a"], "enabled": True}, "unknown option 'enabled'"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said(options: dict[str, Value], told: str) -> None:
    assert told in check(ROOT, "", "root", options)
    assert "is called 'root', not 'other'" in check(ROOT, "", "other", {"disabled": ["a"]})


def test_one_is_disabled_and_enabled_again() -> None:
    options = with_root({"a"}, "b", is_enabled=False, allows_none=False)
    assert options == {"disabled": ["a", "b"]}
    assert with_root({"a"}, "a", is_enabled=True, allows_none=False) == {}
    allowed = with_root(set(), "a", is_enabled=False, allows_none=True)
    assert allowed == {"disabled": ["a"], "allow_none": True}
    with pytest.raises(ValueError, match="'a' is disabled as root already"):
        with_root({"a"}, "a", is_enabled=False, allows_none=False)
    with pytest.raises(ValueError, match="'b' is not disabled as root"):
        with_root({"a"}, "b", is_enabled=True, allows_none=False)


def test_somebody_who_answers_has_to_be_left() -> None:
    demand_enabled({"disabled": ["a"]}, ["a", "b"], ["a", "b"])
    demand_enabled({"disabled": ["a"], "allow_none": True}, ["a"], ["a"])
    with pytest.raises(ValueError, match="b would be left, and no answer comes; use --allow-none"):
        demand_enabled({"disabled": ["a"]}, ["a", "b"], ["a"])
    with pytest.raises(ValueError, match="left to become the root; use --allow-none"):
        demand_enabled({"disabled": ["a", "b"]}, ["a", "b"], ["a", "b"])


def test_what_may_bring_a_root_does_not_wait_for_one() -> None:
    declare = Declare("stream", "", "x", {})
    assert brings_root(setting("a"))
    assert brings_root(Delete(ROOT, "", "root"))
    assert brings_root(Primaries(["a"], ["b"]))
    assert not brings_root(declare)
    assert not brings_root(Delete("user", "", "bob"))
    assert not brings_root(Apply([declare]))
    assert brings_root(Apply([declare, setting("a")]))


def test_a_declaration_waits_for_a_root_and_then_says_what_is_to_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaders: list[str | None] = ["b", "a", "a"]

    async def find_leader() -> str | None:
        return leaders.pop()

    monkeypatch.setattr(roots, "PAUSE_S", 0.0)
    asyncio.run(demand_root(find_leader, {"a"}.__contains__))
    assert not leaders, "it has waited until there was one"
    leaders = [None]
    asyncio.run(demand_root(find_leader, {"a"}.__contains__))
    assert not leaders, "an election is none of its business: who appends waits for that"
    leaders = ["a"]
    monkeypatch.setattr(roots, "ROOT_TIMEOUT_S", 0.0)
    with pytest.raises(Unavailable, match=r"a is disabled as root.*root URL --enable ID"):
        asyncio.run(demand_root(find_leader, {"a"}.__contains__))
