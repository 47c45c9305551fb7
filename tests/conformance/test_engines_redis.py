"""The engine `redis`, against a Redis server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("redis", reason="the extra [redis] is not installed")

from redis.asyncio import Redis

from cogwork.bench.servers.redis import RedisServer
from cogwork.engines.redis import RedisHost
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.durability import Durability
from cogwork.plugin.engine.errors import Unavailable

from .faults import ServerFaults
from .servers import OnServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    yield from running(lambda: RedisServer(tmp_path_factory.mktemp("redis")))


class TestRedis(OnServer, EngineConformance):
    """The kit."""

    factory = RedisHost


class TestRedisFaults(OnServer, ServerFaults):
    """A server that dies, stops, or lies."""

    factory = RedisHost


@pytest.mark.parametrize(
    ("setting", "value", "usual"),
    [("min-replicas-to-write", "1", "0"), ("maxmemory", "1", "0")],
)
def test_a_server_that_takes_nothing_for_now_is_asked_again(
    server: RedisServer, setting: str, value: str, usual: str
) -> None:
    async def story() -> None:
        host = RedisHost(EngineContext({"url": server.url}))
        engine = await host.open(f"asked-again-{setting}", {})
        client: Redis = Redis.from_url(server.url)
        await client.config_set(setting, value)
        appended = asyncio.ensure_future(engine.append(Batch.of([b"x"])))
        await asyncio.wait((appended,), timeout=0.2)
        assert not appended.done()
        await client.config_set(setting, usual)
        assert (await appended).first_offset == 0
        await client.aclose()
        await host.close()

    if not server.is_running:
        server.start()
    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_user_who_may_not_append_is_told_of(server: RedisServer) -> None:
    async def story() -> None:
        host = RedisHost(EngineContext({"url": server.url}))
        engine = await host.open("refused", {})
        client: Any = Redis.from_url(server.url)
        await client.execute_command("ACL", "SETUSER", "default", "-xadd")
        try:
            with pytest.raises(Unavailable):
                await engine.append(Batch.of([b"x"]))
            assert engine.outage is not None
            assert "Redis: The user executing the script can't run this command" in engine.outage
        finally:
            await client.execute_command("ACL", "SETUSER", "default", "+xadd")
        assert (await engine.append(Batch.of([b"x"]))).first_offset == 0
        assert engine.outage is None
        await client.aclose()
        await host.close()

    if not server.is_running:
        server.start()
    asyncio.run(asyncio.wait_for(story(), 60))


def test_much_is_given_up_in_steps_between_which_others_are_served(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.engines.redis.log.TRIM_ENTRIES", 10)

    async def story() -> None:
        host = RedisHost(EngineContext({"url": server.url}))
        engine = await host.open("steps", {})
        for _ in range(45):
            await engine.append(Batch.of([b"x"]))
        client: Redis = Redis.from_url(server.url)
        await client.config_resetstat()
        log = engine._log
        await log.trim(36)
        assert (await client.info("commandstats"))["cmdstat_xtrim"]["calls"] == 4
        assert await log.ends() == (36, 45)
        assert await log.fetch(1) == await log.fetch(36)
        await log.trim(20)
        assert await log.ends() == (36, 45), "who is late gives nothing back"
        await client.aclose()
        await host.close()

    if not server.is_running:
        server.start()
    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_server_that_synchronises_now_and_then_declares_no_disk(
    server: RedisServer, tmp_path: Path
) -> None:
    lax = RedisServer(tmp_path)
    lax.fsync = "everysec"

    async def durability(url: str) -> Durability:
        host = RedisHost(EngineContext({"url": url}))
        engine = await host.open("declared", {})
        await host.close()
        return engine.capabilities.durability

    if not server.is_running:
        server.start()
    lax.start()
    try:
        assert asyncio.run(durability(lax.url)) is Durability.MEMORY
        assert asyncio.run(durability(server.url)) is Durability.DISK
    finally:
        lax.kill()
