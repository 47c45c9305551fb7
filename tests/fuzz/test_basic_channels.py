"""Hostile octets at the compiled half of AMQP 0-9-1, which takes some frames without Python.

Frames of publishes and acknowledgements, damaged here and there, come in any pieces. Whatever they
say, nothing fails, and a channel that ends gives back all that it has.
"""

from __future__ import annotations

import random

import pytest
from basic_client import BasicClient

from cogwork.amqp091.content import BasicProperties, Content, write_command
from cogwork.amqp091.methods import BasicAck, BasicPublish
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import Store

HISTORIES = 60
FRAME_MAXIMA = (4096, 8192, 131_072)
HEADERS: tuple[dict[str, object] | None, ...] = (
    None,
    {"a": [1, {"b": "c"}], "d": 2.5},
    {"CC": ["other"]},
)


def content(chance: random.Random) -> Content:
    properties = BasicProperties(
        headers=chance.choice(HEADERS),
        message_id=chance.choice([None, "m"]),
        expiration=chance.choice([None, "5"]),
    )
    return Content.of(properties, chance.randbytes(chance.choice([0, 1, 50, 5000])))


def conversation(chance: random.Random) -> bytes:
    out = bytearray()
    for _ in range(chance.randrange(1, 12)):
        if chance.random() < 0.6:
            method = BasicPublish(
                exchange=chance.choice("efg"),
                routing_key=chance.choice("kl"),
                mandatory=chance.random() < 0.1,
            )
            write_command(out, 1, method, content(chance), chance.choice(FRAME_MAXIMA))
        else:
            ack = BasicAck(delivery_tag=chance.randrange(6), multiple=chance.random() < 0.5)
            write_command(out, 1, ack, None, 4096)
    return bytes(out)


def damaged(octets: bytes, chance: random.Random) -> bytes:
    found = bytearray(octets)
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(max(len(found), 1))
        match chance.randrange(3):
            case 0:
                found[at : at + 1] = chance.randbytes(1)
            case 1:
                del found[at : at + chance.randrange(1, 9)]
            case _:
                found[at:at] = chance.randbytes(chance.randrange(1, 5))
    return bytes(found)


def suffer(chance: random.Random, told: str) -> None:
    core = Core()
    store = Store(core)
    entry = AddressEntry(core, "queue/a", CLOSEST_CODE)
    entry.add_outlet(store)
    store.inlet = entry
    client = BasicClient(core, chance.choice(FRAME_MAXIMA))
    client.wire.allow_frames(chance.choice(FRAME_MAXIMA))
    client.channel.is_direct = True
    client.channel.allow(entry, b"e", b"k")
    client.channel.allow(entry, b"f")
    if chance.random() < 0.5:
        client.channel.start_confirms()
    client.consume(store, no_ack=chance.random() < 0.5, prefetch=chance.choice([0, 1, 5]))
    octets = damaged(conversation(chance), chance)
    while octets:
        size = chance.choice([1, 3, 20, 1000, 100_000])
        client.wire.feed(octets[:size])
        octets = octets[size:]
        if chance.random() < 0.1:
            client.channel.requeue(0, True)
    core.flush()
    client.wire.take_output()
    assert client.faults == [], told
    client.channel.close()
    core.flush()
    assert client.channel.unsettled == 0, told


@pytest.mark.parametrize("seed", range(20))
def test_damaged_frames_harm_nothing(seed: int) -> None:
    for number in range(HISTORIES):
        suffer(random.Random(f"{seed}.{number}"), f"seed {seed}, history {number}")
