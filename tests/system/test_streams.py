"""Streams as their users see them: order, places to start, snapshots, capture."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import flaky
import pytest

import cogwork
from cogwork import sync
from cogwork.amqp.types import ULong
from cogwork.plugin.engine.errors import Unknown
from cogwork.testing import container

from .linked import linked
from .stories import eventually, story
from .stream_records import CONFIGURATION, bodies, created, row_of

if TYPE_CHECKING:
    from cogwork.plugin.engine.contract import Engine, EngineContext


@story
async def test_every_reader_sees_the_same_wherever_it_starts(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as other:
        stream = await created(mesh, "same")
        await stream.append(range(1000))
        async with (
            stream.read("first") as first,
            stream.read(990) as late,
            other.stream("same").read("last") as last,
            other.stream("same").read("next") as following,
        ):
            await following.caught_up()
            await stream.append(range(1000, 2000))
            assert await bodies(first, 2000) == list(range(2000))
            assert await bodies(late, 1010) == list(range(990, 2000))
            assert await bodies(last, 1001) == list(range(999, 2000))
            assert await bodies(following, 1000) == list(range(1000, 2000))


@story
async def test_a_single_body_is_no_batch(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "single")
        async with stream.publisher() as out, mesh.publisher("queue/single") as sender:
            for send in (stream.append, out.send_batch, sender.send_batch):
                with pytest.raises(TypeError, match="not a single dict"):
                    await send({"order": 1})
            for post in (out.post_batch, sender.post_batch):
                with pytest.raises(TypeError, match="not a single str"):
                    post("abc")
        assert (await row_of(mesh, "single"))["next"] == 0


@story
async def test_a_time_is_a_place(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "times")
        await stream.append(["before"])
        await asyncio.sleep(0.02)
        at = datetime.now()
        await asyncio.sleep(0.02)
        await stream.append(["after"])
        async for record in stream.read(at):
            assert (record.body, record.offset) == ("after", 1)
            assert record.time >= at.astimezone()
            break
        async with stream.read(at + timedelta(days=1)) as tomorrow:
            await tomorrow.caught_up()
            assert tomorrow.next_offset == 2
        async with stream.read("today") as today:
            assert await bodies(today, 2) == ["before", "after"]


@story
async def test_a_reader_is_told_when_it_has_caught_up(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "told")
        async with stream.read("first") as empty:
            await empty.caught_up()
            assert empty.is_caught_up
        await stream.append(range(10))
        async with stream.read("first") as reader:
            await eventually(lambda: reader.waiting == 10, "all have come")
            assert await bodies(reader, 9) == list(range(9))
            assert not reader.is_caught_up
            assert await bodies(reader, 1) == [9]
            assert reader.is_caught_up
            await stream.publish(10)
            assert await bodies(reader, 1) == [10]


@story
async def test_a_drain_brings_what_is_there_and_waits_for_nothing(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "drained")
        async with stream.read("first", credit=100) as reader:
            assert await reader.drain() == []
            await stream.append(range(250))
            found: list[object] = []
            while batch := await reader.drain():
                found += [record.body for record in batch]
            assert found == list(range(250))
            await stream.append(["more"])
            assert await bodies(reader, 1) == ["more"]


@story
async def test_a_selector_passes_over_what_does_not_match(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "selected")
        async with stream.read("first", selector="colour = 'red'") as live:
            for number in range(100):
                colour = "red" if number % 10 == 0 else "blue"
                await stream.publish(number, properties={"colour": colour})
            found = [(await anext(live)).offset for _ in range(10)]
            assert found == list(range(0, 100, 10))
        async with stream.read(15, selector="colour = 'red'") as late:
            await eventually(lambda: late.waiting == 8, "the matching ones have come")
            assert [record.offset for record in await late.take()] == list(range(20, 100, 10))


@story
async def test_only_who_asks_gets_the_marker(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "marker")
        async with mesh.subscribe("stream/marker") as plain:
            await stream.append(["one"])
            assert [message.body for message in await plain.take()] == ["one"]
            await asyncio.sleep(0.05)
            assert plain.waiting == 0


@story
async def test_records_come_out_as_they_went_in(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "whole")
        message = cogwork.Message(
            {"a": [1, None]},
            subject="s",
            properties={"p": 1},
            durable=True,
            priority=7,
            annotations={"x-mine": "kept", "x-opt-offset": ULong(77)},
            delivery_annotations={"x-hop": 1},
        )
        await mesh.publish("stream/whole", message)
        await stream.publish(b"x" * 300_000)
        async with stream.read("first") as reader:
            first, big = await reader.take(1), await reader.take(1)
        (found,) = first
        assert (found.body, found.subject, found.properties) == ({"a": [1, None]}, "s", {"p": 1})
        assert (found.durable, found.priority) == (True, 7)
        assert set(found.annotations) == {"x-mine", "x-opt-offset", "x-opt-time"}
        assert (found.offset, found.producer, found.producer_sequence) == (0, None, None)
        assert found.delivery_annotations == {}
        assert big[0].body == b"x" * 300_000
        assert len(big[0].producer or b"") == 16
        assert big[0].producer_sequence == 0


@story
async def test_a_slow_reader_holds_nobody_up(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as other:
        stream = await created(mesh, "slow")
        body = b"x" * 1000
        async with (
            other.stream("slow").read("first", credit=10) as slow,
            stream.read("first") as quick,
        ):
            for _ in range(20):
                await stream.append([body] * 1000)
            assert len(await bodies(quick, 20_000)) == 20_000
            row = await row_of(mesh, "slow")
            assert row["behind"] == max(reader["behind"] for reader in row["readers"]) > 19_000
            assert row["held_bytes"] < 5_000_000
            assert len(await bodies(slow, 20_000)) == 20_000


@story
async def test_what_retention_gave_up_is_told_or_passed_over(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = mesh.stream("small")
        await stream.append(range(250))
        with pytest.raises(cogwork.StreamTruncated) as truncated:
            await anext(aiter(stream.read(0)))
        assert truncated.value.first == 150
        async with stream.read(0, on_truncated="first") as reader:
            assert await bodies(reader, 100) == list(range(150, 250))
        with pytest.raises(cogwork.LinkDetached, match="above the stream's end"):
            await anext(aiter(stream.read(251)))


@story
async def test_a_reader_that_retention_overtakes_is_told(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as other:
        stream = await created(mesh, "overtaken")
        async with other.stream("overtaken").read("first", credit=2) as slow:
            for _ in range(12):
                await stream.append([b"x" * 10_000] * 100)
            await mesh.manage("TRIM", {"type": "stream", "name": "stream/overtaken", "before": 900})
            with pytest.raises(cogwork.StreamTruncated):
                await bodies(slow, 1200)


@story
async def test_what_is_no_stream_is_not_appended_to(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        for address in ("queue/orders", "topic/orders", "unicast/orders", "orders/all"):
            stream = mesh.stream(address)
            for opened in (
                stream.append([b"record"]),
                stream.publish(b"record"),
                stream.save_snapshot(b"state", 0),
                stream.publisher().open(),
            ):
                with pytest.raises(cogwork.LinkRefused, match=f"'{address}' is no stream"):
                    await opened
            await stream.close()
        with pytest.raises(cogwork.NotFound, match="stream create URL undeclared"):
            await mesh.stream("undeclared").append([b"record"])
        async with mesh.browse("queue/orders") as items:
            assert await items.drain() == []
        await created(mesh, "slashed")
        await mesh.stream("/stream/slashed").append([b"record"])


@story
async def test_a_snapshot_is_where_a_program_starts(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "state")
        assert await stream.load_snapshot() is None
        await stream.append(range(10))
        assert await stream.load_snapshot() is None
        await stream.save_snapshot(b"sum 28", 8)
        assert await stream.load_snapshot() == cogwork.Snapshot(8, b"sum 28")
        found = []
        async for record in stream.read(cogwork.Snapshot):
            found.append((record.is_snapshot, record.offset, record.body))
            if len(found) == 3:
                break
        assert found == [(True, 8, b"sum 28"), (False, 8, 8), (False, 9, 9)]
        assert (await row_of(mesh, "state"))["records"] == 10
        with pytest.raises(cogwork.Rejected, match="above the stream's end"):
            await stream.save_snapshot(b"", 11)
        await stream.append([b"x" * 10_000] * 200)
        await mesh.manage("TRIM", {"type": "stream", "name": "stream/state", "before": 200})
        first = (await row_of(mesh, "state"))["first"]
        assert first > 9
        with pytest.raises(cogwork.Rejected, match=f"begins at offset {first}"):
            await stream.save_snapshot(b"too late", 9)
        await stream.save_snapshot(b"in time", first)
        async with stream.read(cogwork.Snapshot) as reader:
            assert (await anext(reader)).body == b"in time"
            assert (await anext(reader)).offset == first
        text = cogwork.Message("text", annotations={"x-opt-snapshot": 1})
        with pytest.raises(cogwork.Rejected, match="binary"):
            await mesh.publish("stream/state", text)


@story
async def test_topics_are_captured_with_wildcards_in_publisher_order(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as other:
        following = (await row_of(mesh, "kept"))["next"]

        async def publish(client: cogwork.Client, name: str) -> None:
            async with client.publisher(f"topic/flights.{name}.LAX") as out:
                outcomes = await out.send_batch([f"{name}{number}" for number in range(500)])
                assert all(outcome.is_accepted for outcome in outcomes)

        await asyncio.gather(publish(mesh, "JFK"), publish(other, "EWR"))
        await mesh.publish("topic/trains.urgent", "urgent")
        await mesh.publish("topic/trains.slow", "not captured")
        await mesh.publish("topic/flights.urgent", "once")
        await mesh.publish("topic/flights.big", b"x" * 200_000)
        async with mesh.stream("kept").read(following) as reader:
            found = await bodies(reader, 1003)
            await asyncio.sleep(0.05)
            assert reader.waiting == 0
        for name in ("JFK", "EWR"):
            of_one = [body for body in found if str(body).startswith(name)]
            assert of_one == [f"{name}{number}" for number in range(500)]
        assert found[-3:] == ["urgent", "once", b"x" * 200_000]


@story
async def test_a_captured_message_that_the_stream_cannot_keep_is_in_doubt() -> None:
    configuration = CONFIGURATION.replace("orb", "flaky:FlakyHost").replace(
        'address = "stream/kept"', 'address = "stream/kept"\nengine = "flaky:FlakyHost"'
    )
    async with container(configuration) as url, cogwork.connect(url) as mesh:
        await mesh.publish("topic/flights.a", 1)
        flaky.FAULTS.appends = [lambda: Unknown("x")]
        with pytest.raises(cogwork.InDoubt):
            await mesh.publish("topic/flights.a", 2)


@story
async def test_a_stream_captures_what_is_published_anywhere_in_the_mesh() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        publisher, reader = await mesh.client("a"), await mesh.client("b")
        await mesh.settle()
        for number in range(10):
            await publisher.publish("topic/flights.JFK", number)
        async with reader.stream("kept").read("first") as records:
            assert await bodies(records, 10) == list(range(10))


@story
async def test_a_stream_that_nobody_declared_is_refused(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        with pytest.raises(cogwork.NotFound, match="cogwork stream create URL nobody"):
            await mesh.stream("nobody").append([1])
        with pytest.raises(cogwork.NotFound):
            await anext(aiter(mesh.stream("nobody").read("first")))
        with pytest.raises(ValueError, match="no place in a stream"):
            mesh.stream("small").read("yesterday-ish")


@story
async def test_a_stream_goes_where_nobody_uses_it(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "gone")
        named = {"type": "stream", "name": "stream/gone"}
        async with stream.read("first"):
            with pytest.raises(cogwork.LinkRefused, match="in use by 0 senders, 1 receivers"):
                await mesh.manage("DELETE", named)
        await stream.append(["old"])
        await stream.close()
        await mesh.manage("DELETE", named)
        with pytest.raises(cogwork.NotFound):
            await mesh.manage("READ", named)
        await created(mesh, "gone")
        assert (await row_of(mesh, "gone"))["next"] == 0


def test_streams_without_a_loop(url: str) -> None:
    with sync.connect(url) as mesh:
        mesh.publish("stream/kept", "from the loopless")
        stream = mesh.stream("kept")
        with stream.read("last") as reader:
            stream.append(["a", "b"])
            stream.publish("c")
            assert [next(reader).body for _ in range(4)] == ["from the loopless", "a", "b", "c"]
        stream.close()


class Refusing:
    """The host of an engine that takes no stream."""

    def __init__(self, context: EngineContext) -> None:
        """Start with no options."""

    async def open(self, stream: str, _options: object) -> Engine:
        raise ValueError(f"{stream} is none of mine")

    async def close(self) -> None:
        """Have nothing open."""


@story
async def test_a_stream_that_cannot_be_opened_is_an_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = f'[[stream]]\naddress = "stream/lost"\nengine = "{__name__}:Refusing"\n'
    with container(lost) as own, caplog.at_level("ERROR", "cogwork"):
        async with cogwork.connect(own) as mesh:
            await eventually(lambda: "stream/lost" in caplog.text, "an error in the log")
            assert (await row_of(mesh, "lost"))["state"] == "failed"
    told = [record for record in caplog.records if "stream/lost" in record.getMessage()]
    assert {record.levelname for record in told} == {"ERROR"}
