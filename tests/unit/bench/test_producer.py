"""The sending role: within credit and window, whatever the peer grants and when."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp.outcomes import Accepted, Released
from cogwork.amqp.performatives import Disposition, Flow, Role, Transfer
from cogwork.bench.image import delivery
from cogwork.bench.peer import Link, Peer
from cogwork.bench.producer import Producer
from cogwork.bench.wire import OVER

from .wires import Bench, feed, flow, frame, performatives, take


def producer(size: int = 100, *, settled: bool = True, window: int = 1000) -> Producer:
    image = delivery(0, size, 512, settled=settled)
    return Producer(cast("Peer", Bench(window=window)), Link(0, 0), image, number=0)


def sent(octets: bytes) -> list[Transfer]:
    return [each for each in performatives(octets) if isinstance(each, Transfer)]


def test_nothing_is_sent_without_credit() -> None:
    wire = producer()
    assert take(wire) == b""
    feed(wire, flow(credit=3))
    assert [each.delivery_id for each in sent(take(wire))] == [0, 1, 2]


def test_credit_is_counted_from_what_the_peer_has_seen() -> None:
    wire = producer()
    feed(wire, flow(credit=5))
    take(wire)
    feed(wire, flow(credit=5, delivery_count=2))
    assert len(sent(take(wire))) == 2


def test_a_closed_window_stops_between_two_frames_of_a_delivery() -> None:
    wire = producer(size=1500, window=2)
    feed(wire, flow(credit=5, window=2))
    first = sent(take(wire))
    assert [each.more for each in first] == [True, True]
    feed(wire, flow(credit=5, delivery_count=0, window=10, seen=2))
    rest = sent(take(wire))
    assert [each.more for each in rest[:2]] == [True, False]
    assert rest[0].delivery_id is None


def test_outcomes_are_counted_and_end_the_role() -> None:
    wire = producer(settled=False)
    wire.aim(4)
    feed(wire, flow(credit=10))
    assert len(sent(take(wire))) == 4
    accepted = Disposition(role=Role.RECEIVER, first=0, last=2, settled=True, state=Accepted())
    assert feed(wire, frame(accepted)) != OVER
    released = Disposition(role=Role.RECEIVER, first=3, settled=True, state=Released())
    assert feed(wire, frame(released)) == OVER
    assert (wire.accepted, wire.released, wire.resolved) == (3, 1, 4)


def test_an_echo_is_answered() -> None:
    wire = producer()
    feed(
        wire,
        frame(
            Flow(
                next_incoming_id=0,
                incoming_window=10,
                next_outgoing_id=0,
                outgoing_window=0,
                echo=True,
            )
        ),
    )
    (answer,) = performatives(take(wire))
    assert isinstance(answer, Flow)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), max_size=20), st.booleans())
def test_credit_and_window_are_never_passed(grants: list[tuple[int, int]], is_large: bool) -> None:
    wire = producer(size=1500 if is_large else 100, window=0)
    frames = deliveries = 0
    for credit, window in grants:
        feed(wire, flow(credit, delivery_count=deliveries, window=window, seen=frames))
        transfers = sent(take(wire))
        began = sum(each.delivery_id is not None for each in transfers)
        assert len(transfers) <= window
        assert began <= credit
        frames += len(transfers)
        deliveries += began
