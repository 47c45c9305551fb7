"""Publisher confirms of AMQP 0-9-1: told together where they can be, never early, never twice."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from basic_client import BasicClient

from cogwork.amqp091.content import BasicProperties, Content, write_command
from cogwork.amqp091.methods import BasicAck, BasicNack, BasicPublish, ChannelClose
from cogwork.dataplane.core import Core

if TYPE_CHECKING:
    from stored_queue import Queue


def published(body: bytes) -> bytes:
    out = bytearray()
    method = BasicPublish(exchange="e", routing_key="k")
    write_command(out, 1, method, Content.of(BasicProperties(), body), 4096)
    return bytes(out)


@pytest.fixture
def client(queue: Queue) -> BasicClient:
    client = BasicClient(queue.core)
    client.channel.is_direct = True
    client.channel.allow(queue.entry, b"e", b"k")
    client.channel.start_confirms()
    return client


def told(client: BasicClient) -> list[tuple[str, int, bool]]:
    found = []
    for method, _ in client.commands():
        assert isinstance(method, BasicAck | BasicNack)
        kind = "ack" if isinstance(method, BasicAck) else "nack"
        found.append((kind, method.delivery_tag, method.multiple))
    return found


def test_a_batch_is_confirmed_with_one_frame(client: BasicClient) -> None:
    client.wire.feed(published(b"a") * 5)
    assert told(client) == [("ack", 5, True)]
    assert (client.frames, client.outcomes) == ([], [])


def test_one_message_is_confirmed_as_one(client: BasicClient) -> None:
    client.wire.feed(published(b"a"))
    assert told(client) == [("ack", 1, False)]


def test_what_a_queue_refuses_is_nacked(queue: Queue, client: BasicClient) -> None:
    queue.store.maximum_length = 2
    queue.store.policy = "reject"
    client.wire.feed(published(b"a") * 4)
    assert told(client) == [("ack", 2, True), ("nack", 4, True)]


def test_nothing_is_confirmed_once_the_channel_is_closed(client: BasicClient) -> None:
    closing = bytearray()
    write_command(closing, 1, ChannelClose(reply_code=200), None, 4096)
    client.closes_channel = True
    client.wire.feed(published(b"a") + closing)
    client.channel.confirm(1, is_taken=True)
    client.wire.feed(b"")
    assert (client.frames, told(client)) == ([bytes(closing)], [])


def test_what_leads_nowhere_is_acked(queue: Queue, client: BasicClient) -> None:
    queue.entry.remove_outlet(queue.store)
    client.wire.feed(published(b"a"))
    assert told(client) == [("ack", 1, False)]


def test_what_waits_is_not_confirmed(queue: Queue, client: BasicClient) -> None:
    queue.store.maximum_length = 1
    client.wire.feed(published(b"a") + published(b"b"))
    assert told(client) == [("ack", 1, False)]
    other = BasicClient(queue.core)
    other.consume(queue.store, no_ack=True)
    assert told(client) == [("ack", 2, False)]


def test_the_owners_messages_and_the_others_have_one_count(client: BasicClient) -> None:
    client.wire.feed(published(b"a"))
    number = client.channel.count_published()
    client.wire.feed(published(b"c"))
    assert number == 2
    assert told(client) == [("ack", 1, False), ("ack", 3, False)]
    client.channel.confirm(2, False)
    assert told(client) == [("nack", 2, False)]
    client.channel.confirm(2, True)
    client.channel.confirm(9, True)
    assert told(client) == []
    client.wire.feed(published(b"d"))
    assert told(client) == [("ack", 4, False)]


@pytest.mark.parametrize("seed", range(30))
def test_each_message_has_the_outcome_that_it_had(seed: int) -> None:
    chance = random.Random(seed)
    client = BasicClient(Core())
    client.channel.start_confirms()
    waiting: list[int] = []
    settled: dict[int, bool] = {}
    heard: dict[int, str] = {}
    for _ in range(chance.randrange(1, 60)):
        waiting += [client.channel.count_published() for _ in range(chance.randrange(6))]
        chance.shuffle(waiting)
        for number in [waiting.pop() for _ in range(chance.randint(0, len(waiting)))]:
            settled[number] = chance.random() < 0.8
            client.channel.confirm(number, settled[number])
        for kind, tag, is_multiple in told(client):
            numbers = range(1, tag + 1) if is_multiple else [tag]
            new = [each for each in numbers if each not in heard]
            assert new, (seed, tag)
            for each in new:
                assert each in settled, (seed, each)
                heard[each] = kind
        assert heard == {n: "ack" if good else "nack" for n, good in settled.items()}, seed
