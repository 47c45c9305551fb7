"""Heartbeats of containers in a stream."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import cogwork
from cogwork.router.exchanges.names import PREDECLARED
from cogwork.testing import container

from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from cogwork.client import Client

OFTEN = "[telemetry]\nevery_s = 0.2\n"
TIMEOUT_S = 40.0
PASSED = 20


async def heartbeats(
    client: Client, is_last: Callable[[dict[str, Any]], object]
) -> list[dict[str, Any]]:
    """Read heartbeats from the first on, up to one that is as expected."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(TIMEOUT_S), client.stream("$telemetry") as stream:
        async for record in stream.read("first"):
            assert (record.subject, record.content_type) == ("heartbeat", "application/json")
            assert isinstance(record.body, bytes)
            found.append(json.loads(record.body))
            if is_last(found[-1]):
                break
    return found


def row(beat: dict[str, Any], address: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        (each for each in beat["addresses"] if each["address"] == address), {"in": 0, "out": 0}
    )
    return found


def has_done(beat: dict[str, Any], address: str, count: int) -> bool:
    """Return whether so many items went out of a queue, and none is left."""
    found = row(beat, address)
    return bool(found["out"] == count and found["depth"] == 0)


def has_passed_all(beat: dict[str, Any]) -> bool:
    """Return whether all went out of the addresses that pass messages between containers."""
    return all(row(beat, each)["out"] >= PASSED for each in ("unicast/x", "topic/t.x"))


class TestOneContainer:
    @story
    async def test_it_counts_what_comes_and_goes(self) -> None:
        async with container(OFTEN) as url, cogwork.connect(url) as client:
            for _ in range(20):
                await client.publish("work/jobs", b"x" * 1000)
            async with client.consume("work/jobs") as jobs:
                for _ in range(20):
                    await (await anext(jobs)).accept()
            beats = await heartbeats(client, lambda beat: has_done(beat, "work/jobs", 20))
        last = beats[-1]
        jobs_row = row(last, "work/jobs")
        assert (jobs_row["kind"], jobs_row["in"], jobs_row["depth"]) == ("queue", 20, 0)
        assert 20 * 1000 < jobs_row["bytes_in"] < 20 * 1100
        assert jobs_row["latency_us"]["count"] == 20
        assert last["queues"] == 1
        assert last["connections"] == 1
        assert last["memory_bytes"] > 1 << 20
        assert last["bytes_in"] > 20_000
        assert (last["primary"], last["root"]) == (None, None)
        assert (last["exchanges"], last["bindings"]) == (len(PREDECLARED), 0)
        times = [beat["time_us"] for beat in beats]
        assert times == sorted(times)
        assert {beat["incarnation"] for beat in beats} == {last["incarnation"]}
        assert [beat["sequence"] for beat in beats] == list(range(1, len(beats) + 1))

    @story
    async def test_a_large_message_is_counted_whole(self) -> None:
        async with container(OFTEN) as url, cogwork.connect(url) as client:
            async with client.consume("unicast/large") as received:
                sending = asyncio.create_task(client.publish("unicast/large", b"x" * 500_000))
                await (await anext(received)).accept()
                await sending
            beats = await heartbeats(client, lambda beat: row(beat, "unicast/large")["in"])
        assert 500_000 < row(beats[-1], "unicast/large")["bytes_in"] < 501_000

    @story
    async def test_without_the_table_there_is_no_stream(self) -> None:
        async with container() as url, cogwork.connect(url) as client:
            reply = await client.manage("QUERY", {"type": "stream"})
        assert "$telemetry" not in str(reply)

    @story
    async def test_a_stream_that_takes_nothing_is_told_once_in_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        configuration = """
        [telemetry]
        every_s = 0.02
        [[stream]]
        address = "stream/$telemetry"
        engine = "redis"
        [[engine]]
        name = "redis"
        options = { url = "redis://127.0.0.1:9" }
        """

        def told() -> int:
            return sum("does not accept this container's" in text for text in caplog.messages)

        async with container(configuration) as url, cogwork.connect(url) as client:
            await eventually(lambda: told() > 0, "the log says so")
            await client.publish("work/jobs", b"x")
            await asyncio.sleep(0.2)
            assert told() == 1


async def exchange(here: Client, there: Client) -> tuple[dict[str, Any], dict[str, Any]]:
    """Have messages go to receivers at another container; return the heartbeats of both then."""
    async with (
        here.consume("unicast/x") as items,
        here.subscribe("topic/t.#") as news,
        there.publisher("unicast/x") as work,
        there.publisher("topic/t.x") as told,
    ):
        heard = asyncio.ensure_future(anext(news))
        while not heard.done():  # until the subscription is known there
            await there.publish("topic/t.first", b"x")
            await asyncio.wait((heard,), timeout=0.05)
        for _ in range(PASSED):
            sending = asyncio.create_task(work.send(b"x"))
            await (await anext(items)).accept()
            await sending
            await told.send(b"x")
        at_a = await heartbeats(here, has_passed_all)
        at_b = await heartbeats(there, has_passed_all)
    return at_a[-1], at_b[-1]


class TestTwoContainers:
    @story
    async def test_what_one_passes_to_the_other_s_receivers_counts_at_both(self) -> None:
        async with container(OFTEN, id="a") as receiving:
            linked = f'{OFTEN}[[link]]\nurl = "{receiving}"\n'
            async with (
                container(linked, id="b") as sending,
                cogwork.connect(receiving, force=True) as here,
                cogwork.connect(sending, force=True) as there,
            ):
                at_a, at_b = await exchange(here, there)
        both = ("unicast/x", "topic/t.x")
        assert [row(at_a, each)["in"] for each in both] == [0, 0]
        assert [row(at_a, each)["out"] for each in both] == [PASSED, PASSED]
        assert [row(at_b, each)["in"] for each in both] == [PASSED, PASSED]
        there_to_here = {each["address"]: each["messages"] for each in at_b["matrix"]}
        assert [there_to_here[each] for each in both] == [PASSED, PASSED]
        assert at_a["matrix"] == []
