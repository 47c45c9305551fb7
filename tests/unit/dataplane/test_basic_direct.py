"""Messages and acknowledgements of AMQP 0-9-1 that take their way without Python."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from basic_client import BasicClient

from cogwork.amqp091.content import BasicProperties, Content, write_command
from cogwork.amqp091.methods import BasicAck, BasicNack, BasicPublish, BasicQos
from cogwork.dataplane.addresses.entry import AddressEntry

if TYPE_CHECKING:
    from stored_queue import Queue

FRAME_MAX = 4096
PROPERTIES = BasicProperties(content_type="text/plain", headers={"a": 1}, delivery_mode=1)


@pytest.fixture
def client(queue: Queue) -> BasicClient:
    client = BasicClient(queue.core)
    client.channel.is_direct = True
    client.channel.allow(queue.entry, b"e", b"k")
    return client


def published(
    body: bytes,
    properties: BasicProperties = PROPERTIES,
    *,
    exchange: str = "e",
    key: str = "k",
    mandatory: bool = False,
    channel: int = 1,
) -> bytes:
    out = bytearray()
    method = BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
    write_command(out, channel, method, Content.of(properties, body), FRAME_MAX)
    return bytes(out)


def acknowledged(tag: int, *, multiple: bool = False) -> bytes:
    out = bytearray()
    write_command(out, 1, BasicAck(delivery_tag=tag, multiple=multiple), None, FRAME_MAX)
    return bytes(out)


@pytest.mark.parametrize("size", [0, 1, 100, 4088, 4089, 20_000, 65_536])
def test_an_allowed_message_never_sees_python(queue: Queue, client: BasicClient, size: int) -> None:
    client.wire.allow_frames(FRAME_MAX)
    client.consume(queue.store)
    client.wire.feed(published(b"x" * size))
    assert client.frames == []
    (arrival,) = client.take()
    assert (arrival.exchange, arrival.key, arrival.properties) == ("e", "k", PROPERTIES)
    assert arrival.body == b"x" * size


@pytest.mark.parametrize("step", [1, 2, 7, 100])
def test_it_may_come_in_any_pieces(queue: Queue, client: BasicClient, step: int) -> None:
    octets = published(b"first") + published(b"") + published(b"y" * 5000)
    for at in range(0, len(octets), step):
        client.wire.feed(octets[at : at + step])
    client.consume(queue.store)
    assert [len(arrival.body) for arrival in client.take()] == [5, 0, 5000]
    assert client.frames == []


@pytest.mark.parametrize(
    "octets",
    [
        published(b"a", mandatory=True),
        published(b"a", exchange="f"),
        published(b"a", key="l"),
        published(b"a", channel=2),
        published(b"a", BasicProperties(user_id="guest")),
        published(b"a", BasicProperties(expiration="soon")),
        published(b"a", BasicProperties(reply_to="amq.rabbitmq.reply-to")),
        published(b"a", BasicProperties(headers={"CC": ["other"]})),
        published(b"a", BasicProperties(headers={"a": "b"})).replace(b"S\0\0\0\1b", b"S\0\0\0\2b"),
        published(b"z" * 65_537),
    ],
)
def test_others_go_to_python_whole(queue: Queue, client: BasicClient, octets: bytes) -> None:
    client.wire.feed(octets)
    assert b"".join(client.frames) == octets
    assert queue.store.depth == 0


def test_a_name_that_begins_like_a_pseudo_queue_is_an_ordinary_one(
    queue: Queue, client: BasicClient
) -> None:
    client.wire.feed(published(b"a", BasicProperties(reply_to="amq.rabbitmq.reply")))
    assert queue.store.depth == 1


def test_the_order_of_frames_stays(
    queue: Queue, client: BasicClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bytes]] = []
    monkeypatch.setattr(
        client, "on_frames", lambda octets: seen.append((queue.store.depth, octets))
    )
    qos = bytearray()
    write_command(qos, 1, BasicQos(prefetch_count=1), None, FRAME_MAX)
    client.wire.feed(published(b"a") + bytes(qos) + published(b"b") + bytes(qos) * 2)
    assert seen == [(1, bytes(qos)), (2, bytes(qos) * 2)]


def test_a_message_whose_start_python_has_goes_there_whole(
    queue: Queue, client: BasicClient
) -> None:
    client.channel.is_direct = False
    octets = published(b"a" * 5000)
    client.wire.feed(octets[:40])
    client.channel.is_direct = True
    client.wire.feed(octets[40:] + published(b"b"))
    assert b"".join(client.frames) == octets
    assert queue.store.depth == 1


def test_an_exchange_may_be_allowed_with_all_keys(queue: Queue, client: BasicClient) -> None:
    client.channel.allow(queue.entry, b"f")
    client.wire.feed(published(b"a", exchange="f", key="1") + published(b"b", exchange="f", key=""))
    assert (client.frames, queue.store.depth) == ([], 2)


def test_nothing_goes_to_an_address_that_has_gone(queue: Queue, client: BasicClient) -> None:
    client.wire.feed(published(b"a"))
    other = AddressEntry(queue.core, "exchange/f", 1)
    client.channel.allow(other, b"e", b"k")
    client.channel.forget_allowed()
    client.wire.feed(published(b"b"))
    assert b"".join(client.frames) == published(b"b")
    client.channel.allow(other, b"e", b"k")
    other.close()
    client.wire.feed(published(b"c"))
    assert b"".join(client.frames) == published(b"b") + published(b"c")


def test_acknowledgements_need_no_python(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store, prefetch=2)
    client.wire.feed(b"".join(published(text) for text in (b"a", b"b", b"c", b"d")))
    assert [arrival.text for arrival in client.take()] == ["a", "b"]
    client.wire.feed(acknowledged(1))
    assert [arrival.text for arrival in client.take()] == ["c"]
    client.wire.feed(acknowledged(3, multiple=True))
    assert [arrival.text for arrival in client.take()] == ["d"]
    client.wire.feed(acknowledged(0, multiple=True))
    assert (queue.store.depth, client.frames) == (0, [])


def test_unknown_tags_and_other_methods_go_to_python(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    client.wire.feed(published(b"a"))
    nack = bytearray()
    write_command(nack, 1, BasicNack(delivery_tag=1), None, FRAME_MAX)
    for octets in (acknowledged(2), acknowledged(0), acknowledged(5, multiple=True), bytes(nack)):
        client.frames.clear()
        client.wire.feed(octets)
        assert client.frames == [octets]
    assert queue.store.depth == 1


def test_a_closed_channel_takes_nothing(queue: Queue, client: BasicClient) -> None:
    client.channel.close()
    client.wire.feed(published(b"a"))
    assert b"".join(client.frames) == published(b"a")


@pytest.mark.parametrize("seed", range(20))
def test_damage_never_gets_past_python(queue: Queue, client: BasicClient, seed: int) -> None:
    """Whatever is changed in a message: it is taken whole, or Python sees every octet."""
    chance = random.Random(seed)
    for _ in range(100):
        octets = bytearray(published(chance.randbytes(chance.randrange(60))))
        octets[chance.randrange(len(octets))] = chance.randrange(256)
        client = BasicClient(queue.core)
        client.channel.is_direct = True
        client.channel.allow(queue.entry, b"e", b"k")
        before = queue.store.depth
        client.wire.feed(bytes(octets))
        taken = queue.store.depth - before
        seen = b"".join(client.frames)
        assert client.faults == [], seed
        assert taken in {0, 1}, seed
        if taken:
            assert seen == b"", seed
        else:
            assert bytes(octets).startswith(seen), seed
