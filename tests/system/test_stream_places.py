"""Where readers of a stream begin, however late that is known, and what they have at the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.client.errors import StreamTruncated
from cogwork.client.links.link_end import LinkEnd
from cogwork.engines.orb import OrbEngine
from cogwork.nodes.stream import reader as server_reader
from cogwork.plugin.engine.errors import Unavailable

from .stories import eventually, story
from .stream_records import bodies, created

if TYPE_CHECKING:
    from cogwork.plugin.engine.contract import Bounds


@pytest.fixture
def slow_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the engine need a moment to say where a stream ends, as a majority does."""
    prompt = OrbEngine.bounds

    async def bounds(engine: OrbEngine) -> Bounds:
        await asyncio.sleep(0.2)
        return await prompt(engine)

    monkeypatch.setattr(OrbEngine, "bounds", bounds)


class Outage:
    """An engine that cannot say where a stream ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self._patch = monkeypatch.context()
        self._patched = self._patch.__enter__()
        self._patched.setattr(OrbEngine, "bounds", self._bounds)

    async def _bounds(self) -> Bounds:
        self.asked += 1
        raise Unavailable("no majority")

    def end(self) -> None:
        self._patch.__exit__(None, None, None)


@pytest.mark.parametrize("start", ["next", "last"])
@pytest.mark.usefixtures("slow_bounds")
def test_what_is_appended_after_an_attach_is_behind_its_place(url: str, start: str) -> None:
    @story
    async def told() -> None:
        async with cogwork.connect(url) as client:
            stream = await created(client, f"behind-{start}")
            await stream.append(["before"])
            reader = stream.read(start)
            await LinkEnd.open(reader)  # as clients do that know nothing of markers
            await stream.append(["one"])
            await stream.append(["two"])
            expected = ["one", "two"] if start == "next" else ["before", "one", "two"]
            assert await bodies(reader, len(expected)) == expected
            await reader.shut()

    told()


@story
async def test_who_begins_at_the_end_waits_for_an_engine_that_is_away(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_reader, "ANSWER_S", 0.1)
    async with cogwork.connect(url) as client:
        stream = await created(client, "away")
        await stream.append(["before"])
        outage = Outage(monkeypatch)
        async with stream.read("first"):  # it is attached, and will begin
            following = stream.read("next")
            opening = asyncio.create_task(following.open())
            done, _ = await asyncio.wait([opening], timeout=0.5)
            assert not done
            outage.end()
            await opening
        await stream.append(["after"])
        assert await bodies(following, 1) == ["after"]
        await following.shut()


@story
async def test_who_leaves_before_its_place_is_known_asks_no_more(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_reader, "ANSWER_S", 0.0)
    async with cogwork.connect(url) as client:
        stream = await created(client, "left")
        outage = Outage(monkeypatch)
        for _ in range(20):
            async with stream.read("first"):
                pass

        async def is_quiet() -> bool:
            before = outage.asked
            await asyncio.sleep(0.3)
            return outage.asked == before

        async with asyncio.timeout(30):
            while not await is_quiet():
                pass
        outage.end()


@story
async def test_what_has_arrived_is_handed_over_before_the_end(url: str) -> None:
    async with cogwork.connect(url) as client:
        stream = await created(client, "trimmed")
        await stream.append(range(50))
        async with stream.read("first", credit=40) as reader:
            found = await bodies(reader, 1)
            await eventually(lambda: reader.waiting == 39, "its credit is used up")
            for _ in range(10):
                await stream.append([b"x" * 20_000] * 100)
            trim = {"type": "stream", "name": "stream/trimmed"}
            await client.manage("TRIM", trim, {"before": 1000})
            ended: StreamTruncated | None = None
            while ended is None:
                try:
                    found += await bodies(reader, 1)
                except StreamTruncated as error:
                    ended = error
            arrived = reader.next_offset
        assert ended.first == 1000
        assert found == list(range(len(found)))
        assert len(found) == arrived


@story
async def test_a_snapshot_outlives_what_follows_it(url: str) -> None:
    async with cogwork.connect(url) as client:
        stream = await created(client, "outlived")
        await stream.append([b"x" * 20_000] * 100)
        await stream.save_snapshot(b"state", 50)
        trim = {"type": "stream", "name": "stream/outlived"}
        await client.manage("TRIM", trim, {"before": 80})
        snapshot = await stream.load_snapshot()
        assert snapshot is not None
        assert (snapshot.offset, snapshot.data) == (50, b"state")
        with pytest.raises(StreamTruncated):
            async for _ in stream.read("snapshot"):
                pass
