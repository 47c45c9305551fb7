"""How much one read from Redis brings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("redis", reason="the extra [redis] is not installed")

from redis.asyncio import Redis

from cogwork.bench.servers.redis import RedisServer
from cogwork.engines.redis.reader import RedisReader
from cogwork.engines.shared.entry import Kind, pack_batches
from cogwork.engines.shared.head import Head
from cogwork.engines.shared.pace import READ_BYTES_MAX
from cogwork.plugin.engine.batch import Batch

from .servers import running

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = b"log"
LARGE_BYTES = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    yield from running(lambda: RedisServer(tmp_path_factory.mktemp("redis")))


class Filled:
    """A log that entries of some sizes are put into."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._head = Head()
        self.last = 0

    async def add(self, *sizes: int) -> None:
        pipe = self._client.pipeline(transaction=False)
        for size in sizes:
            body = pack_batches([Batch.of([bytes(size)])])
            data = self._head.entry(bytes(8), Kind.RECORDS, body, 0, count=1).to_bytes()
            self.last += 1
            self._head.take(self.last, data)
            pipe.xadd(KEY, {b"e": data}, id=f"{self.last}-0")
        await pipe.execute()


async def read(reader: RedisReader, count: int) -> list[list[int]]:
    """Read so many entries; return the sizes of those of each read."""
    found: list[list[int]] = []
    position = 1
    while sum(map(len, found)) < count:
        entries = await reader.next(1.0)
        assert [each for each, _ in entries] == list(range(position, position + len(entries)))
        position += len(entries)
        found.append([len(data) for _, data in entries])
    return found


def test_a_read_is_of_some_mib_even_where_large_entries_follow_many_small_ones(
    server: RedisServer,
) -> None:
    async def story() -> None:
        client: Redis = Redis.from_url(server.url)
        log = Filled(client)
        await log.add(*[10] * 3000, *[LARGE_BYTES] * 20, *[10] * 100)
        reads = await read(RedisReader(client, KEY, 1), log.last)
        counts = [len(each) for each in reads]
        assert counts[:10] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], "small ones go fast"
        assert max(map(sum, reads)) <= READ_BYTES_MAX
        await client.flushall()
        await client.aclose()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_what_comes_while_nobody_reads_is_read_at_once_and_by_mib(server: RedisServer) -> None:
    async def story() -> None:
        client: Redis = Redis.from_url(server.url)
        log = Filled(client)
        reader = RedisReader(client, KEY, 1)
        assert not await reader.next(0.01)
        waiting = asyncio.ensure_future(reader.next(1.0))
        await asyncio.sleep(0.05)
        await log.add(10)
        assert [position for position, _ in await waiting] == [1]
        await log.add(*[10] * 50, *[LARGE_BYTES] * 10)
        await client.xadd(KEY, {b"somebody": b"else"}, id="62-7")
        positions: list[int] = []
        while len(positions) < 61:
            entries = await reader.next(1.0)
            assert sum(len(data) for _, data in entries) <= READ_BYTES_MAX
            positions.extend(position for position, _ in entries)
        assert positions == list(range(2, 63))
        assert entries[-1] == (62, b"")
        await client.flushall()
        await client.aclose()

    asyncio.run(asyncio.wait_for(story(), 60))
