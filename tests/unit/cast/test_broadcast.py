"""Broadcast over an engine: several processes' casts, engines that fail, feeds that join."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cogwork import broadcast
from cogwork.cast import Broadcast
from cogwork.cast.conformance import Echo, Listener
from cogwork.engines.orb import OrbEngine, OrbHost, OrbSubscription
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Appended, CaughtUp, Snapshot, Start
from cogwork.plugin.engine.errors import Busy, InvalidAppend, Unavailable, Unknown


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(limited())


class Flaky(OrbEngine):
    """Takes an append and does not say so, is busy, or loses its subscribers, in turns."""

    calls = 0
    subscriptions = 0

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        self.calls += 1
        if self.calls % 3 == 0:
            return super().append(batch, epoch)
        return self._fail(batch)

    async def _fail(self, batch: Batch) -> Appended:
        if self.calls % 3 == 1:
            raise Busy("as always")
        await super().append(batch)
        raise Unknown("the answer was lost")

    def subscribe(self, start: Start) -> OrbSubscription:
        self.subscriptions += 1
        return Lost(self, start)


class Lost(OrbSubscription):
    """Ends after two steps."""

    steps = 0

    async def __anext__(self) -> Chunk | CaughtUp | Snapshot:
        self.steps += 1
        if self.steps > 2:
            raise Unavailable("the reader was lost")
        return await super().__anext__()


def test_each_message_is_there_once_whatever_the_engine_does() -> None:
    async def test() -> None:
        engine = Flaky((await OrbHost().open("s", {}))._stream)
        listener = Listener()
        async with broadcast(engine) as cast:
            cast.add(listener)
            for i in range(10):
                cast.send(b"%d" % i)
                await cast.sync()
        assert listener.bodies == [b"%d" % i for i in range(10)]
        assert engine.calls >= 20
        assert engine.subscriptions > 2

    run(test)


def test_casts_in_many_processes_see_one_order() -> None:
    async def test() -> None:
        host = OrbHost()
        engines = [await host.open("s", {}) for _ in range(3)]
        cogs = [Echo(b"%d" % i, times=20) for i in range(3)]
        casts = [broadcast(engine) for engine in engines]
        for cast, cog in zip(casts, cogs, strict=True):
            cast.add(cog)
        casts[0].send(b"begin")
        while len(cogs[0].messages) < 61:
            await asyncio.sleep(0.001)
        for cast in casts:
            await cast.sync()
            await cast.close()
        while not all(len(cog.messages) == 61 for cog in cogs):
            await asyncio.sleep(0.001)
        assert cogs[0].messages == cogs[1].messages == cogs[2].messages
        assert {each.producer for each in cogs[0].messages} == {cast.producer for cast in casts}

    run(test)


def feeds(cast: Broadcast) -> int:
    return len(cast._feeds)


def test_cogs_at_the_same_place_share_a_reader() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {})
        async with broadcast(engine) as cast:
            cogs = [Listener() for _ in range(5)]
            for cog in cogs:
                cast.add(cog)
                cast.send(b"x")
                await cast.sync()
            cast.send(b"y")
            await cast.sync()
            assert feeds(cast) == 1
            assert all(cog.messages == cogs[0].messages for cog in cogs)
            assert [cog.caught_up for cog in cogs] == [[i] for i in (0, 1, 2, 3, 4)]
            for cog in cogs:
                cast.remove(cog)
            assert feeds(cast) == 0

    run(test)


def test_what_is_sent_in_a_turn_is_one_batch() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {})
        async with broadcast(engine) as cast:
            for i in range(100):
                cast.send(b"%d" % i)
            await cast.sync()
        (chunk,) = await engine.read(0)
        assert chunk.batch.count == 100

    run(test)


def test_an_engine_that_refuses_for_good_breaks_the_cast() -> None:
    class Refusing(OrbEngine):
        async def append(self, batch: Batch, epoch: int | None = None) -> Appended:
            raise InvalidAppend("never")

    async def test() -> None:
        engine = Refusing((await OrbHost().open("s", {}))._stream)
        cast = broadcast(engine)
        cast.send(b"x")
        with pytest.raises(InvalidAppend, match="never"):
            await cast.sync()
        with pytest.raises(InvalidAppend, match="never"):
            cast.send(b"y")
        await cast.close()

    run(test)


def test_nothing_is_sent_through_a_closed_cast_and_the_engine_stays_open() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {})
        async with broadcast(engine) as cast:
            cast.add(Listener())
            cast.send(b"x")
        with pytest.raises(Unavailable):
            cast.send(b"y")
        assert (await engine.bounds()).next == 1
        assert len(asyncio.all_tasks()) == 1

    run(test)


def test_too_much_under_way_is_refused() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {})
        async with broadcast(engine) as cast:
            sent = 0
            while sent < 100:
                try:
                    cast.send(bytes(1 << 20))
                except Busy:
                    break
                sent += 1
            assert sent == 16
            await cast.sync()
            cast.send(b"goes on")

    run(test)
