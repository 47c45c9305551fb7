"""What a peer may not do, and what ends for it: the link, the session or the connection."""

import pytest
from wires import Broker, Peer, frame

from cogwork.amqp.errors import Condition
from cogwork.amqp.frames import SASL_HEADER
from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    Role,
    Transfer,
)
from cogwork.amqp.terminus import Source, Target


def session_error(peer: Peer) -> object:
    ended = peer.main.ended
    assert ended is not None, "the session was not ended"
    assert ended.error is not None
    assert not peer.finished
    return ended.error.condition


def test_a_transfer_on_a_handle_without_a_link_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    peer.say(Transfer(handle=7, delivery_id=0, delivery_tag=b"x"), b"x")
    assert session_error(peer) == Condition.SESSION_UNATTACHED_HANDLE


def test_a_flow_on_a_handle_without_a_link_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    peer.main.flow(handle=4_000_000_000, link_credit=1)
    assert session_error(peer) == Condition.SESSION_UNATTACHED_HANDLE


def test_a_detach_on_a_handle_without_a_link_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    peer.say(Detach(handle=7))
    assert session_error(peer) == Condition.SESSION_UNATTACHED_HANDLE


def test_a_transfer_on_a_receivers_handle_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    peer.consumer("one/a", credit=1)
    peer.say(Transfer(handle=0, delivery_id=0, delivery_tag=b"x"), b"x")
    assert session_error(peer) == Condition.SESSION_UNATTACHED_HANDLE


def test_what_was_sent_before_the_refusal_was_heard_is_no_fault(broker: Broker) -> None:
    """Clients attach and give credit, or send, in one breath."""
    peer = broker.peer()
    peer.feed(
        frame(
            Attach(
                name="in",
                handle=0,
                role=Role.RECEIVER,
                source=Source(address="forbidden/a"),
                target=Target(),
            )
        )
        + frame(
            Flow(
                next_incoming_id=0,
                incoming_window=9,
                next_outgoing_id=0,
                outgoing_window=9,
                handle=0,
                delivery_count=0,
                link_credit=10,
            )
        )
        + frame(
            Attach(
                name="out",
                handle=1,
                role=Role.SENDER,
                source=Source(),
                target=Target(address="forbidden/a"),
                initial_delivery_count=0,
            )
        )
        + frame(Transfer(handle=1, delivery_id=0, delivery_tag=b"x"), b"x")
    )
    assert peer.main.ended is None
    refusals = peer.of(Detach)
    assert [r.error and r.error.condition for r in refusals] == [Condition.UNAUTHORIZED_ACCESS] * 2
    peer.say(Detach(handle=0, closed=True))
    peer.say(Detach(handle=1, closed=True))
    peer.consumer("one/a", credit=1)
    broker.peer().publisher("one/a").send()
    assert peer.main.ended is None


def test_what_was_sent_before_our_detach_was_heard_is_no_fault(broker: Broker) -> None:
    broker.max_message_size = 5
    publisher = broker.peer().publisher("all/a")
    publisher.send(b"too large")
    publisher.send(b"x")
    publisher.channel.flow(handle=publisher.handle, delivery_count=0, link_credit=0, echo=True)
    publisher.detach()
    assert publisher.channel.ended is None


def test_a_delivery_without_an_id_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    peer.publisher("all/a")
    peer.say(Transfer(handle=0, delivery_tag=b"x"), b"x")
    assert session_error(peer) == Condition.INVALID_FIELD


def test_a_second_delivery_in_the_middle_of_the_first_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    consumer = broker.peer().consumer("all/a", credit=9)
    publisher = peer.publisher("all/a")
    publisher.start(b"begin")
    publisher.start(b"another")
    assert session_error(peer) == Condition.INVALID_FIELD
    assert consumer.last.aborted
    broker.assert_clean()


def test_a_handle_in_use_ends_the_session(broker: Broker) -> None:
    peer = broker.peer()
    peer.publisher("all/a")
    peer.say(
        Attach(
            name="again",
            handle=0,
            role=Role.SENDER,
            source=Source(),
            target=Target(address="x"),
            initial_delivery_count=0,
        )
    )
    assert session_error(peer) == Condition.SESSION_HANDLE_IN_USE


def test_a_handle_above_handle_max_ends_the_connection(broker: Broker) -> None:
    peer = broker.peer(handle_max=3)
    peer.say(
        Attach(
            name="far",
            handle=4,
            role=Role.SENDER,
            source=Source(),
            target=Target(address="x"),
            initial_delivery_count=0,
        )
    )
    error = peer.close_error
    assert error is not None
    assert error.condition in (Condition.NOT_ALLOWED, Condition.CONNECTION_FRAMING_ERROR)
    assert peer.finished


def test_a_channel_above_channel_max_ends_the_connection(broker: Broker) -> None:
    peer = broker.peer(channel_max=1)
    peer.begin(1)
    assert not peer.finished
    peer.begin(2)
    assert peer.finished
    assert peer.close_error is not None


def test_a_channel_in_use_ends_the_connection(broker: Broker) -> None:
    peer = broker.peer()
    peer.begin(0)
    assert peer.finished
    assert peer.close_error is not None
    assert peer.close_error.condition == Condition.NOT_ALLOWED


def test_a_begin_that_answers_nothing_ends_the_connection(broker: Broker) -> None:
    peer = broker.peer()
    peer.say(
        Begin(remote_channel=9, next_outgoing_id=0, incoming_window=1, outgoing_window=1),
        channel=1,
    )
    assert peer.finished


@pytest.mark.parametrize(
    "performative",
    [
        Transfer(handle=0, delivery_id=0, delivery_tag=b"x"),
        Flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1),
        Disposition(role=Role.RECEIVER, first=0),
        Detach(handle=0),
        End(),
        Attach(name="x", handle=0, role=Role.RECEIVER, source=Source(), target=Target()),
    ],
    ids=lambda performative: type(performative).__name__,
)
def test_a_frame_on_a_channel_without_a_session_ends_the_connection(
    broker: Broker, performative: Performative
) -> None:
    peer = broker.peer()
    peer.say(performative, channel=5)
    assert peer.finished
    assert peer.close_error is not None
    assert peer.close_error.condition == Condition.NOT_ALLOWED


def test_a_second_open_ends_the_connection(broker: Broker) -> None:
    peer = broker.peer()
    peer.say(Open(container_id="again"))
    assert peer.close_error is not None
    assert peer.close_error.condition == Condition.ILLEGAL_STATE


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (b"\x00\x00\x00\x07\x02\x00\x00\x00", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x7f\xff\xff\xff\x02\x00\x00\x00", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x00\x00\x00\x08\x03\x00\x00\x00", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x00\x00\x00\x08\x02\x01\x00\x00", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x00\x00\x00\x0c\x02\x01\x00\x00abcd", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x00\x00\x00\x0c\x02\x07\x00\x00abcd", Condition.CONNECTION_FRAMING_ERROR),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00abcd", Condition.DECODE_ERROR),
        (b"\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x53\x14", Condition.DECODE_ERROR),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x14\x45", Condition.DECODE_ERROR),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x13\x45", Condition.DECODE_ERROR),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x15\x45", Condition.DECODE_ERROR),
        (
            b"\x00\x00\x00\x14\x02\x00\x00\x00\x00\x53\x14\xd0\xff\xff\xff\xff\x00\x00\x00\x01",
            Condition.DECODE_ERROR,
        ),
    ],
)
def test_bytes_that_are_no_frame_end_the_connection(
    broker: Broker, data: bytes, condition: str
) -> None:
    peer = broker.peer()
    bystander = broker.peer().consumer("one/a", credit=5)
    peer.feed(data)
    assert peer.close_error is not None
    assert peer.close_error.condition == condition
    assert peer.finished
    broker.peer().publisher("one/a").send(b"goes on")
    assert bystander.bodies == [b"goes on"]


def test_an_empty_frame_is_a_heartbeat(broker: Broker) -> None:
    peer = broker.peer()
    peer.feed(b"\x00\x00\x00\x08\x02\x00\x00\x00" + b"\x00\x00\x00\x0c\x03\x00\x00\x05\0\0\0\0")
    assert not peer.finished


def test_an_extended_header_is_skipped(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=5)
    peer = broker.peer()
    peer.publisher("one/a")
    whole = frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"x"), b"body")
    size = len(whole) + 8
    peer.feed(size.to_bytes(4, "big") + b"\x04" + whole[5:8] + b"extended" + whole[8:])
    assert consumer.bodies == [b"body"]


@pytest.mark.parametrize(
    "header",
    [b"AMQP\x00\x00\x09\x01", b"GET / HT", b"AMQP\x02\x01\x00\x00", b"AMQP\x00\x01\x01\x00"],
)
def test_a_wrong_header_is_answered_with_the_right_one(broker: Broker, header: bytes) -> None:
    peer = Peer(broker)
    peer.feed(header)
    assert peer.header in (SASL_HEADER, b"AMQP\x00\x01\x00\x00")
    assert peer.finished
    assert len(broker.closed) == 1


def test_a_violation_before_the_open_is_still_told(broker: Broker) -> None:
    """§2.4.3: an open is owed before the close that says why."""
    peer = Peer(broker)
    peer.feed(b"AMQP\x00\x01\x00\x00")
    peer.feed(b"\x00\x00\x00\x07\x02\x00\x00\x00")
    assert peer.close_error is not None
    assert peer.close_error.condition == Condition.CONNECTION_FRAMING_ERROR
    assert len(peer.of(Open)) == 1
    assert peer.finished


def test_nothing_but_open_may_come_first(broker: Broker) -> None:
    peer = Peer(broker)
    peer.feed(b"AMQP\x00\x01\x00\x00")
    peer.say(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    assert peer.close_error is not None
    assert peer.finished


def test_everything_after_a_violation_is_thrown_away(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=5)
    peer = broker.peer()
    peer.publisher("one/a")
    peer.feed(
        b"\x00\x00\x00\x07\x02\x00\x00\x00"
        + frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"x", settled=True), b"late")
    )
    peer.feed(frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"x", settled=True), b"late"))
    assert consumer.arrivals == []


def test_an_ended_session_ignores_what_its_peer_had_under_way(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=5)
    peer = broker.peer()
    publisher = peer.publisher("one/a")
    peer.say(Detach(handle=9))
    assert session_error(peer) == Condition.SESSION_UNATTACHED_HANDLE
    publisher.send()
    peer.main.flow(echo=True)
    peer.main.settle(0, state=Accepted())
    peer.publisher("one/a")
    peer.say(End())
    assert not peer.finished
    assert consumer.arrivals == []
    again = peer.begin(0).publisher("one/a")
    again.send(b"again")
    assert consumer.bodies == [b"again"]


def test_a_link_of_the_same_name_steals_the_old_ones_place(broker: Broker) -> None:
    peer = broker.peer()
    old = peer.publisher("all/a", name="mine")
    old_end = broker.links["mine"]
    new = peer.publisher("all/a", name="mine")
    stolen = peer.of(Detach)
    assert [d.error and d.error.condition for d in stolen] == [Condition.LINK_STOLEN]
    assert old_end.detached
    assert new.remote_handle != stolen[0].handle
    old.detach()
    new.send()
    assert new.outcomes == {0: Accepted()}


def test_close_is_answered_and_the_connection_ends(broker: Broker) -> None:
    peer = broker.peer()
    peer.close()
    assert peer.close_error is None
    assert peer.finished
    assert broker.closed == [None]


def test_the_broker_closes_and_the_peer_answers(broker: Broker) -> None:
    peer = broker.peer()
    peer.consumer("one/a", credit=1)
    peer.connection.close()
    broker.settle_down()
    assert len(peer.of(Close)) == 1
    assert not peer.finished, "it waits for the answer"
    peer.say(Close())
    assert peer.finished
    assert len(broker.closed) == 1


def test_end_and_detach_are_answered(broker: Broker) -> None:
    peer = broker.peer()
    publisher = peer.publisher("all/a")
    consumer = peer.consumer("all/a", credit=1)
    publisher.detach()
    consumer.detach(closed=False)
    assert publisher.detached is not None
    assert publisher.detached.closed
    assert consumer.detached is not None
    assert not consumer.detached.closed
    peer.main.end()
    assert peer.main.ended is not None
    assert peer.main.ended.error is None
    assert peer.connection.sessions == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 13])
def test_frames_may_arrive_in_pieces_of_any_size(size: int) -> None:
    broker = Broker()
    peer = Peer(broker)
    peer.split = lambda data: [data[at : at + size] for at in range(0, len(data), size)]
    peer.greet()
    consumer = peer.consumer("one/a", credit=5)
    publisher = peer.publisher("one/a")
    publisher.send(b"0123456789" * 20)
    consumer.accept()
    assert consumer.bodies == [b"0123456789" * 20]
    assert publisher.outcomes == {0: Accepted()}
