"""Streams whose connections break and whose engine fails: nothing is missing or twice."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import flaky
import pytest

import cogwork
from cogwork.client.errors import LinkRefused
from cogwork.client.requests.management import manage
from cogwork.plugin.engine.errors import Busy, OutOfSequence, SequenceReused, Unavailable, Unknown
from cogwork.testing import container

from .proxy import FaultyProxy
from .stories import QUICKLY, eventually, story
from .stream_records import CONFIGURATION, bodies, created, row_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from cogwork.plugin.engine.errors import ConsensusError


@pytest.fixture(autouse=True)
def faults() -> Iterator[flaky.Faults]:
    """Nothing goes wrong but what a test asks for."""
    yield flaky.FAULTS
    vars(flaky.FAULTS).update(vars(flaky.Faults()))


@story
async def test_readers_and_publishers_survive_cuts_with_nothing_missing_or_twice(url: str) -> None:
    count = 5_000
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
    ):
        stream = await created(other, "cut")

        async def publish() -> None:
            async with client.stream("cut").publisher() as publisher:
                for number in range(count):
                    publisher.post(number)
                    if number % 100 == 0:
                        await asyncio.sleep(0.005)
                await publisher.flush()

        async def cut() -> None:
            for _ in range(5):
                await asyncio.sleep(0.05)
                proxy.cut()

        async with client.stream("cut").read("first", credit=500) as reader:
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
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
    ):
        stream = await created(other, "doubt")
        async with client.stream("doubt").publisher() as publisher:
            proxy.hold_replies()
            post = publisher.post("once")
            while (await row_of(other, "doubt"))["next"] != 1:
                await asyncio.sleep(0.01)
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
    async with cogwork.connect(url) as client:
        stream = client.stream("flaky")
        following = (await row_of(client, "flaky"))["next"]
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
    async with cogwork.connect(url) as client:
        faults.appends = [lambda: Unknown("x"), lambda: SequenceReused(0), None]
        with pytest.raises(cogwork.InDoubt, match="stream/flaky: the stream may have the message"):
            await client.publish("stream/flaky", 1)
        with pytest.raises(cogwork.Rejected) as refused:
            await client.publish("stream/flaky", 2)
        assert refused.value.condition == "cogwork:sequence-reused"
        await client.publish("stream/flaky", 3)
        stamped = cogwork.Message(4, annotations={"x-opt-producer": b"me"})
        with pytest.raises(cogwork.Rejected, match="x-opt-producer without x-opt-sequence"):
            await client.publish("stream/flaky", stamped)


@story
async def test_any_client_may_count_its_messages(url: str) -> None:
    async with cogwork.connect(url) as client:
        stream = await created(client, "counted")

        def stamped(body: str, sequence: int) -> cogwork.Message:
            return cogwork.Message(
                body, annotations={"x-opt-producer": "me", "x-opt-sequence": sequence}
            )

        await client.publish("stream/counted", stamped("a", 0))
        await client.publish("stream/counted", stamped("a", 0))
        await client.publish("stream/counted", stamped("b", 1))
        with pytest.raises(cogwork.Rejected) as reused:
            await client.publish("stream/counted", stamped("other", 1))
        with pytest.raises(cogwork.Rejected) as gap:
            await client.publish("stream/counted", stamped("d", 3))
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
    async with cogwork.connect(url) as client:
        stream = client.stream("flaky")
        following = (await row_of(client, "flaky"))["next"]
        await stream.append([b"x" * 300_000] * 20)  # more than what is kept of the live end
        faults.lagging = 2
        async with stream.read(following) as reader:
            assert await bodies(reader, 20) == [b"x" * 300_000] * 20
        assert faults.lagging == 0


@story
async def test_our_client_goes_on_where_one_message_is_refused(
    url: str, faults: flaky.Faults
) -> None:
    async with cogwork.connect(url) as client:
        following = (await row_of(client, "flaky"))["next"]
        async with client.stream("flaky").publisher() as publisher:
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
        async with client.stream("flaky").read(following) as reader:
            assert await bodies(reader, 4) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("fault", "condition"),
    [(SequenceReused(1), "cogwork:sequence-reused"), (OutOfSequence(0, 1), "out-of-sequence")],
)
@story
async def test_a_producer_whose_id_was_given_never_takes_another(
    url: str, faults: flaky.Faults, fault: ConsensusError, condition: str
) -> None:
    async with cogwork.connect(url) as client:
        following = (await row_of(client, "flaky"))["next"]
        producer = f"kept {condition}".encode()
        publisher = client.stream("flaky").publisher(producer=producer)
        await publisher.open()
        await publisher.send("a")
        faults.appends = [lambda: fault]
        with pytest.raises(cogwork.Rejected, match=condition):
            await publisher.send("refused")
        with pytest.raises(cogwork.Rejected, match=condition):
            await publisher.send_batch(list("bcd"))
        with pytest.raises(cogwork.Rejected, match=condition):
            publisher.post("e")
        assert publisher.producer == producer
        await publisher.shut()
        async with client.stream("flaky").publisher(producer=producer) as again:
            await again.send_batch(list("abcd"))
        async with client.stream("flaky").read(following) as reader:
            assert await bodies(reader, 4) == ["a", "b", "c", "d"]


@story
async def test_what_a_stream_is_to_get_in_order_cannot_be_taken_back(url: str) -> None:
    async with FaultyProxy(url) as proxy, cogwork.connect(proxy.url, retry=QUICKLY) as client:
        stream = await created(client, "in-order")
        async with stream.publisher(producer=b"in-order") as publisher:
            await publisher.send(0)
            proxy.refuse(True)
            proxy.cut()
            await eventually(lambda: not client.is_connected, "the loss is noticed")
            posts = [publisher.post(number) for number in (1, 2)]
            assert not posts[0].withdraw()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await publisher.send(3)
            proxy.refuse(False)
            for post in posts:
                await post
            await publisher.send(4)
        async with stream.read("first") as reader:
            assert await bodies(reader, 5) == list(range(5))


@story
async def test_an_engine_that_is_away_at_the_start_is_waited_for(
    url: str, faults: flaky.Faults
) -> None:
    faults.opening = 2
    async with cogwork.connect(url) as client:
        await client.publish("stream/flaky", 1)
        following = (await row_of(client, "flaky"))["next"]
        options = {"engine": "flaky:FlakyHost", "retention_records": 5}
        reply = await manage(client, "CREATE", {"type": "stream", "name": "stream/away"}, options)
        assert isinstance(reply.body, dict)
        assert (reply.body["state"], faults.opening) == ("open", 0)
        assert following >= 1


@story
async def test_who_comes_while_a_stream_is_being_opened_gets_each_record_once() -> None:
    flaky.FAULTS.bounds_s = 0.3
    with container(CONFIGURATION) as url:
        async with cogwork.connect(url) as client:
            stream = client.stream("flaky")
            async with stream.read("first") as reader:
                await stream.append(range(10))
                assert await bodies(reader, 10) == list(range(10))
                await asyncio.sleep(2 * flaky.FAULTS.bounds_s)
                await stream.append([10])
                assert await bodies(reader, 1) == [10]


@story
async def test_what_can_never_open_takes_neither_readers_nor_publishers() -> None:
    never = """
    [[stream]]
    address = "stream/ne:ver"
    engine = "flaky:FlakyHost"
    """
    with container(never) as running:
        async with cogwork.connect(running) as client, client.stream("ne:ver") as stream:
            with pytest.raises(LinkRefused, match="has no colon"):
                await stream.append([1])
            with pytest.raises(LinkRefused, match="has no colon"):
                await anext(aiter(stream.read("first")))


@story
async def test_links_that_wait_for_a_stream_end_when_it_cannot_be_opened_after_all() -> None:
    flaky.FAULTS.opening, flaky.FAULTS.refusal = 5, "the server has other options for it"
    with container(CONFIGURATION) as running:
        async with cogwork.connect(running) as client, client.publisher("stream/flaky") as stock:
            assert (await row_of(client, "flaky"))["state"] == "opening"
            by_link = stock.post("by a link")
            relayed = asyncio.ensure_future(client.publish("stream/flaky", 1))
            async with client.stream("flaky").read("first") as reader:
                with pytest.raises(cogwork.LinkDetached, match="has other options"):
                    await anext(aiter(reader))
            for rejected in (asyncio.wait_for(by_link, 5), asyncio.wait_for(relayed, 5)):
                with pytest.raises(cogwork.Rejected, match="has other options"):
                    await rejected
            with pytest.raises(cogwork.LinkDetached, match="has other options"):
                await stock.send("the link has ended")
            with pytest.raises(cogwork.Rejected, match="stream/flaky: the server has other"):
                await asyncio.wait_for(client.publish("stream/flaky", 2), 5)
            row = await row_of(client, "flaky")
            assert (row["state"], row["rejected"], row["pending_bytes"]) == ("failed", 3, 0)


@story
async def test_a_stream_takes_messages_whose_engine_answers_nonsense_when_it_is_looked_at() -> None:
    flaky.FAULTS.nonsense = True
    with container(CONFIGURATION) as running:
        async with cogwork.connect(running) as client:
            await asyncio.wait_for(client.publish("stream/flaky", "taken"), 5)
            async with asyncio.timeout(30):
                while "KeyError('bounds')" not in str((await row_of(client, "flaky"))["problem"]):
                    await asyncio.sleep(0.1)
            flaky.FAULTS.nonsense = False
            async with asyncio.timeout(30):
                while (await row_of(client, "flaky"))["problem"] is not None:
                    await asyncio.sleep(0.1)
            assert (await row_of(client, "flaky"))["state"] == "open"


@story
async def test_what_is_sent_while_a_stream_is_being_opened_waits_for_ten_seconds() -> None:
    flaky.FAULTS.opening = 1_000_000
    with container(CONFIGURATION) as running:
        async with cogwork.connect(running) as client, client.publisher("stream/flaky") as stock:
            began_s = time.monotonic()
            posts = [stock.post(number) for number in range(5)]
            relayed = asyncio.ensure_future(client.publish("stream/flaky", "by the relay"))
            for post in posts:
                with pytest.raises(cogwork.Released, match="is not in the stream"):
                    await post
            with pytest.raises(
                cogwork.Released, match="stream/flaky: the message is not in the stream"
            ):
                await relayed
            assert 8 < time.monotonic() - began_s < 12
            row = await row_of(client, "flaky")
            assert (row["state"], row["returned"], row["pending_bytes"]) == ("opening", 6, 0)
            later = stock.post("later")
            flaky.FAULTS.opening = 0
            await later
            async with client.stream("flaky").read("first") as reader:
                assert await bodies(reader, 1) == ["later"]


@story
async def test_what_waits_when_a_container_stops_is_given_back() -> None:
    flaky.FAULTS.opening = 1_000_000
    running = container(CONFIGURATION)
    url = await asyncio.to_thread(lambda: running.start().url)
    try:
        async with cogwork.connect(url) as client, client.publisher("stream/flaky") as stock:
            relayed = asyncio.ensure_future(client.publish("stream/flaky", "by the relay"))
            posts: list[Awaitable[None]] = [stock.post(number) for number in range(5)]
            posts.append(relayed)
            while (await row_of(client, "flaky"))["in"] < len(posts):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(running.stop)
            for post in posts:
                with pytest.raises(cogwork.Released, match="is not in the stream"):
                    await asyncio.wait_for(post, 5)
    finally:
        await asyncio.to_thread(running.stop)
