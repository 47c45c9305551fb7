"""Streams as their users see them: order, places to start, exactly once, snapshots, capture."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import flaky
import pytest

import cogwork
from cogwork import sync
from cogwork.amqp.types import ULong
from cogwork.consensus.errors import Busy, OutOfSequence, SequenceReused, Unavailable, Unknown
from cogwork.testing import container

from .linked import linked
from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.client import Stream, StreamReader
    from cogwork.consensus.errors import ConsensusError

QUICKLY = cogwork.Retry(first_s=0.01, longest_s=0.1)

CONFIGURATION = """
[[stream]]
address = "stream/flaky"
engine = "flaky:FlakyHost"

[[stream]]
address = "stream/small"
retention_records = 100

[[stream]]
address = "stream/kept"
capture = ["topic/flights.#", "topic/*.urgent"]
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One container for all tests of the module."""
    with container(CONFIGURATION) as running:
        yield running


@pytest.fixture(autouse=True)
def faults() -> Iterator[flaky.Faults]:
    """Nothing goes wrong but what a test asks for."""
    yield flaky.FAULTS
    flaky.FAULTS.__init__()


async def created(mesh: cogwork.Mesh, name: str) -> Stream:
    """Makes a stream."""
    await mesh.manage("CREATE", {"type": "stream", "name": f"stream/{name}"})
    return mesh.stream(name)


async def row_of(mesh: cogwork.Mesh, name: str) -> dict[str, Any]:
    """Asks the container for a stream's figures."""
    body = (await mesh.manage("READ", {"type": "stream", "name": f"stream/{name}"})).body
    assert isinstance(body, dict)
    return body


async def bodies(reader: StreamReader, count: int) -> list[object]:
    """Takes so many records, and sees that their offsets have no gap."""
    taken: list[cogwork.Record] = []
    while len(taken) < count:
        taken += await reader.take(count - len(taken))
    offsets = [record.offset for record in taken]
    assert offsets == list(range(offsets[0], offsets[0] + count))
    return [record.body for record in taken]


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
async def test_readers_and_publishers_survive_cuts_with_nothing_missing_or_twice(url: str) -> None:
    count = 5_000
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as mesh,
        cogwork.connect(url) as other,
    ):
        stream = await created(other, "cut")

        async def publish() -> None:
            async with mesh.stream("cut").publisher() as publisher:
                for number in range(count):
                    publisher.post(number)
                    if number % 100 == 0:
                        await asyncio.sleep(0.005)
                await publisher.flush()

        async def cut() -> None:
            for _ in range(5):
                await asyncio.sleep(0.05)
                proxy.cut()

        async with mesh.stream("cut").read("first", credit=500) as reader:
            _, _, found = await asyncio.gather(publish(), cut(), bodies(reader, count))
        assert proxy.connections > 3
        assert found == list(range(count))
        async with stream.read("first") as again:
            assert await bodies(again, count) == list(range(count))
            await asyncio.sleep(0.05)
            assert again.waiting == 0


@story
async def test_what_was_in_doubt_is_there_once(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as mesh,
        cogwork.connect(url) as other,
    ):
        stream = await created(other, "doubt")
        async with mesh.stream("doubt").publisher() as publisher:
            proxy.hold_replies()
            post = publisher.post("once")
            await asyncio.sleep(0.05)
            assert (await row_of(other, "doubt"))["next"] == 1
            proxy.cut()
            await post
            await publisher.send("twice")
        async with stream.read("first") as reader:
            assert await bodies(reader, 2) == ["once", "twice"]


@pytest.mark.parametrize(
    "fault", [lambda: Busy("x"), lambda: Unavailable("x"), lambda: Unknown("x")]
)
@story
async def test_an_engine_that_fails_for_a_while_is_tried_again_in_order(
    url: str, faults: flaky.Faults, fault: Callable[[], ConsensusError]
) -> None:
    async with cogwork.connect(url) as mesh:
        stream = mesh.stream("flaky")
        following = (await row_of(mesh, "flaky"))["next"]
        faults.delay_s = 0.01
        faults.appends = [None, fault, None, fault, fault, None]
        async with stream.publisher() as publisher:
            for number in range(20):
                publisher.post(number)
                await asyncio.sleep(0.002)
            await publisher.flush()
        async with stream.read(following) as reader:
            assert await bodies(reader, 20) == list(range(20))


@story
async def test_a_stock_client_is_told_what_became_of_its_messages(
    url: str, faults: flaky.Faults
) -> None:
    async with cogwork.connect(url) as mesh:
        faults.appends = [lambda: Unknown("x"), lambda: SequenceReused(0), None]
        with pytest.raises(cogwork.InDoubt):
            await mesh.publish("stream/flaky", 1)
        with pytest.raises(cogwork.Rejected) as refused:
            await mesh.publish("stream/flaky", 2)
        assert refused.value.condition == "cogwork:sequence-reused"
        await mesh.publish("stream/flaky", 3)
        stamped = cogwork.Message(4, annotations={"x-opt-producer": b"me"})
        with pytest.raises(cogwork.Rejected, match="both or neither"):
            await mesh.publish("stream/flaky", stamped)


@story
async def test_any_client_may_count_its_messages(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        stream = await created(mesh, "counted")

        def stamped(body: str, sequence: int) -> cogwork.Message:
            return cogwork.Message(
                body, annotations={"x-opt-producer": "me", "x-opt-sequence": sequence}
            )

        await mesh.publish("stream/counted", stamped("a", 0))
        await mesh.publish("stream/counted", stamped("a", 0))
        await mesh.publish("stream/counted", stamped("b", 1))
        with pytest.raises(cogwork.Rejected) as reused:
            await mesh.publish("stream/counted", stamped("other", 1))
        with pytest.raises(cogwork.Rejected) as gap:
            await mesh.publish("stream/counted", stamped("d", 3))
        assert reused.value.condition == "cogwork:sequence-reused"
        assert gap.value.condition == "cogwork:out-of-sequence"
        async with stream.read("first") as reader:
            records = [*await reader.take(1), *await reader.take(1)]
        assert [(each.body, each.producer, each.producer_sequence) for each in records] == [
            ("a", b"me", 0),
            ("b", b"me", 1),
        ]


@story
async def test_who_asks_a_replica_that_lags_asks_again_though_nothing_new_comes(
    url: str, faults: flaky.Faults
) -> None:
    async with cogwork.connect(url) as mesh:
        stream = mesh.stream("flaky")
        following = (await row_of(mesh, "flaky"))["next"]
        await stream.append([b"x" * 300_000] * 20)  # more than what is kept of the live end
        faults.lagging = 2
        async with stream.read(following) as reader:
            assert await bodies(reader, 20) == [b"x" * 300_000] * 20
        assert faults.lagging == 0


@story
async def test_our_client_goes_on_where_one_message_is_refused(
    url: str, faults: flaky.Faults
) -> None:
    async with cogwork.connect(url) as mesh:
        following = (await row_of(mesh, "flaky"))["next"]
        async with mesh.stream("flaky").publisher() as publisher:
            producer = publisher.producer
            await publisher.send("a")
            faults.appends = [lambda: SequenceReused(1)]
            refused = publisher.post("refused")
            await asyncio.sleep(0.01)
            rest = [publisher.post(body) for body in "bcd"]
            with pytest.raises(cogwork.Rejected):
                await refused
            for post in rest:
                await post
            assert publisher.producer != producer
        async with mesh.stream("flaky").read(following) as reader:
            assert await bodies(reader, 4) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("fault", "condition"),
    [(SequenceReused(1), "cogwork:sequence-reused"), (OutOfSequence(0, 1), "out-of-sequence")],
)
@story
async def test_a_producer_whose_id_was_given_never_takes_another(
    url: str, faults: flaky.Faults, fault: Exception, condition: str
) -> None:
    async with cogwork.connect(url) as mesh:
        following = (await row_of(mesh, "flaky"))["next"]
        producer = f"kept {condition}".encode()
        publisher = mesh.stream("flaky").publisher(producer=producer)
        await publisher.open()
        await publisher.send("a")
        faults.appends = [lambda: fault]
        with pytest.raises(cogwork.Rejected, match=condition):
            await publisher.send("refused")
        with pytest.raises(cogwork.Rejected, match=condition):
            await publisher.send_batch("bcd")
        with pytest.raises(cogwork.Rejected, match=condition):
            publisher.post("e")
        assert publisher.producer == producer
        await publisher.shut()
        async with mesh.stream("flaky").publisher(producer=producer) as again:
            await again.send_batch("abcd")
        async with mesh.stream("flaky").read(following) as reader:
            assert await bodies(reader, 4) == ["a", "b", "c", "d"]


@story
async def test_an_engine_that_is_away_at_the_start_is_waited_for(
    url: str, faults: flaky.Faults
) -> None:
    faults.opening = 2
    async with cogwork.connect(url) as mesh:
        await mesh.publish("stream/flaky", 1)
        following = (await row_of(mesh, "flaky"))["next"]
        options = {"engine": "flaky:FlakyHost", "retention_records": 5}
        reply = await cogwork.client.management.manage(
            mesh, "CREATE", {"type": "stream", "name": "stream/away"}, options
        )
        assert isinstance(reply.body, dict)
        assert (reply.body["state"], faults.opening) == ("open", 0)
        assert following >= 1


@story
async def test_who_comes_while_a_stream_is_being_opened_gets_each_record_once() -> None:
    flaky.FAULTS.bounds_s = 0.3
    with container(CONFIGURATION) as url:
        async with cogwork.connect(url) as mesh:
            stream = mesh.stream("flaky")
            async with stream.read("first") as reader:
                await stream.append(range(10))
                assert await bodies(reader, 10) == list(range(10))
                await asyncio.sleep(2 * flaky.FAULTS.bounds_s)
                await stream.append([10])
                assert await bodies(reader, 1) == [10]


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
        text = cogwork.Message("text", annotations={"x-opt-snapshot": 1})
        with pytest.raises(cogwork.Rejected, match="binary"):
            await mesh.publish("stream/state", text)


@story
async def test_topics_are_captured_with_wildcards_in_publisher_order(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as other:
        following = (await row_of(mesh, "kept"))["next"]

        async def publish(client: cogwork.Mesh, name: str) -> None:
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
