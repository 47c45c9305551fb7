"""A stream's records at a consumer of AMQP 0-9-1, and what it publishes to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from basic_client import ACCEPTED, REJECTED, RELEASED, BasicClient

from cogwork.amqp091.content import BasicProperties
from cogwork.amqp091.methods import BasicAck, BasicNack
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.stream.blocks import Block
from cogwork.dataplane.stream.feed import Feed
from cogwork.dataplane.stream.intake import Intake, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.amqp091.method import Method

FIRST = 7


class Stream:
    """A stream that a client publishes to, and reads again, one block at a time."""

    def __init__(self) -> None:
        self.core = Core()
        self.intake = Intake(self.core, self)
        self.intake.is_open = True
        self.entry = AddressEntry(self.core, "stream/a", CLOSEST_CODE)
        self.entry.add_outlet(self.intake)
        self.feed = Feed(self.core, self)
        self.client = BasicClient(self.core)
        self.record_batches: list[RecordBatch] = []
        self.wakes = 0

    def on_record_batches(self, record_batches: Sequence[RecordBatch]) -> None:
        self.record_batches += record_batches

    def on_batch(self, feed: Feed) -> None:
        self.wakes += len(feed.woken)
        feed.woken = []

    def block(self) -> Block:
        """Return what was published, as it is sent."""
        found = Block(FIRST)
        for each in self.record_batches:
            found.add(0, each.producer, each.sequence, each.count, each.payload)
        return found

    def published(self, count: int) -> Block:
        for number in range(count):
            self.client.publish(self.entry, b"%d" % number, exchange="e", key="k")
        return self.block()


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_consumer_gets_as_much_as_its_prefetch_and_more_as_it_acknowledges(
    is_alone: bool,
) -> None:
    stream = Stream()
    block = stream.published(5)
    consumer = stream.client.channel.consumer(b"c", prefetch=2)
    consumer.feeder = stream.feed
    following = block.send(consumer, stream.feed, FIRST, is_alone)
    assert following == FIRST + 2
    first, second = stream.client.take()
    assert [each.text for each in (first, second)] == ["0", "1"]
    assert (first.exchange, first.key, first.redelivered) == ("e", "k", False)
    assert [each.properties.headers["x-stream-offset"] for each in (first, second)] == [7, 8]  # type: ignore[index]  # it has headers
    assert block.send(consumer, stream.feed, following, is_alone) == following
    stream.client.settle(second.tag, multiple=True)
    assert stream.wakes == 1
    assert block.send(consumer, stream.feed, following, is_alone) == FIRST + 4
    assert [each.text for each in stream.client.take()] == ["2", "3"]
    assert stream.feed.accepted == 2


def test_a_rejected_or_requeued_delivery_gives_credit_and_does_not_come_again() -> None:
    stream = Stream()
    block = stream.published(3)
    consumer = stream.client.channel.consumer(b"c", prefetch=2)
    consumer.feeder = stream.feed
    following = block.send(consumer, stream.feed, FIRST)
    first, second = stream.client.take()
    stream.client.settle(first.tag, code=REJECTED)
    stream.client.requeue(second.tag)
    assert (stream.feed.rejected, stream.feed.returned) == (1, 1)
    block.send(consumer, stream.feed, following)
    assert [each.text for each in stream.client.take()] == ["2"]


def test_a_channel_that_ends_takes_back_nothing() -> None:
    stream = Stream()
    block = stream.published(1)
    consumer = stream.client.channel.consumer(b"c", prefetch=2)
    consumer.feeder = stream.feed
    block.send(consumer, stream.feed, FIRST)
    stream.client.channel.close()
    assert stream.feed.returned == 1
    assert not stream.client.faults


def test_the_offset_is_that_of_this_stream_whatever_was_published() -> None:
    stream = Stream()
    headers: dict[str, object] = {"x-stream-offset": 99, "x-opt-offset": 98, "a": "b"}
    stream.client.publish(stream.entry, b"x", properties=BasicProperties(headers=headers))
    consumer = stream.client.channel.consumer(b"c", prefetch=2)
    stream.block().send(consumer, stream.feed, FIRST)
    (found,) = stream.client.take()
    assert found.properties.headers is not None
    assert found.properties.headers["x-stream-offset"] == FIRST
    assert found.properties.headers["a"] == "b"
    assert "x-opt-offset" not in found.properties.headers


@pytest.mark.parametrize(
    ("code", "answer"), [(ACCEPTED, BasicAck), (RELEASED, BasicNack), (REJECTED, BasicNack)]
)
def test_a_publisher_hears_ack_only_of_what_was_appended(code: int, answer: type[Method]) -> None:
    """To a queue, released is what nobody wanted; a stream releases what it could not keep."""
    stream = Stream()
    channel = stream.client.channel
    channel.start_confirms()
    number = channel.count_published()
    stream.client.publish(stream.entry, b"x", token=number)
    (record_batch,) = stream.record_batches
    assert stream.client.outcomes == []
    record_batch.settle(code)
    stream.core.flush()
    ((_, told, _),) = stream.client.outcomes
    channel.confirm(number, told in (ACCEPTED, RELEASED))
    assert [type(method) for method, _ in stream.client.commands()] == [answer]
