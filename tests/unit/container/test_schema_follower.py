"""The registry as a container reads it: from the stream's beginning, and live."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from cogwork.config.addressing import table_of
from cogwork.config.reading import parse
from cogwork.container.schemas import follower as following
from cogwork.container.schemas.follower import Follower
from cogwork.dataplane.message.messages import Message
from cogwork.engines.orb import OrbHost
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import EngineContext, Snapshot
from cogwork.plugin.engine.errors import Unavailable
from cogwork.schema import SCHEMAS, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.engine.contract import Engine

NUMBER = b'{"type": "number"}'


class Host:
    """A virtual host, as a follower sees it: engines, and the rule of the stream."""

    def __init__(self) -> None:
        self.orb = OrbHost(EngineContext())
        self.engines = self
        self.table = table_of(parse(""))
        self.failures = 0

    def rule_of(self, address: str) -> tuple[str, object]:
        return address, self.table.resolve(address)

    async def open(
        self, kind: str, stream: str, options: Mapping[str, object], capture: object = ()
    ) -> Engine:
        assert (kind, stream, dict(options)) == ("orb", "$schemas", {})
        if self.failures:
            self.failures -= 1
            raise Unavailable("not yet")
        return await self.orb.open(stream, options)

    async def append(self, *events: bytes) -> None:
        engine = await self.orb.open("$schemas", {})
        await engine.append(Batch.of([Message(event).encode() for event in events]))
        await engine.close()


class Story:
    """A follower at work."""

    def __init__(self) -> None:
        self.host = Host()
        self.known: list[Registry] = []
        self.follower = Follower(cast("VirtualHost", self.host), self.known.append)

    async def until(self, count: int) -> Registry:
        """Wait until so many registries were told of; return the last one."""
        async with asyncio.timeout(30):
            while len(self.known) < count:
                await asyncio.sleep(0.001)
        return self.known[-1]

    async def next(self, offset: int) -> None:
        async with asyncio.timeout(30):
            while self.follower.next < offset:
                await asyncio.sleep(0.001)


def test_it_reads_what_there_is_and_what_comes() -> None:
    async def run() -> None:
        story, writer = Story(), Registry()
        for address in ("a", "b"):
            event = writer.register(address, "json", NUMBER)
            writer.apply(event)
            await story.host.append(event)
        story.follower.start()
        registry = await story.until(1)
        assert registry.check("a", None, b'"x"') is not None
        assert registry.check("c", None, b'"x"') is None
        await story.host.append(writer.register("c", "json", NUMBER), writer.unregister("a"))
        await story.next(4)
        assert registry.check("c", None, b'"x"') is not None
        assert registry.check("a", None, b'"x"') is None
        assert story.follower.problem is None
        story.follower.close()
        await story.follower.closed()

    asyncio.run(run())


def test_what_is_no_event_is_passed_over() -> None:
    async def run() -> None:
        story, writer = Story(), Registry()
        event = writer.register("a", "json", NUMBER)
        await story.host.append(b"", b"{}", event, event, b"\xff" * 100)
        engine = await story.host.orb.open("$schemas", {})
        await engine.append(Batch.of([b"no message", Message({"a": 1}).encode()]))
        await story.host.append(Registry().register("b", "json", NUMBER))
        story.follower.start()
        registry = await story.until(1)
        assert [each.address for each in registry] == ["a", "b"]
        assert story.follower.ignored == 6
        assert story.follower.next == 8
        story.follower.close()

    asyncio.run(run())


def test_it_begins_with_the_snapshot_where_that_is_one() -> None:
    async def run() -> None:
        story, writer = Story(), Registry()
        events = []
        for address in ("a", "b"):
            events.append(writer.register(address, "json", NUMBER))
            writer.apply(events[-1])
        await story.host.append(*events)
        engine = await story.host.orb.open("$schemas", {})
        await engine.save_snapshot(Snapshot(2, writer.to_bytes()))
        await engine.trim(2)
        await story.host.append(writer.register("c", "json", NUMBER))
        story.follower.start()
        registry = await story.until(1)
        assert sorted(each.address for each in registry) == ["a", "b", "c"]
        assert story.follower.ignored == 0
        story.follower.close()

    asyncio.run(run())


def test_a_snapshot_that_is_none_is_not_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE_FIRST_S", 0.001)

    async def run() -> None:
        story, writer = Story(), Registry()
        await story.host.append(writer.register("a", "json", NUMBER))
        engine = await story.host.orb.open("$schemas", {})
        await engine.save_snapshot(Snapshot(1, b"nonsense"))
        story.follower.start()
        registry = await story.until(1)
        assert [each.address for each in registry] == ["a"]
        story.follower.close()

    asyncio.run(run())


def test_it_tries_again_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE_FIRST_S", 0.001)

    async def run() -> None:
        story, writer = Story(), Registry()
        story.host.failures = 3
        await story.host.append(writer.register("a", "json", NUMBER))
        story.follower.start()
        first = await story.until(1)
        assert len(first) == 1
        await story.host.orb.delete("$schemas")
        second = await story.until(2)
        assert len(second) == 0
        assert len(first) == 1
        story.follower.close()

    asyncio.run(run())


def test_its_stream_is_where_a_container_keeps_things() -> None:
    def engine_of(text: str, kept_on: str = "orb") -> object:
        rule = table_of(parse(text), kept_on).resolve(SCHEMAS)
        return rule.kind, rule.options["engine"]

    assert engine_of("") == ("stream", "orb")
    assert engine_of("", "raft") == ("stream", "raft")
    own = f'[[stream]]\naddress = "{SCHEMAS}"\nengine = "redis"'
    assert engine_of(own, "raft") == ("stream", "redis")
