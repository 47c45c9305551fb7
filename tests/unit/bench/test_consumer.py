"""The receiving role: it grants credit, settles, and misses nothing that is wrong."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp.performatives import Close, Disposition, Flow
from cogwork.bench.consumer import Consumer
from cogwork.bench.peer import Link, Peer
from cogwork.bench.wire import FAILED, OVER

from .wires import Bench, feed, frame, numbered, performatives, take


def consumer(credit: int = 10) -> Consumer:
    return Consumer(
        cast("Peer", Bench()), [Link(handle=5, peer_handle=0)], producers=2, credit=credit
    )


def test_credit_goes_out_first_and_is_topped_up_below_half_of_the_window() -> None:
    wire = consumer(credit=10)
    (first,) = performatives(take(wire))
    assert isinstance(first, Flow)
    assert (first.handle, first.link_credit, first.delivery_count) == (5, 10, 0)
    for number in range(4):
        feed(wire, numbered(number))
    assert take(wire) == b""
    feed(wire, numbered(4))
    (topped_up,) = performatives(take(wire))
    assert isinstance(topped_up, Flow)
    assert (topped_up.link_credit, topped_up.delivery_count) == (10, 5)
    assert topped_up.next_incoming_id == 5


def test_unsettled_deliveries_of_one_read_are_accepted_in_ranges() -> None:
    wire = consumer(credit=100)
    take(wire)
    numbers = [(0, 7), (1, 8), (2, 9), (3, 20)]
    feed(wire, b"".join(numbered(n, delivery_id=i, settled=False) for n, i in numbers))
    settled = performatives(take(wire))
    assert [(each.first, each.last) for each in settled if isinstance(each, Disposition)] == [
        (7, 9),
        (20, 20),
    ]


def test_a_gap_a_repetition_and_a_late_one_are_counted() -> None:
    wire = consumer(credit=100)
    take(wire)
    for number in (0, 1, 1, 4, 3):
        feed(wire, numbered(number))
    assert (wire.delivered, wire.missing, wire.repeated) == (5, 2, 2)


def test_each_producer_has_its_own_numbers() -> None:
    wire = consumer(credit=100)
    take(wire)
    second = 1 << 48
    for delivery_id, word in enumerate((0, second, second + 1, 1)):
        feed(wire, numbered(word, delivery_id=delivery_id))
    assert (wire.delivered, wire.missing, wire.repeated) == (4, 0, 0)


def test_a_delivery_in_several_frames_counts_once() -> None:
    wire = consumer(credit=100)
    take(wire)
    feed(wire, numbered(0, more=True))
    assert wire.delivered == 0
    feed(wire, numbered(0))
    assert (wire.delivered, wire.repeated) == (1, 0)


def test_the_target_ends_the_role() -> None:
    wire = consumer()
    wire.aim(2)
    take(wire)
    assert feed(wire, numbered(0)) != OVER
    assert feed(wire, numbered(1)) == OVER


@pytest.mark.parametrize(
    ("octets", "fault"),
    [
        (numbered(2 << 48, delivery_id=0), "a producer of another run"),
        (frame(Close()), "the peer ended the link, session or connection"),
        (b"\x00\x00\x00\x04\x02\x00\x00\x00", "malformed"),
        (b"\x00\x00\x00\x0d\x02\x00\x00\x00\x00\x53\x14\xc0\xff", "malformed"),
    ],
)
def test_what_the_peer_must_not_do_is_a_fault(octets: bytes, fault: str) -> None:
    wire = consumer()
    take(wire)
    assert feed(wire, octets) == FAILED
    assert fault in wire.fault


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_crash_it(chunks: list[bytes]) -> None:
    wire = consumer()
    for chunk in chunks:
        if (
            feed(wire, len(chunk).to_bytes(4, "big") + b"\x02\x00\x00\x00\x00\x53\x14" + chunk)
            == FAILED
        ):
            return


@given(st.data())
def test_no_damaged_transfer_crashes_it(data: st.DataObject) -> None:
    octets = bytearray(numbered(0))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(8, len(octets) - 1))] = data.draw(st.integers(0, 255))
    feed(consumer(), bytes(octets))
