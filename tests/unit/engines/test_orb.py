"""The engine in this process: what the conformance kit does not ask of every engine."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from cogwork.engines import orb
from cogwork.engines.orb import OrbEngine, OrbHost
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import (
    Appended,
    Bounds,
    CaughtUp,
    EngineContext,
    FromTime,
    Origin,
)
from cogwork.plugin.engine.errors import Busy, Truncated, Unavailable


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(limited())


async def fill(engine: OrbEngine, count: int, size_bytes: int = 100) -> None:
    for _ in range(count):
        await engine.append(Batch.of([bytes(size_bytes)]))


def test_retention_by_octets_keeps_the_newest() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {"retention_bytes": 50_000})
        await fill(engine, 30, size_bytes=10_000)
        bounds = await engine.bounds()
        assert bounds.next == 30
        assert 3 <= bounds.next - bounds.first <= 5
        await fill(engine, 1, size_bytes=100_000)
        assert await engine.bounds() == Bounds(30, 31)

    run(test)


def test_small_records_are_not_free() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {"retention_bytes": 50_000})
        await fill(engine, 1000, size_bytes=0)
        bounds = await engine.bounds()
        assert bounds.next - bounds.first < 130

    run(test)


def test_retention_by_records_is_exact() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {"retention_records": 5})
        await engine.append(Batch.of([b"%d" % i for i in range(4)]))
        await engine.append(Batch.of([b"%d" % i for i in range(4, 8)]))
        assert await engine.bounds() == Bounds(3, 8)
        (first, _) = await engine.read(3)
        assert list(first.batch.records()) == [b"3"]

    run(test)


def test_retention_by_age_goes_on_without_appends() -> None:
    now_ms = 1_000_000

    async def test() -> None:
        nonlocal now_ms
        engine = await OrbHost(now_ms=lambda: now_ms).open("s", {"retention_s": 60})
        for _ in range(3):
            await engine.append(Batch.of([b"x"]))
            now_ms += 30_000
        assert await engine.bounds() == Bounds(1, 3)
        assert await engine.offset_at(0) == 1
        now_ms += 45_000
        assert await engine.bounds() == Bounds(3, 3)
        late = engine.subscribe(FromTime(0))
        assert await anext(late) == CaughtUp(3)

    run(test)


def test_a_subscriber_behind_the_retention_is_told() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {"retention_records": 5})
        slow = engine.subscribe(Origin.FIRST)
        assert await anext(slow) == CaughtUp(0)
        await fill(engine, 3)
        assert isinstance(await anext(slow), Chunk)
        await fill(engine, 20)
        for _ in range(2):
            with pytest.raises(Truncated) as caught:
                await anext(slow)
            assert caught.value.first == 18

    run(test)


def test_subscribers_have_a_record_before_its_appender_has_the_answer() -> None:
    async def story() -> None:
        engine = await OrbHost().open("s", {})
        taken = 0
        seen: list[int] = []

        async def follow() -> None:
            nonlocal taken
            async for _ in engine.subscribe(Origin.NEXT):
                taken += 1

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        before = taken
        answer = asyncio.ensure_future(engine.append(Batch.of([b"x"])))
        answer.add_done_callback(lambda _: seen.append(taken))
        await answer
        await asyncio.sleep(0)
        assert seen == [before + 1]
        following.cancel()

    run(story)


def test_who_awaits_each_append_lets_others_run() -> None:
    """The answer is there at once, yet a subscriber is never far behind."""

    async def test() -> None:
        engine = await OrbHost().open("s", {"retention_bytes": 4 << 20})
        reader = engine.subscribe(Origin.FIRST)
        assert await anext(reader) == CaughtUp(0)
        reading = asyncio.ensure_future(read_all(reader, 2000))
        await fill(engine, 2000, size_bytes=10_000)
        assert await reading == 2000

    async def read_all(reader: orb.OrbSubscription, count: int) -> int:
        offset = 0
        while offset < count:
            chunk = await anext(reader)
            assert isinstance(chunk, Chunk)
            offset = chunk.next_offset
        return offset

    run(test)


def test_a_subscriber_with_a_long_way_to_go_lets_others_run() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {})
        await fill(engine, 1000, size_bytes=10_000)
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(turn)

        turn()
        reader = engine.subscribe(Origin.FIRST)
        while not isinstance(await anext(reader), CaughtUp):
            pass
        assert turns > 20

    run(test)


def test_who_awaits_nothing_is_refused_in_the_end() -> None:
    async def test() -> None:
        engine = await OrbHost().open("s", {})
        answers = [engine.append(Batch.of([bytes(1 << 20)])) for _ in range(40)]
        found = await asyncio.gather(*answers, return_exceptions=True)
        taken = [each for each in found if isinstance(each, Appended)]
        assert 15 <= len(taken) <= 17
        assert all(isinstance(each, Busy) for each in found[len(taken) :])
        assert (await engine.append(Batch.of([b"x"]))).first_offset == len(taken)

    run(test)


def test_subscribers_that_leave_are_forgotten() -> None:
    async def read(reader: orb.OrbSubscription) -> None:
        async for _ in reader:
            pass

    async def test() -> None:
        engine = await OrbHost().open("s", {})
        for _ in range(3):
            reader = engine.subscribe(Origin.NEXT)
            assert await anext(reader) == CaughtUp(0)
            waiting = asyncio.ensure_future(anext(reader, "over"))
            await asyncio.sleep(0)
            await reader.aclose()
            assert await waiting == "over"
            assert await anext(reader, "over") == "over"
        for _ in range(3):
            waiting = asyncio.ensure_future(anext(engine.subscribe(Origin.NEXT)))
            await waiting
            reading = asyncio.ensure_future(read(engine.subscribe(Origin.NEXT)))
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
        del reader, waiting, reading
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, orb.OrbSubscription)]

    run(test)


def test_a_stream_has_the_options_of_its_last_opening() -> None:
    async def test() -> None:
        host = OrbHost()
        engine = await host.open("s", {})
        await fill(engine, 10)
        again = await host.open("s", {"retention_records": 2})
        assert await again.bounds() == await engine.bounds() == Bounds(8, 10)

    run(test)


def test_a_host_that_closes_takes_its_streams_with_it() -> None:
    async def test() -> None:
        host = OrbHost()
        engine = await host.open("s", {})
        await host.close()
        with pytest.raises(Unavailable, match="deleted"):
            await engine.append(Batch.of([b"x"]))

    run(test)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"retention_bytes": 0}, "retention_bytes is a positive number"),
        ({"retention_s": "7d"}, "retention_s is a positive number"),
        ({"retention_records": True}, "retention_records is a positive number"),
        ({"replicas": 3}, "no option 'replicas', but retention_s"),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, object], reason: str) -> None:
    async def test() -> None:
        with pytest.raises(ValueError, match=reason):
            await OrbHost().open("s", options)

    run(test)


def test_the_engine_itself_has_no_options() -> None:
    with pytest.raises(ValueError, match="no option 'url'"):
        OrbHost(EngineContext({"url": "x"}))
