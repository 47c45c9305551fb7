"""What a replica that has forgotten its past has to hear before it begins again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.plugin.engine.errors import NotAMember, Unavailable
from cogwork.plugin.engine.placement import Placement
from cogwork.replication.calls import FloorIs, StreamKey
from cogwork.replication.rejoining import floor_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class Service:
    """Others that answer, or do not."""

    own = "b"

    def __init__(self, answers: Mapping[str, FloorIs]) -> None:
        self.answers = answers

    async def ask(self, container: str, *_what: object) -> FloorIs:
        if container not in self.answers:
            raise Unavailable(f"container {container} does not answer")
        return self.answers[container]


def at(term: int, last_index: int, voters: str = "abc", *, has_forgotten: bool = False) -> FloorIs:
    return FloorIs(1, term, last_index, [*voters], has_forgotten)


FORGOTTEN = at(0, 0, "", has_forgotten=True)


def floor(voters: str = "abc", *, move: int = 0, **answers: FloorIs) -> tuple[int, int] | None:
    service: Any = Service(answers)
    placement = Placement([*voters], founders=[*voters], move=move, settled=move)
    stream: Any = SimpleNamespace(name="orders", key=StreamKey("orders", 17), placement=placement)
    return asyncio.run(floor_of(service, stream))


def test_it_begins_in_the_term_after_the_latest_that_anybody_knows() -> None:
    assert floor(a=at(3, 10), c=at(7, 4)) == (8, 0)
    assert floor("abcde", a=at(1, 9), c=at(4, 9), d=at(2, 9), e=at(2, 9)) == (5, 0)


def test_all_others_have_to_answer() -> None:
    with pytest.raises(Unavailable, match="no answer comes from c"):
        floor(a=at(3, 10))
    with pytest.raises(Unavailable, match="no answer comes from d"):
        floor(a=at(3, 10, "abcd"), c=at(3, 10))


def test_those_that_have_forgotten_too_do_not_count() -> None:
    with pytest.raises(Unavailable, match="c and this container have lost their replicas"):
        floor(a=at(3, 10), c=FORGOTTEN)
    with pytest.raises(Unavailable, match="have lost their replicas"):
        floor(a=at(3, 10), c=at(4, 1, has_forgotten=True))
    there = at(3, 10, "abcde")
    assert floor("abcde", a=there, c=FORGOTTEN, d=there, e=there) == (4, 0)


def test_where_nobody_has_anything_there_is_no_past() -> None:
    assert floor(a=FORGOTTEN, c=FORGOTTEN) is None
    assert floor(a=at(0, 0), c=FORGOTTEN) is None
    assert floor("b") is None


def test_who_is_no_voter_any_more_needs_no_majority() -> None:
    assert floor(move=1, a=at(3, 10, "a"), c=FORGOTTEN) == (4, 0)
    with pytest.raises(Unavailable, match="no answer comes from c"):
        floor(move=1, a=at(3, 10, "a"))


def test_who_was_never_moved_there_is_told_who_holds_it() -> None:
    with pytest.raises(NotAMember, match="held by a, and not here") as told:
        floor(a=at(3, 10, "a"))  # the one primary of a recovered cluster, say
    assert told.value.voters == ["a"]
    with pytest.raises(NotAMember):
        floor(a=at(3, 10, "a"), c=FORGOTTEN)
