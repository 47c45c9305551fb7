"""What an engine on a server must stand beside the kit: a server that dies, stops, or lies."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pytest

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Appended, CaughtUp, FromOffset, Origin, WatchfulEngine
from cogwork.plugin.engine.errors import Busy, Unavailable, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.bench.servers.process import Server
    from cogwork.plugin.engine.contract import Engine, EngineHost


RECORDS = 7
PRODUCERS = 3
KILLS = int(os.environ.get("COGWORK_ENGINE_KILLS", "2"))
BATCHES = 150 * KILLS
WITHIN_S = 100


def name() -> str:
    return f"faults-{uuid.uuid4().hex}"


async def append_all(engine: Engine, producer: bytes, answered: dict[int, list[bytes]]) -> None:
    """Append batches, each until it is answered, and note where they are."""
    for index in range(BATCHES):
        first = index * RECORDS
        records = [b"%s/%d" % (producer, first + i) for i in range(RECORDS)]
        while True:
            try:
                answer = await engine.append(Batch.of(records, producer, first))
                break
            except (Busy, Unavailable, Unknown):
                await asyncio.sleep(0.02)
        if answer.first_offset is not None:
            answered[answer.first_offset] = records
        await asyncio.sleep(0.002)


async def follow(engine: Engine, end: asyncio.Future[int]) -> list[bytes]:
    """Read from the first record up to an offset that is known later.

    A subscription that could not begin, as the server was away for too long, is made anew; one that
    has begun goes on by itself.
    """
    records: list[bytes] = []
    subscription = engine.subscribe(Origin.FIRST)
    while not end.done() or len(records) < end.result():
        step = asyncio.ensure_future(anext(subscription))
        await asyncio.wait((step, end), return_when=asyncio.FIRST_COMPLETED)
        if end.done() and len(records) >= end.result():
            step.cancel()
            await asyncio.wait((step,))
            break
        try:
            found = await step
        except Unavailable:
            if records:
                raise
            subscription = engine.subscribe(Origin.FIRST)
            continue
        if isinstance(found, Chunk):
            assert found.offset == len(records)
            records.extend(found.batch.records())
    return records


@pytest.mark.timeout(300)
class ServerFaults(ABC):
    """Tests on a server of one's own, which they kill and stop."""

    kills: ClassVar[int] = KILLS
    timeout_s: ClassVar[float] = 3.0
    bears_strangers: ClassVar[bool] = False
    server: ClassVar[Server]

    @abstractmethod
    def make_host(self, timeout_s: float = 10.0) -> EngineHost:
        """Make a host on the server."""

    def test_a_server_that_is_killed_loses_nothing_it_answered(self) -> None:
        asyncio.run(asyncio.wait_for(self._kill_in_the_middle(), WITHIN_S + 20 * self.kills))

    async def _kill_in_the_middle(self) -> None:
        hosts = [self.make_host(), self.make_host()]
        stream = name()
        engines = [await opened(host, stream) for host in hosts]
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        answered: dict[int, list[bytes]] = {}
        following = [asyncio.create_task(follow(e, end)) for e in engines]
        writing = [
            asyncio.create_task(append_all(engines[i % 2], b"p%d" % i, answered))
            for i in range(PRODUCERS)
        ]
        for _ in range(self.kills):
            await asyncio.sleep(0.3)
            self.server.kill()
            await asyncio.sleep(0.2)
            await asyncio.to_thread(self.server.start)
        await asyncio.gather(*writing)
        total = PRODUCERS * BATCHES * RECORDS
        bounds = await engines[0].bounds()
        end.set_result(bounds.next)
        digests = await asyncio.gather(*following)
        assert digests[0] == digests[1]
        assert bounds.next == total
        assert len(set(digests[0])) == total
        for offset, records in answered.items():
            assert digests[0][offset : offset + RECORDS] == records
        for i in range(PRODUCERS):
            mine = [each for each in digests[0] if each.startswith(b"p%d/" % i)]
            assert mine == [b"p%d/%d" % (i, j) for j in range(BATCHES * RECORDS)]
        for host in hosts:
            await host.close()

    def test_a_server_that_is_away_is_noticed_and_was_sent_nothing(self) -> None:
        asyncio.run(asyncio.wait_for(self._be_away(), WITHIN_S))

    async def _be_away(self) -> None:
        host = self.make_host(self.timeout_s)
        engine = await opened(host, name())
        assert isinstance(engine, WatchfulEngine)
        await engine.append(Batch.of([b"before"]))
        assert engine.outage is None
        self.server.kill()
        with pytest.raises(Unavailable):
            await engine.bounds()
        assert engine.outage is not None
        assert "start the server, or see why it cannot be reached from here" in engine.outage
        appends = [engine.append(Batch.of([b"while it is away"])) for _ in range(3)]
        told = await asyncio.gather(*appends, return_exceptions=True)
        assert [type(each) for each in told] == [Unavailable] * 3
        await asyncio.to_thread(self.server.start)
        assert (await self._insist(engine, Batch.of([b"after"], b"p"))).first_offset == 1
        assert (await engine.bounds()).next == 2
        assert engine.outage is None
        await host.close()

    def test_a_stream_that_cannot_be_deleted_now_goes_on(self) -> None:
        asyncio.run(asyncio.wait_for(self._fail_to_delete(), WITHIN_S))

    async def _fail_to_delete(self) -> None:
        host = self.make_host(self.timeout_s)
        stream = name()
        engine = await opened(host, stream)
        await engine.append(Batch.of([b"before"], b"p"))
        self.server.kill()
        with pytest.raises(Unavailable):
            await host.delete(stream)
        await asyncio.to_thread(self.server.start)
        assert (await self._insist(engine, Batch.of([b"after"], b"p", 1))).first_offset == 1
        await host.delete(stream)
        with pytest.raises(Unavailable, match="deleted"):
            await engine.bounds()
        await host.close()

    def test_a_server_that_stands_still_is_told_in_time(self) -> None:
        asyncio.run(asyncio.wait_for(self._freeze(), WITHIN_S))

    async def _freeze(self) -> None:
        host = self.make_host(self.timeout_s)
        engine = await opened(host, name())
        await engine.append(Batch.of([b"before"], b"p"))
        self.server.freeze()
        try:
            began_s = time.monotonic()
            calls = [engine.append(Batch.of([b"%d" % i], b"p", 1 + i)) for i in range(5)]
            answers = await asyncio.gather(
                *calls, engine.bounds(), engine.read(0), return_exceptions=True
            )
            assert time.monotonic() - began_s < self.timeout_s * 4
            for answer in answers[:5]:
                assert isinstance(answer, Unknown | Unavailable)
            for answer in answers[5:]:
                assert isinstance(answer, Unavailable)
        finally:
            self.server.thaw()
        places = [await self._insist(engine, Batch.of([b"%d" % i], b"p", 1 + i)) for i in range(5)]
        assert [each.first_offset for each in places] == [1, 2, 3, 4, 5]
        assert (await engine.bounds()).next == 6
        await host.close()

    async def _insist(self, engine: Engine, batch: Batch) -> Appended:
        while True:
            try:
                return await engine.append(batch)
            except (Unavailable, Unknown):
                await asyncio.sleep(0.1)

    def test_too_much_for_a_server_that_stands_still_is_refused(self) -> None:
        asyncio.run(asyncio.wait_for(self._overfill(), WITHIN_S))

    async def _overfill(self) -> None:
        host = self.make_host(self.timeout_s)
        engine = await opened(host, name())
        size_bytes = min(engine.capabilities.batch_bytes_max // 2, 1 << 20)
        batch = Batch.of([bytes(size_bytes - 4)])
        self.server.freeze()
        try:
            calls = [engine.append(batch) for _ in range((64 << 20) // size_bytes)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            self.server.thaw()
        assert {type(each) for each in answers} <= {Busy, Unavailable, Unknown}
        assert Busy in {type(each) for each in answers}
        await host.close()

    def test_what_strangers_write_is_passed_over(self) -> None:
        if not self.bears_strangers:
            pytest.skip("docs/engines.md says that nobody else may write there")
        asyncio.run(asyncio.wait_for(self._strangers(), WITHIN_S))

    async def _strangers(self) -> None:
        host = self.make_host()
        stream = name()
        engine = await opened(host, stream)
        reader = engine.subscribe(Origin.FIRST)
        assert isinstance(await anext(reader), CaughtUp)
        for i in range(5):
            await engine.append(Batch.of([b"%d" % i], b"p", i))
            await self.intrude(host, stream, b"nothing of ours")
        found: list[bytes] = []
        while len(found) < 5:
            chunk = await anext(reader)
            assert isinstance(chunk, Chunk)
            found.extend(chunk.batch.records())
        assert found == [b"%d" % i for i in range(5)]
        assert (await engine.bounds()).next == 5
        await reader.aclose()
        await host.close()

    @pytest.mark.parametrize("leaves", [True, False], ids=["who-leaves", "who-stays"])
    def test_who_waits_for_records_at_the_end_is_no_fault(self, leaves: bool) -> None:
        faults: list[str] = []
        asyncio.run(asyncio.wait_for(self._end_waiting(faults, leaves), WITHIN_S))
        gc.collect()
        assert faults == []

    async def _end_waiting(self, faults: list[str], leaves: bool) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context["message"]))
        host = self.make_host()
        engine = await opened(host, name())
        subscriptions = [engine.subscribe(Origin.FIRST) for _ in range(3)]
        for each in subscriptions:
            assert isinstance(await anext(each), CaughtUp)
        waiting = [asyncio.ensure_future(anext(each)) for each in subscriptions]
        await asyncio.sleep(0.3)
        if leaves:
            for task in waiting:
                task.cancel()
            await host.close()
            return  # and the event loop ends, without waiting for anybody
        await host.close()
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in told] == [Unavailable] * 3

    async def intrude(self, host: EngineHost, stream: str, data: bytes) -> None:
        """Write something where the stream is kept, as nobody should."""
        raise NotImplementedError

    def test_any_octets_come_back_as_they_were(self) -> None:
        asyncio.run(asyncio.wait_for(self._random_octets(), WITHIN_S))

    async def _random_octets(self) -> None:
        host = self.make_host()
        engine = await opened(host, name())
        chance = random.Random(1)
        sent: list[bytes] = []
        for _ in range(50):
            records = [os.urandom(chance.choice((0, 1, 10, 1000, 20_000))) for _ in range(8)]
            await engine.append(Batch.of(records))
            sent.extend(records)
        found: list[bytes] = []
        subscription = engine.subscribe(FromOffset(0))
        async for each in subscription:
            if isinstance(each, CaughtUp):
                break
            assert isinstance(each, Chunk)
            found.extend(each.batch.records())
        await subscription.aclose()
        assert found == sent
        await host.close()

    def test_a_server_that_is_down_is_told(self) -> None:
        asyncio.run(asyncio.wait_for(self._down(), WITHIN_S))

    async def _down(self) -> None:
        host = self.make_host(self.timeout_s)
        stream = name()
        engine = await opened(host, stream)
        other = self.make_host(self.timeout_s)
        self.server.kill()  # for good: the last test, and the start of some servers takes long
        appended, *others = await asyncio.gather(
            engine.append(Batch.of([b"x"])),
            engine.bounds(),
            anext(engine.subscribe(Origin.FIRST)),
            other.open(stream, {}),
            return_exceptions=True,
        )
        assert isinstance(appended, Unknown | Unavailable)
        assert [type(each) for each in others] == [Unavailable] * 3
        await host.close()
        await other.close()


async def opened(
    host: EngineHost, stream: str, options: Mapping[str, object] | None = None
) -> Engine:
    """Open a stream; a server that is slow, as the machine does something else, is asked again."""
    while True:
        try:
            return await host.open(stream, options or {})
        except Unavailable:
            await asyncio.sleep(0.1)


async def survive_the_leader(
    host: EngineHost, options: Mapping[str, object], servers: Sequence[Server]
) -> None:
    """Kill the leader for good in the middle of appends: nothing is lost, nothing comes twice."""
    engine = await opened(host, name(), options)
    members = await engine.members()
    assert len(members.voters) == len(servers)
    end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    answered: dict[int, list[bytes]] = {}
    following = asyncio.create_task(follow(engine, end))
    writing = asyncio.create_task(append_all(engine, b"p", answered))
    await asyncio.sleep(0.3)
    leader = next(each for each in servers if each.name == members.leader)
    leader.kill()
    await writing
    end.set_result((await engine.bounds()).next)
    assert await following == [b"p/%d" % i for i in range(BATCHES * RECORDS)]
    await host.close()
