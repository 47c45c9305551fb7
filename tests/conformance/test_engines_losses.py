"""Servers that have lost what they had accepted, and filled its place with something else."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("nats", reason="the extra [nats] is not installed")
pytest.importorskip("redis", reason="the extra [redis] is not installed")

from redis.asyncio import Redis

from cogwork.bench.servers.nats import NatsServer
from cogwork.bench.servers.process import Missing, Server
from cogwork.bench.servers.redis import RedisServer
from cogwork.engines.nats import NatsHost
from cogwork.engines.redis import RedisHost
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.errors import StreamLost

from .faults import opened
from .servers import running

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from cogwork.plugin.engine.contract import Appended, Engine


def run(story: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 90))


async def append(engine: Engine, record: bytes) -> Appended:
    return await engine.append(Batch.of([record]))


async def records(engine: Engine) -> list[bytes]:
    return [each for chunk in await engine.read(0) for each in chunk.batch.records()]


def started(server: Server) -> Server:
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    return server


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    yield from running(lambda: RedisServer(tmp_path_factory.mktemp("redis")))


def test_redis_takes_nothing_that_follows_what_it_has_lost(redis: RedisServer) -> None:
    async def story() -> None:
        hosts = [RedisHost(EngineContext(redis.options)) for _ in range(3)]
        stale, other, fresh = [await each.open("lossy", {}) for each in hosts]
        client: Any = Redis.from_url(redis.url)
        keys = [f"cogwork:{{lossy}}:{each}" for each in ("log", "head")]
        for i in range(3):
            await append(stale, b"%d" % i)
        kept = [await client.dump(key) for key in keys]
        await append(stale, b"lost")
        for key, octets in zip(keys, kept, strict=True):
            await client.restore(key, 0, octets, replace=True)
        assert (await append(other, b"3")).first_offset == 3
        assert (await append(stale, b"4")).first_offset == 4
        assert (await append(fresh, b"5")).first_offset == 5
        assert await records(fresh) == [b"%d" % i for i in range(6)]
        await client.aclose()
        for host in hosts:
            await host.close()

    run(story())


@pytest.mark.parametrize("tip", [None, b"1:another!"], ids=["before-tips", "older-container"])
def test_redis_takes_what_follows_a_last_entry_without_a_tip(
    redis: RedisServer, tip: bytes | None
) -> None:
    async def story() -> None:
        host = RedisHost(EngineContext(redis.options))
        stream = f"tipless-{tip is None}"
        engine = await host.open(stream, {})
        client: Any = Redis.from_url(redis.url)
        for i in range(6):
            assert (await append(engine, b"%d" % i)).first_offset == i
            if i == 2:
                head = f"cogwork:{{{stream}}}:head"
                await (client.hset(head, "tip", tip) if tip else client.hdel(head, "tip"))
        assert await records(engine) == [b"%d" % i for i in range(6)]
        await client.aclose()
        await host.close()

    run(story())


def test_nats_is_sent_nothing_that_follows_what_it_has_lost(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "server")
    data, kept = server.directory / "data", tmp_path / "kept"

    async def restarted(*, goes_back: bool) -> None:
        server.kill()
        if goes_back:
            shutil.rmtree(data)
            shutil.copytree(kept, data)
        else:
            shutil.copytree(data, kept)
        await asyncio.to_thread(server.start)

    async def story() -> None:
        hosts = [NatsHost(EngineContext(server.options)) for _ in range(3)]
        stale, other = [await each.open("lossy", {}) for each in hosts[:2]]
        for i in range(3):
            await append(stale, b"%d" % i)
        await restarted(goes_back=False)
        await append(stale, b"lost")
        await restarted(goes_back=True)
        assert (await append(other, b"3")).first_offset == 3
        assert (await append(stale, b"4")).first_offset == 4
        assert (await append(other, b"5")).first_offset == 5
        assert await records(await hosts[2].open("lossy", {})) == [b"%d" % i for i in range(6)]
        for host in hosts:
            await host.close()

    try:
        started(server)
        run(story())
    finally:
        server.kill()


def test_nats_is_sent_nothing_that_follows_entries_of_a_stream_that_is_gone(
    tmp_path: Path,
) -> None:
    server = NatsServer(tmp_path)

    async def story() -> None:
        hosts = [NatsHost(EngineContext(server.options)) for _ in range(2)]
        stale = await hosts[0].open("again", {})
        await append(stale, b"old")
        await hosts[1].open("again", {})
        await hosts[1].delete("again")
        again = await hosts[1].open("again", {})
        await append(again, b"0")
        await asyncio.sleep(0.3)
        with pytest.raises(StreamLost):
            await append(stale, b"stray")
        await append(again, b"1")
        assert await records(again) == [b"0", b"1"]
        for host in hosts:
            await host.close()

    try:
        started(server)
        run(story())
    finally:
        server.kill()


def test_what_a_nats_cluster_is_about_to_store_is_no_hole(tmp_path: Path) -> None:
    """From 2.12 on the leader compares with what it has proposed and not stored yet."""
    servers = NatsServer.cluster(tmp_path, 3)

    async def story() -> None:
        context = EngineContext(servers[0].options)
        asking = NatsHost(context)
        leader = (await (await opened(asking, "hasty", {"replicas": 3})).members()).leader
        (led,) = [each for each in servers if each.name == leader]
        others = [each for each in servers if each is not led]
        hosts = [NatsHost(EngineContext({"url": led.url})) for _ in range(3)]
        engines = [await each.open("hasty", {"replicas": 3}) for each in hosts]
        for engine in engines[:2]:
            await append(engine, b"before")
        await append(engines[0], b"before")
        await engines[1]._writer.refreshed()
        for each in others:
            each.freeze()
        sent = asyncio.ensure_future(append(engines[0], b"a"))
        await asyncio.sleep(0.1)
        behind = asyncio.ensure_future(append(engines[1], b"b"))
        await asyncio.sleep(0.5)
        for each in others:
            each.thaw()
        assert {(await each).first_offset for each in (sent, behind)} == {3, 4}
        assert (await append(engines[1], b"c")).first_offset == 5
        assert (await append(engines[2], b"d")).first_offset == 6
        assert sorted(await records(engines[2])) == [b"a", b"b", *[b"before"] * 3, b"c", b"d"]
        for host in (asking, *hosts):
            await host.close()

    try:
        for each in servers:
            each.launch()
        for each in servers:
            each.wait()
        run(story())
    except Missing as missing:
        pytest.skip(str(missing))
    finally:
        for each in servers:
            each.thaw()
            each.kill()
