"""Settlement: both modes, all outcomes, ranges, what spills, what is resent (AMQP 1.0 §2.6.12)."""

import pytest
from wires import Broker, frame

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import (
    Close,
    Detach,
    Disposition,
    End,
    ReceiverSettleMode,
    Role,
    Transfer,
)
from cogwork.amqp.types import Symbol

STATES = [
    Accepted(),
    Rejected(),
    Rejected(error=AmqpError(condition=Symbol("my:error"), description="no", info=None)),
    Rejected(error=AmqpError(condition=Symbol("my:error"), description="x" * 200)),
    Rejected(error=AmqpError(condition=Symbol("my:e"), info={Symbol("key"): "value"})),
    Released(),
    Modified(),
    Modified(delivery_failed=True),
    Modified(undeliverable_here=True, message_annotations={Symbol("x-opt-a"): 1}),
]


@pytest.mark.parametrize("state", STATES, ids=repr)
@pytest.mark.parametrize("settled", [True, False])
def test_every_outcome_reaches_the_publisher_with_its_fields(
    state: DeliveryState, settled: bool
) -> None:
    broker = Broker()
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher.send()
    publisher.send()
    consumer.settle(state, settled=settled)
    assert publisher.outcomes == {1: state}
    assert publisher.answers == {1: 1}
    assert consumer.end.unsettled == 1
    if not settled:
        assert consumer.confirmed[1].settled
        assert consumer.confirmed[1].state == state
    consumer.channel.settle(0, state=Accepted())
    broker.assert_clean()


def test_an_error_too_long_for_the_publishers_frames_loses_its_text(broker: Broker) -> None:
    publisher = broker.peer(max_frame_size=512).publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher.send()
    consumer.settle(Rejected(error=AmqpError(condition=Symbol("my:error"), description="x" * 1000)))
    assert publisher.outcomes == {0: Rejected()}
    publisher.send()
    consumer.settle(Modified(message_annotations={Symbol("x-opt-a"): "x" * 1000}))
    assert type(publisher.outcomes[1]) is Modified


@pytest.mark.parametrize(
    "state",
    [
        b"\x00\x53\x25\xc0\x03\x01\xff\xff",
        b"\x00\x53\x25\xc0\x08\x01\x00\x53\x1d\xc0\x03\x01\x40",
        b"\x00\x53\x27\xc0\x02\x01\x43",
        b"\x00\x53\x25\xd0\x00\x00\x00\x08\xff\xff\xff\xff\x40\x40\x40\x40",
    ],
)
def test_a_malformed_outcome_is_its_senders_fault_alone(broker: Broker, state: bytes) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher.send()
    said = frame(Disposition(role=Role.RECEIVER, first=0, settled=True, state=Accepted()))
    head, tail = said.split(b"\x00\x53\x24\x45")
    size = len(said) - 4 + len(state)
    said = size.to_bytes(4, "big") + head[4:12] + bytes([head[12] + len(state) - 4])
    consumer.channel.peer.feed(said + head[13:] + state + tail)
    close = consumer.channel.peer.close_error
    assert close is not None
    assert close.condition == Condition.DECODE_ERROR
    assert publisher.outcomes == {0: Modified(delivery_failed=True)}


def test_one_disposition_settles_a_whole_range(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    for _ in range(50):
        publisher.send()
    consumer.channel.settle(0, 49, Accepted())
    assert publisher.outcomes == dict.fromkeys(range(50), Accepted())
    said = publisher.channel.peer.of(Disposition)
    assert [(d.first, d.last) for d in said] == [(0, 49)]


def test_a_range_beyond_what_was_sent_settles_what_was(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send()
    consumer.channel.settle(0, 2**31 - 1, Accepted())
    assert publisher.outcomes == {0: Accepted()}
    publisher.send()
    assert publisher.outcomes == {0: Accepted()}, "what comes later is not settled in advance"
    consumer.channel.settle(2**32 - 1, 5, Released())
    assert publisher.outcomes == {0: Accepted(), 1: Released()}


def test_a_range_that_runs_backwards_ends_the_session(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=100)
    consumer.channel.settle(5, 4, Accepted())
    assert consumer.channel.ended is not None
    assert consumer.channel.ended.error is not None
    assert consumer.channel.ended.error.condition == Condition.INVALID_FIELD


def test_settling_twice_counts_once(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send()
    consumer.settle(Accepted(), settled=False)
    consumer.settle(Released(), settled=False)
    consumer.settle(Rejected())
    assert publisher.outcomes == {0: Accepted()}
    assert publisher.answers == {0: 1}
    assert consumer.end.unsettled == 0


def test_the_received_state_is_no_outcome(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send()
    consumer.settle(Received(section_number=1, section_offset=2), settled=False)
    assert publisher.outcomes == {}
    assert consumer.end.unsettled == 1
    consumer.settle(Accepted())
    assert publisher.outcomes == {0: Accepted()}


@pytest.mark.parametrize("state", [None, Received(section_number=1, section_offset=2)])
def test_settled_without_an_outcome_is_the_default_outcome(
    broker: Broker, state: DeliveryState
) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send()
    consumer.settle(state)
    assert publisher.outcomes == {0: Released()}
    assert publisher.end.unsettled == 0


def test_unsettled_without_a_state_says_nothing(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send()
    consumer.settle(None, settled=False)
    assert publisher.outcomes == {}
    assert consumer.end.unsettled == 1


def test_a_publisher_that_settles_second_is_not_told_settled(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a", rcv_settle_mode=ReceiverSettleMode.SECOND)
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send()
    consumer.accept()
    assert [d.settled for d in publisher.channel.peer.of(Disposition)] == [False]
    publisher.channel.settle(0, state=Accepted(), role=Role.SENDER)
    assert publisher.channel.ended is None
    broker.assert_clean()


def test_a_consumer_that_wants_settled_gets_settled_and_the_publisher_is_told(
    broker: Broker,
) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100, presettled=True)
    publisher.send()
    publisher.send(b"x" * 200, pieces=3)
    assert [arrival.settled for arrival in consumer.arrivals] == [True, True]
    assert publisher.outcomes == {0: Accepted(), 1: Accepted()}
    broker.assert_clean()


def test_settled_and_unsettled_deliveries_mix_on_one_link(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1000)
    for number in range(90):
        publisher.send(settled=number % 3 != 0)
    assert [arrival.settled for arrival in consumer.arrivals] == [n % 3 != 0 for n in range(90)]
    consumer.accept_all()
    assert publisher.outcomes == dict.fromkeys(range(0, 90, 3), Accepted())
    broker.assert_clean()


@pytest.mark.parametrize("settled_between", [10, 63, 64, 127, 128, 129, 300, 5000])
def test_one_unsettled_delivery_outlives_any_number_of_settled_ones(settled_between: int) -> None:
    """They share the consumer's session, so delivery-ids run on while the ring's start waits."""
    broker = Broker(window=10_000)
    receiver = broker.peer()
    held = receiver.consumer("one/a", credit=10_000)
    passing = receiver.consumer("one/b", credit=10_000)
    sender = broker.peer()
    publisher, settling = sender.publisher("one/a"), sender.publisher("one/b")
    first = publisher.send()
    for _ in range(settled_between):
        settling.send(settled=True)
    second = publisher.send()
    assert len(passing.arrivals) == settled_between
    assert receiver.connection.sessions[0].end.unsettled == 2
    held.accept_all()
    assert publisher.outcomes == {first: Accepted(), second: Accepted()}
    assert held.end.unsettled == 0
    broker.assert_clean()


def test_more_unsettled_deliveries_than_the_ring_holds_spill() -> None:
    broker = Broker(window=100_000)
    receiver = broker.peer()
    consumer = receiver.consumer("one/a", credit=200_000)
    publisher = broker.peer(session_window_frames=200_000).publisher("one/a")
    count = 66_000
    messages = [
        frame(
            Transfer(handle=0, delivery_id=n, delivery_tag=n.to_bytes(4, "big"), settled=False),
            b"m",
        )
        for n in range(count)
    ]
    publisher.sent.update(range(count))
    publisher.channel.peer.feed(b"".join(messages))
    session = receiver.connection.sessions[0].end
    assert session.unsettled == count
    consumer.channel.settle(0, 0, Accepted())
    consumer.channel.settle(400, 500, Rejected())
    consumer.channel.settle(1, count - 1, Released())
    assert publisher.outcomes[0] == Accepted()
    assert publisher.outcomes[450] == Rejected()
    assert len(publisher.outcomes) == count
    assert set(publisher.answers.values()) == {1}
    assert session.unsettled == 0
    assert consumer.end.unsettled == 0
    broker.assert_clean()


def test_outcomes_are_said_before_the_detach_that_answers_a_detach(broker: Broker) -> None:
    """A publisher that sends and detaches in one breath hears what became of its message first."""

    broker.peer().consumer("one/a", credit=5, presettled=True)
    publisher = broker.peer().publisher("one/a")
    publisher.sent.add(0)
    heard = publisher.channel.peer.heard
    publisher.channel.peer.feed(
        frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"0"), b"x")
        + frame(Detach(handle=0, closed=True))
    )
    kinds = [type(each) for _, each in heard]
    assert publisher.outcomes == {0: Accepted()}
    assert kinds.index(Disposition) < kinds.index(Detach)


@pytest.mark.parametrize("closing", ["end", "close"])
def test_outcomes_are_said_before_the_end_that_answers_an_end(broker: Broker, closing: str) -> None:

    broker.peer().consumer("one/a", credit=5, presettled=True)
    publisher = broker.peer().publisher("one/a")
    publisher.sent.add(0)
    publisher.channel.peer.feed(
        frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"0"), b"x")
        + frame(End() if closing == "end" else Close())
    )
    assert publisher.outcomes == {0: Accepted()}


def test_delivery_ids_wrap(broker: Broker) -> None:
    """A peer may start anywhere; serial numbers wrap at 2**32 (§2.8.10)."""
    publisher = broker.peer().publisher("one/a")
    publisher.channel.next_delivery_id = 2**32 - 2
    consumer = broker.peer().consumer("one/a", credit=5)
    sent = [publisher.send() for _ in range(4)]
    assert sent == [2**32 - 2, 2**32 - 1, 0, 1]
    consumer.channel.settle(0, 3, Accepted())
    said = publisher.channel.peer.of(Disposition)
    assert [(d.first, d.last) for d in said] == [(2**32 - 2, 1)]
