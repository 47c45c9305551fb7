"""A container's copy of what is declared, on an engine in this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from cogwork.cluster import declarations as declarations_module
from cogwork.cluster.declarations import Declarations, Declare, encode
from cogwork.container.cluster import cluster as cluster_module
from cogwork.container.cluster.cluster import Cluster
from cogwork.engines.orb import OrbHost
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Snapshot
from cogwork.plugin.engine.errors import Unavailable, Unknown
from cogwork.replication.calls import MembersAre

if TYPE_CHECKING:
    from cogwork.cluster.declarations import Declaration
    from cogwork.plugin.engine.contract import Appended, Engine, Members


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
    leader_of = staticmethod(str)

    async def ask(self, container: str, *_what: object) -> None:
        if container != "a":
            raise Unavailable(f"container {container} does not answer")

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)


class Nobody:
    """Follows nothing."""

    declared = moved = deleted = current = lambda self, _what: None


def cluster_of(service: Service, names: str = "a", follower: Nobody | None = None) -> Cluster:
    """Make the copy of the first of some containers."""
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


async def find_what_another_container_has_declared() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    cluster = cluster_of(service)
    cluster.start()
    try:
        await cluster.when_current()
        await service.engine.append(Batch.of([encode(Declare("stream", "", "x", {}))]))
        assert cluster.declarations.find("stream", "", "x") is None  # nor can it have been applied
        found = await cluster.find("stream", "", "x")
        assert found is not None
        assert found.name == "x"
        assert await cluster.find("stream", "", "y") is None
    finally:
        await cluster.close()


def test_what_was_declared_elsewhere_a_moment_ago_is_found() -> None:
    asyncio.run(asyncio.wait_for(find_what_another_container_has_declared(), 5))


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


async def meet(record: object, *, by_snapshot: bool) -> tuple[Cluster, list[Exception]]:
    """Follow a stream with something of a later version between two known commands."""
    service = Service(await OrbHost().open("$cluster", {}))
    service.answers.set()
    failures: list[Exception] = []
    first, last = Declare("stream", "", "known", {}), Declare("stream", "", "later", {})
    await service.engine.append(Batch.of([encode(first)]))
    if by_snapshot:
        await service.engine.save_snapshot(Snapshot(1, msgspec.msgpack.encode(record)))
    else:
        await service.engine.append(Batch.of([msgspec.msgpack.encode(record)]))
    await service.engine.append(Batch.of([encode(last)]))
    cluster = cluster_of(service)
    cluster.on_failure = failures.append
    cluster.start()
    try:
        while not failures:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
    finally:
        await cluster.close()
    return cluster, failures


@pytest.mark.parametrize(
    ("record", "needed"),
    [
        (["Enchant", "everything"], "a command 'Enchant'"),
        (["Delete", "stream", "", "known", 1], "a command 'Delete' with 4 fields"),
        (["Raise", 2, {"a": 2}, ["a"]], "feature level 2"),
    ],
)
def test_a_container_stops_at_what_it_does_not_understand(
    record: list[object],
    needed: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declarations_module, "HIGHEST_LEVEL", 1)
    cluster, failures = asyncio.run(asyncio.wait_for(meet(record, by_snapshot=False), 10))
    assert needed in str(failures[0])
    assert len(failures) == 1
    assert cluster.next == 1, "it neither skips the entry nor refuses it by itself"
    assert [each.name for each in cluster.declarations.all("stream")] == ["known"]
    assert needed in str(cluster.facts()["problem"])
    errors = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert len(errors) == 1
    assert "the container stops" in errors[0]
    assert needed in errors[0]


def test_a_container_stops_at_a_snapshot_of_a_higher_level() -> None:
    found = meet((9, 2, []), by_snapshot=True)
    cluster, failures = asyncio.run(asyncio.wait_for(found, 10))
    assert "a snapshot of feature level 9" in str(failures[0])
    assert cluster.next == 0


async def declare_what_no_command_can_hold() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    service.answers.set()
    cluster = cluster_of(service)
    cluster.start()
    try:
        await cluster.when_current()
        for wrong in ({"priorities": {"a": 1}}, {"priorities": object()}, {"priorities": 1 << 70}):
            with pytest.raises(ValueError, match=r"."):
                await cluster.declare("queue", "", "x", wrong)  # type: ignore[arg-type]  # wrong
        assert (await service.engine.bounds()).next == 0, "all members would have to read it"
    finally:
        await cluster.close()


def test_what_no_command_can_hold_is_not_committed() -> None:
    asyncio.run(asyncio.wait_for(declare_what_no_command_can_hold(), 10))


async def raise_and_keep() -> None:
    service = Service(await OrbHost().open("$cluster", {}))
    service.answers.set()
    cluster = cluster_of(service)
    cluster.start()
    try:
        await cluster.when_current()
        with pytest.raises(ValueError, match="local does not know level 2"):
            await cluster.raise_level(2, {})
        await cluster.keep_level()
        assert await service.engine.load_snapshot() is None
        await cluster.raise_level(2, {"local": 2})
        await cluster.keep_level()
        kept = await service.engine.load_snapshot()
        assert kept is not None
        assert Declarations.from_bytes(kept.data).level == 2
        assert (await service.engine.bounds()).first == cluster.next
        await cluster.announce("b", 2)
        assert cluster.facts()["supports"] == {"b": 2, "local": 2}
    finally:
        await cluster.close()


def test_a_snapshot_stands_for_what_was_before_the_level_rose() -> None:
    asyncio.run(asyncio.wait_for(raise_and_keep(), 10))


async def find_roots() -> None:
    service = Asked(await OrbHost().open("$cluster", {}))
    cluster = cluster_of(service, "abc")
    assert await cluster.find_root() == ""
    service.leaders = {"b": None, "c": "c"}
    assert await cluster.find_root() == "c", "one of them knows it"


class Asked(Service):
    """Has no replica, and knows what others say of who leads."""

    leaders: dict[str, str | None] = {}  # noqa: RUF012  # replaced, never changed

    @staticmethod
    def term_of(_name: str) -> int:
        return 0

    async def ask(self, container: str, *_what: object) -> None:
        if container not in self.leaders:
            raise Unavailable(f"container {container} does not answer")
        return MembersAre(1, ["a", "b", "c"], [], self.leaders[container])  # type: ignore[return-value]  # the other one answers nothing


def test_a_container_without_a_replica_asks_for_the_root() -> None:
    asyncio.run(find_roots())
