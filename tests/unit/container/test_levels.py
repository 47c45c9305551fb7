"""Whoever leads raises the feature level, once everybody is known to know the higher one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest

from cogwork.cluster import declarations as declarations_module
from cogwork.cluster.declarations import Declarations, Raise, Supports
from cogwork.container.cluster import levels as levels_module
from cogwork.container.cluster.levels import Levels
from cogwork.plugin.engine.errors import Unavailable, Unknown
from cogwork.replication.calls import IdentityIs, decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

UUID = "9f3c"


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this be a version that knows levels up to 2."""
    for module in (declarations_module, levels_module):
        monkeypatch.setattr(module, "HIGHEST_LEVEL", 2)


class Cluster:
    """Applies at once."""

    is_current = True

    def __init__(self) -> None:
        self.declarations = Declarations()
        self.voters = [*"abc"]
        self.kept = 0

    async def raise_level(self, level: int, supports: Mapping[str, int]) -> None:
        outcome = self.declarations.apply(Raise(level, dict(supports), self.voters))
        assert not outcome.problem

    async def announce(self, container: str, level: int) -> None:
        self.declarations.apply(Supports(container, level))

    async def keep_level(self) -> None:
        self.kept = self.declarations.level


class Service(SimpleNamespace):
    """Has the answers of the others; None of one that is silent."""

    own = "a"
    is_leader = True
    answers: dict[str, IdentityIs | None]

    def leads(self, _stream: str) -> bool:
        return self.is_leader

    async def ask(self, container: str, *_what: object) -> IdentityIs:
        answer = self.answers.get(container)
        if answer is None:
            raise Unavailable(f"container {container} does not answer")
        return answer


def answer(level: int = 2, uuid: str = UUID) -> IdentityIs:
    return IdentityIs(1, uuid, is_empty=False, token="t", founders={}, level=level)


def look(cluster: Cluster, service: Service, *reachable: str) -> int:
    """Look once; return the level then."""
    levels = Levels(cluster, service, lambda: UUID, lambda: reachable)  # type: ignore[arg-type]  # all that is asked
    asyncio.run(levels.look())
    return cluster.declarations.level


def test_the_level_rises_where_all_know_it() -> None:
    cluster = Cluster()
    service = Service(answers={"b": answer(), "c": answer(), "d": answer()})
    assert look(cluster, service, *"abcd") == 2
    assert cluster.kept == 2
    assert cluster.declarations.supports == dict.fromkeys("abcd", 2)


@pytest.mark.parametrize(
    "answers",
    [
        {"b": answer()},  # c is away
        {"b": answer(), "c": answer(level=1)},
        {"b": answer(), "c": answer(), "d": answer(level=1)},  # a secondary
        {"b": answer(), "c": answer(), "d": None},  # there is a way to it, and it does not answer
    ],
)
def test_the_level_stays_where_one_is_away_or_does_not_know_it(
    answers: dict[str, IdentityIs | None],
) -> None:
    assert look(Cluster(), Service(answers=answers), *"abd") == 1


def test_a_container_of_another_cluster_does_not_count() -> None:
    answers = {"b": answer(), "c": answer(), "x": answer(level=1, uuid="other")}
    cluster = Cluster()
    assert look(cluster, Service(answers=answers), *"abcx") == 2
    assert "x" not in cluster.declarations.supports


def test_nobody_but_the_leader_raises_it() -> None:
    service = Service(answers={"b": answer(), "c": answer()}, is_leader=False)
    assert look(Cluster(), service, *"abc") == 1


def test_who_comes_later_announces_what_it_knows() -> None:
    cluster = Cluster()
    look(cluster, Service(answers={"b": answer(), "c": answer()}), *"abc")
    look(cluster, Service(answers={}, own="later", is_leader=False), *"abc")
    assert cluster.declarations.supports == {**dict.fromkeys("abc", 2), "later": 2}


def test_who_leaves_for_good_holds_nobody_up() -> None:
    cluster = Cluster()
    look(cluster, Service(answers={"b": answer(), "c": answer(), "d": answer()}), *"abcd")
    leaver = Service(answers={}, own="d", is_leader=False)
    levels = Levels(cluster, leaver, lambda: UUID, lambda: ())  # type: ignore[arg-type]  # all that is asked
    asyncio.run(levels.leave())
    assert cluster.declarations.supports == dict.fromkeys("abc", 2)


def test_containers_with_and_without_levels_read_each_other() -> None:
    old = msgspec.msgpack.encode(["IdentityIs", 1, UUID, False, "t", {}])
    found = decode(old)
    assert isinstance(found, IdentityIs)
    assert found.level == 1

    class Before(msgspec.Struct, array_like=True, tag="IdentityIs"):
        number: int
        uuid: str
        is_empty: bool
        token: str
        founders: dict[str, str]

    assert msgspec.msgpack.decode(encode(answer()), type=Before).uuid == UUID


def forget(cluster: Cluster, container: str, *reachable: str) -> None:
    levels = Levels(cluster, Service(answers={}), lambda: UUID, lambda: reachable)  # type: ignore[arg-type]  # all that is asked
    asyncio.run(levels.forget(container))


def test_who_is_gone_for_good_is_forgotten_and_nobody_else() -> None:
    cluster = Cluster()
    cluster.declarations.apply(Raise(2, dict.fromkeys("abcde", 2), cluster.voters))
    with pytest.raises(ValueError, match="'d' is there: stop it first"):
        forget(cluster, "d", *"abcd")
    with pytest.raises(ValueError, match="'c' is a primary: run `cogwork cluster move`"):
        forget(cluster, "c", *"ab")
    with pytest.raises(ValueError, match="'x' has announced no feature level: expected one of a, "):
        forget(cluster, "x", *"abcd")
    forget(cluster, "e", *"abcd")
    assert sorted(cluster.declarations.supports) == [*"abcd"]


def test_who_is_forgotten_without_a_majority_is_not_known_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(levels_module, "ANSWER_TIMEOUT_S", 0.01)
    cluster = Cluster()
    cluster.declarations.apply(Raise(2, dict.fromkeys("abcd", 2), cluster.voters))

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(cluster, "announce", never)
    with pytest.raises(Unknown, match="nobody has answered"):
        forget(cluster, "d", *"abc")
