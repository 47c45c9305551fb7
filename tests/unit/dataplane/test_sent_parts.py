"""Messages from within the process that lie in parts, and are not joined before they leave."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from wires import Broker, Consumer

FRAME_BYTES = 512


def parts_of(seed: int, size_bytes: int) -> tuple[bytes, ...]:
    """Cut octets that are all of them different somewhere, also where nothing is between."""
    rng = random.Random(seed)
    whole = rng.randbytes(size_bytes)
    cuts = sorted(rng.randint(0, size_bytes) for _ in range(rng.randint(0, 12)))
    return tuple(whole[a:b] for a, b in zip([0, *cuts], [*cuts, size_bytes], strict=True))


def consumer_of(broker: Broker, credit: int = 5, *, frame_bytes: int = FRAME_BYTES) -> Consumer:
    return broker.peer(max_frame_size=frame_bytes).consumer("one/parts", credit=credit)


def send(broker: Broker, consumer: Consumer, parts: tuple[bytes, ...], *, settled: bool) -> bool:
    link = broker.links[consumer.name]
    assert isinstance(link, OutgoingLink)
    sent = link.send_parts(broker.node, 7, parts, settled)
    broker.settle_down()
    return sent


@pytest.mark.parametrize("seed", range(20))
def test_they_leave_as_one_message(broker: Broker, seed: int) -> None:
    consumer = consumer_of(broker)
    bodies = []
    for number, size_bytes in enumerate((0, 1, FRAME_BYTES // 2, 4 * FRAME_BYTES)):
        parts = parts_of(seed * 4 + number, size_bytes)
        bodies.append(b"".join(parts))
        assert send(broker, consumer, parts, settled=number % 2 == 0)
    assert consumer.bodies == bodies
    consumer.accept_all()
    broker.assert_clean()


def test_what_the_window_does_not_let_go_follows_in_order(broker: Broker) -> None:
    consumer = consumer_of(broker)
    consumer.channel.flow(incoming_window=2)
    parts = parts_of(1, 5 * FRAME_BYTES)
    assert send(broker, consumer, parts, settled=True)
    assert consumer.bodies == []
    assert not send(broker, consumer, (b"next",), settled=True), "the first one is not through"
    consumer.channel.flow(incoming_window=100)
    assert consumer.bodies == [b"".join(parts)]
    assert send(broker, consumer, (b"ne", b"xt"), settled=True)
    assert consumer.bodies == [b"".join(parts), b"next"]
    broker.assert_clean()


def test_without_credit_nothing_leaves(broker: Broker) -> None:
    consumer = consumer_of(broker, credit=1)
    assert send(broker, consumer, (b"a", b"b"), settled=True)
    assert not send(broker, consumer, (b"c",), settled=True)
    assert consumer.bodies == [b"ab"]


@pytest.mark.parametrize("part", [None, "text", bytearray(b"x"), memoryview(b"x")])
def test_only_octets_that_cannot_change_are_taken(broker: Broker, part: object) -> None:
    consumer = consumer_of(broker)
    with pytest.raises(TypeError, match="bytes"):
        send(broker, consumer, (b"x", part), settled=True)  # type: ignore[arg-type]  # what is wrong
    assert consumer.arrivals == []
