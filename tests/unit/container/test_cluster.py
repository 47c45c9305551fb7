"""A container's copy of what is declared, on an engine in this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cogwork.cluster.declarations import Declarations, Declare, encode
from cogwork.consensus.batch import Batch
from cogwork.consensus.engine import Snapshot
from cogwork.consensus.errors import Unavailable, Unknown
from cogwork.consensus.orb import OrbHost
from cogwork.container.cluster import cluster as cluster_module
from cogwork.container.cluster.cluster import Cluster

if TYPE_CHECKING:
    from cogwork.cluster.declarations import Declaration
    from cogwork.consensus.engine import Appended, Engine, Members


class Service:
    """Has the one stream; the answers to appends wait until they may come."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.answers = asyncio.Event()

    async def open(self, name: str, options: object) -> Service:
        del name, options
        return self

    async def append(self, batch: Batch) -> Appended:
        appended = await self.engine.append(batch)
        await self.answers.wait()
        return appended

    @staticmethod
    def leads(name: str) -> bool:
        return name == ""

    own = "a"

    async def ask(self, container: str, *_what: object) -> None:
        if container != "a":
            raise Unavailable(f"container {container} does not answer")

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)


class Nobody:
    """Follows nothing."""

    declared = moved = deleted = current = lambda self, _what: None


def cluster_of(service: Service, names: str = "a", follower: Nobody | None = None) -> Cluster:
    """Makes the copy of the first of some containers."""
    return Cluster([*names], service, follower or Nobody())  # type: ignore[arg-type]  # all that is asked


async def declare_before_a_snapshot() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    cluster = cluster_of(service)
    declaring = asyncio.ensure_future(cluster.declare("stream", "", "x", {}))
    while not (await service.engine.bounds()).next:
        await asyncio.sleep(0.001)
    state = Declarations()
    state.apply(Declare("stream", "", "x", {}))
    await service.engine.save_snapshot(Snapshot(1, state.to_bytes()))
    cluster.start()
    await cluster.when_current()
    service.answers.set()
    try:
        with pytest.raises(Unknown, match="a snapshot stands for what came of it"):
            await asyncio.wait_for(declaring, 5)
        assert (await cluster.declare("stream", "", "x", {})).number == 1
    finally:
        await cluster.close()


def test_who_is_answered_after_a_snapshot_does_not_wait_for_ever() -> None:
    asyncio.run(declare_before_a_snapshot())


async def declare_without_an_end() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    service.answers.set()
    cluster = cluster_of(service)
    declaring = asyncio.ensure_future(cluster.declare("stream", "", "x", {}))
    while not (await service.engine.bounds()).next:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0)  # it knows where its command is, and waits until that is applied
    await cluster.close()
    with pytest.raises(Unknown, match="the container is stopping"):
        await asyncio.wait_for(declaring, 5)


def test_who_declares_while_the_container_stops_does_not_wait_for_ever() -> None:
    asyncio.run(declare_without_an_end())


async def declare_what_was_declared_with_fewer_options() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    service.answers.set()
    cluster = cluster_of(service)
    cluster.start()
    try:
        await cluster.when_current()
        defaults = {"delay": True, "priorities": 10}
        old = await cluster.declare("queue", "", "x", {"priorities": 5})
        new = {"priorities": 5, "delay": True}
        with pytest.raises(ValueError, match="is there with delay = None, not True"):
            await cluster.declare("queue", "", "x", new)
        assert await cluster.declare("queue", "", "x", new, defaults) == old
        for other in ({**new, "delay": False}, {**new, "priorities": 10}):
            with pytest.raises(ValueError, match="is there with"):
                await cluster.declare("queue", "", "x", other, defaults)
    finally:
        await cluster.close()


def test_an_option_that_an_older_declaration_lacks_is_its_default() -> None:
    asyncio.run(asyncio.wait_for(declare_what_was_declared_with_fewer_options(), 5))


async def delete_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "ANSWER_TIMEOUT_S", 0.01)
    service = Service(await OrbHost().open("$cluster", {}))
    cluster = cluster_of(service, "abc")
    with pytest.raises(Unknown, match=r"nobody has answered within .* no answer comes from b, c$"):
        await cluster.delete("stream", "", "x")


def test_who_deletes_is_told_before_long_that_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.run(asyncio.wait_for(delete_without_an_answer(monkeypatch), 20))


class Failing(Nobody):
    """Its disk fails."""

    def moved(self, what: object) -> None:
        raise OSError(5, f"of {what}")

    deleted = current = moved


async def move_with_a_failing_disk() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    service.answers.set()
    cluster = cluster_of(service, "abc", Failing())
    cluster.start()
    try:
        await cluster.when_current()
        declared = await cluster.declare("stream", "", "x", {})
        await cluster.move(declared, ["a"], [], [*"abc"])
        assert await cluster.delete("stream", "", "x")
    finally:
        await cluster.close()


def test_what_is_declared_is_known_where_the_disk_fails(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(asyncio.wait_for(move_with_a_failing_disk(), 5))
    assert caplog.text.count("cannot apply all of the cluster's declarations here") == 3


class Shut(Service):
    """Cannot be opened, for one reason after the other."""

    tries = 0

    async def open(self, name: str, options: object) -> Service:
        self.tries += 1
        if self.tries <= 5:
            raise OSError(20 if self.tries < 4 else 5, "why not", "streams/1")
        return await super().open(name, options)


async def follow_what_is_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PAUSE_S", 0.001)
    service = Shut(await OrbHost().open("$cluster", {}))
    cluster = cluster_of(service)
    cluster.start()
    try:
        await cluster.when_current()
    finally:
        await cluster.close()


def test_why_nothing_can_be_followed_is_told_once_and_not_with_each_try(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(asyncio.wait_for(follow_what_is_shut(monkeypatch), 5))
    assert caplog.text.count("cannot follow the cluster") == 2


class Once(Service):
    """Does not say once who has the stream."""

    has_failed = False

    async def members(self) -> Members:
        if not self.has_failed:
            self.has_failed = True
            raise Unavailable("nobody answers")
        return await self.engine.members()


class Noting(Nobody):
    """Takes note of what is told to be gone."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def deleted(self, declaration: Declaration) -> None:
        self.gone.append(declaration.name)


async def follow_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PAUSE_S", 0.001)
    service = Once(await OrbHost().open("$cluster", {}))
    state = Declarations()
    for name in ("kept", "later"):
        command = Declare("stream", "", name, {})
        state.apply(command)
        await service.engine.append(Batch.of([encode(command)]))
        if name == "kept":
            await service.engine.save_snapshot(Snapshot(1, state.to_bytes()))
    follower = Noting()
    cluster = cluster_of(service, follower=follower)
    cluster.start()
    try:
        await asyncio.wait_for(cluster.when_current(), 5)
        assert service.has_failed
        assert [each.name for each in cluster.declarations.all("stream")] == ["kept", "later"]
        assert follower.gone == [], "its replicas would have been removed"
    finally:
        await cluster.close()


def test_what_was_declared_since_the_snapshot_is_not_gone_where_it_is_followed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.run(follow_once_more(monkeypatch))
