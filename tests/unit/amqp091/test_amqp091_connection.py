"""Two ends of a connection of AMQP 0-9-1, face to face, and ends that break the protocol."""

from __future__ import annotations

import pytest

from cogwork.amqp091.connection import Connection, Failure, Received
from cogwork.amqp091.content import BasicProperties, Content
from cogwork.amqp091.errors import EncodeError, LocalProtocolError, ProtocolError, ReplyCode
from cogwork.amqp091.frames import HEARTBEAT, FrameType, write_body_frames, write_frame
from cogwork.amqp091.method import Method, Role
from cogwork.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicPublish,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUpdateSecret,
    QueueDeclare,
    QueueDeclareOk,
)
from cogwork.amqp091.states import ConnectionState
from cogwork.amqp091.tuning import Limits

OFFER = ConnectionTune(channel_max=3, frame_max=131072, heartbeat=60)
ANSWER = ConnectionTuneOk(channel_max=2, frame_max=5000, heartbeat=10)

HANDSHAKE: list[Method] = [
    ConnectionStart(), ConnectionStartOk(response=b"\0guest\0guest"), OFFER, ANSWER,
    ConnectionOpen(), ConnectionOpenOk(),
]  # fmt: skip  # a list


class Wire:
    """A server and a client; what one sends, the other receives at once."""

    def __init__(self, max_body_octets: int = 1000) -> None:
        self.server = Connection(Role.SERVER, max_body_octets)
        self.client = Connection(Role.CLIENT, max_body_octets)

    def say(
        self, end: Connection, method: Method, channel: int = 0, content: Content | None = None
    ) -> list[Received | Failure]:
        out = bytearray()
        end.send(out, channel, method, content)
        other = self.client if end is self.server else self.server
        return list(other.receive(bytes(out)))

    def open(self, *channels: int) -> Wire:
        for method in HANDSHAKE:
            end = self.server if method.SENT_BY is Role.SERVER else self.client
            (event,) = self.say(end, method)
            assert isinstance(event, Received)
            assert (event.channel, event.command.method) == (0, method)
        for channel in channels:
            self.say(self.client, ChannelOpen(), channel)
            self.say(self.server, ChannelOpenOk(), channel)
        return self

    def failure_of(self, octets: bytes) -> Failure:
        """Return what the server has against octets of the client."""
        (event,) = self.server.receive(octets)
        assert isinstance(event, Failure)
        return event

    def fail(self, failure: Failure) -> Received:
        """Have the server answer a failure; return what the client receives."""
        out = bytearray()
        self.server.fail(out, failure)
        (event,) = self.client.receive(bytes(out))
        assert isinstance(event, Received)
        return event


def frame(frame_type: int, channel: int, payload: bytes) -> bytes:
    out = bytearray()
    write_frame(out, frame_type, channel, payload)
    return bytes(out)


def method_frame(method: Method, channel: int = 0) -> bytes:
    return frame(FrameType.METHOD, channel, method.encode())


def text_of(error: ProtocolError) -> tuple[int, str, int, int]:
    return error.code.value, error.explanation, error.class_id, error.method_id


def test_two_ends_open_and_close() -> None:
    wire = Wire().open()
    for end in (wire.server, wire.client):
        assert end.state is ConnectionState.RUNNING
        assert end.limits == Limits(2, 5000, 10)
    assert wire.say(wire.client, ConnectionClose(reply_code=200)) != []
    assert wire.say(wire.server, ConnectionCloseOk()) != []
    assert wire.server.state is wire.client.state is ConnectionState.CLOSED


def test_commands_of_several_channels_come_between_each_other() -> None:
    wire = Wire().open(1, 2)
    content = Content.of(BasicProperties(delivery_mode=2), b"x" * 900)
    first, second = bytearray(), bytearray()
    wire.client.send(first, 1, BasicPublish(routing_key="a"), content)
    wire.client.send(second, 2, BasicPublish(routing_key="b"), content)
    cut = len(first) - 908
    octets = first[:cut] + second + first[cut:]
    found = [event.channel for event in wire.server.receive(bytes(octets))]
    assert found == [2, 1]


def test_methods_may_be_pipelined_behind_an_open() -> None:
    wire = Wire().open()
    out = bytearray()
    wire.client.send(out, 1, ChannelOpen())
    wire.client.send(out, 1, QueueDeclare(queue="q"))
    wire.client.send(out, 1, BasicPublish(routing_key="q"), Content(b"\0\0", b""))
    names = [
        event.command.method.NAME
        for event in wire.server.receive(bytes(out))
        if isinstance(event, Received)
    ]
    assert names == ["channel.open", "queue.declare", "basic.publish"]
    wire.say(wire.server, ChannelOpenOk(), 1)
    answer = QueueDeclareOk(queue="q", message_count=0, consumer_count=0)
    assert len(wire.say(wire.server, answer, 1)) == 1


def test_heartbeats_say_nothing_at_any_time() -> None:
    wire = Wire()
    assert list(wire.server.receive(HEARTBEAT)) == []
    assert list(wire.open(1).server.receive(HEARTBEAT * 2)) == []
    wire.say(wire.server, ConnectionClose(reply_code=320))
    assert list(wire.server.receive(HEARTBEAT)) == []


def test_the_negotiated_frame_max_holds_from_the_next_frame_on() -> None:
    wire = Wire()
    for method in HANDSHAKE[:3]:
        wire.say(wire.server if method.SENT_BY is Role.SERVER else wire.client, method)
    octets = method_frame(ANSWER) + frame(FrameType.BODY, 1, bytes(5001))
    first, second = wire.server.receive(octets)
    assert isinstance(first, Received)
    assert isinstance(second, Failure)
    assert "frame too large: payload of 5001 octets (at most 4992)" in str(second.error)


@pytest.mark.parametrize("frame_max", [4095, 131073])
def test_a_refused_tune_ok_changes_nothing(frame_max: int) -> None:
    wire = Wire()
    for method in HANDSHAKE[:3]:
        wire.say(wire.server if method.SENT_BY is Role.SERVER else wire.client, method)
    answer = ConnectionTuneOk(channel_max=1, frame_max=frame_max)
    failure = wire.failure_of(method_frame(answer))
    assert failure.error.code is ReplyCode.NOT_ALLOWED
    assert (wire.server.state, wire.server.limits) == (ConnectionState.TUNING, None)
    out = bytearray()
    with pytest.raises(LocalProtocolError, match="negotiated frame_max"):
        wire.client.send(out, 0, answer)
    assert (out, wire.client.limits) == (b"", None)


@pytest.mark.parametrize(
    ("octets", "error"),
    [
        (
            frame(FrameType.METHOD, 1, ChannelOpen().encode()),
            (
                505,
                "unexpected frame: type 1, channel 1, all octets = b'\\x00\\x14\\x00\\n\\x00'",
                0,
                0,
            ),
        ),
        (
            method_frame(ConnectionOpen()),
            (504, "unexpected method 'connection.open' in connection state header", 10, 40),
        ),
        (
            method_frame(ConnectionStart()),
            (503, "unexpected method 'connection.start' from CLIENT", 10, 10),
        ),
    ],
)
def test_nothing_goes_before_the_handshake(octets: bytes, error: tuple[int, str, int, int]) -> None:
    failure = Wire().failure_of(octets)
    assert text_of(failure.error) == error


@pytest.mark.parametrize(
    ("octets", "error"),
    [
        (frame(7, 1, b""), (501, "unknown frame type: type 7, channel 1, all octets = b''", 0, 0)),
        (
            frame(FrameType.HEARTBEAT, 1, b""),
            (505, "unexpected frame: type 8, channel 1, all octets = b''", 0, 0),
        ),
        (
            frame(FrameType.HEARTBEAT, 0, b"a" * 17),
            (
                501,
                "heartbeat with a payload: type 8, channel 0, first 16 octets = "
                "b'aaaaaaaaaaaaaaaa'",
                0,
                0,
            ),
        ),
        (
            frame(FrameType.BODY, 0, b"a"),
            (505, "unexpected frame: type 3, channel 0, all octets = b'a'", 0, 0),
        ),
        (
            frame(FrameType.BODY, 1, b"a"),
            (505, "expected method frame, got non method frame instead", 0, 0),
        ),
        (
            method_frame(BasicAck()),
            (504, "unexpected method 'basic.ack' in connection state running", 60, 80),
        ),
        (
            method_frame(ConnectionBlocked()),
            (503, "unexpected method 'connection.blocked' from CLIENT", 10, 60),
        ),
        (
            method_frame(ConnectionOpen(), 1),
            (503, "unexpected method 'connection.open' on a channel other than 0", 10, 40),
        ),
        (
            method_frame(QueueDeclareOk(queue="", message_count=0, consumer_count=0), 1),
            (503, "unexpected method 'queue.declare-ok' from CLIENT", 50, 11),
        ),
        (method_frame(ChannelOpen(), 1), (504, "second 'channel.open' seen", 20, 10)),
        (method_frame(QueueDeclare(), 2), (504, "expected 'channel.open'", 50, 10)),
        (method_frame(BasicPublish(), 2), (504, "expected 'channel.open'", 60, 40)),
        (frame(FrameType.METHOD, 1, bytes(4)), (540, "unknown method 0 of class 0", 0, 0)),
    ],
)
def test_an_open_connection_takes_only_what_is_allowed(
    octets: bytes, error: tuple[int, str, int, int]
) -> None:
    wire = Wire().open(1)
    failure = wire.failure_of(octets)
    assert text_of(failure.error) == error
    event = wire.fail(failure)
    close = event.command.method
    assert isinstance(close, ConnectionClose)
    assert (event.channel, close.reply_code) == (0, error[0])
    assert (close.class_id, close.method_id) == error[2:]
    assert wire.server.channels == {1}


def test_a_content_for_a_closed_channel_is_refused_by_its_method() -> None:
    wire = Wire().open()
    octets = method_frame(BasicPublish(), 1) + frame(FrameType.HEADER, 1, bytes(14))
    first, second = wire.server.receive(octets)
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert first.error.explanation == "expected 'channel.open'"


def test_no_more_channels_are_opened_than_agreed() -> None:
    wire = Wire().open(1, 2)
    failure = wire.failure_of(method_frame(ChannelOpen(), 3))
    assert failure.error.reply_text == (
        "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    )
    assert wire.server.channels == {1, 2}
    with pytest.raises(LocalProtocolError, match="channel_max"):
        wire.client.send(bytearray(), 3, ChannelOpen())


def test_a_soft_error_closes_its_channel_and_no_other() -> None:
    wire = Wire(max_body_octets=5).open(1, 2)
    out = bytearray()
    for method, content in (
        (BasicPublish(), Content(b"\0\0", b"123456")),
        (QueueDeclare(), None),
    ):
        wire.client.send(out, 1, method, content)
    wire.client.send(out, 2, QueueDeclare())
    found: list[object] = []
    closed: list[Received] = []
    for event in wire.server.receive(bytes(out)):
        if isinstance(event, Failure):
            closed.append(wire.fail(event))
        else:
            found.append((event.channel, event.command.method))
    assert found == [(2, QueueDeclare())]
    (close,) = closed
    assert close.channel == 1
    assert close.command.method == ChannelClose(
        reply_code=406,
        reply_text="PRECONDITION_FAILED - message size 6 is larger than configured max size 5",
        class_id=60,
        method_id=40,
    )
    wire.say(wire.client, ChannelCloseOk(), 1)
    assert wire.server.channels == wire.client.channels == {2}
    assert len(wire.say(wire.client, ChannelOpen(), 1)) == 1


def test_a_channel_that_is_closing_discards_the_rest_of_a_content() -> None:
    wire = Wire().open(1)
    out = bytearray()
    wire.client.send(out, 1, BasicPublish(), Content(b"\0\0", b"abc"))
    wire.client.send(out, 1, ChannelFlow(active=True))
    half = bytes(out[:-24])
    assert list(wire.server.receive(half)) == []
    wire.say(wire.server, ChannelClose(reply_code=404), 1)
    rest = bytes(out[len(half) :]) + frame(FrameType.METHOD, 1, b"\0")
    assert list(wire.server.receive(rest)) == []
    (event,) = wire.say(wire.client, ChannelCloseOk(), 1)
    assert isinstance(event, Received)
    assert wire.server.channels == frozenset()


def test_a_connection_that_is_closing_discards_all_but_a_close() -> None:
    wire = Wire().open(1)
    out = bytearray()
    wire.server.send(out, 0, ConnectionClose(reply_code=320))
    hostile = (
        frame(7, 0, b"?"),
        frame(FrameType.METHOD, 0, b""),
        frame(FrameType.METHOD, 0, bytes(4)),
        method_frame(ConnectionUpdateSecret(new_secret=b"")),
        method_frame(QueueDeclare(), 1),
        frame(FrameType.BODY, 9, b"x"),
    )
    assert list(wire.server.receive(b"".join(hostile))) == []
    (close,) = wire.server.receive(method_frame(ConnectionClose(reply_code=200)))
    assert isinstance(close, Received)
    assert wire.server.state is ConnectionState.CLOSE_CROSSED
    wire.server.send(out, 0, ConnectionCloseOk())
    (answer,) = wire.server.receive(method_frame(ConnectionCloseOk()))
    assert isinstance(answer, Received)
    assert wire.server.state is ConnectionState.CLOSED
    assert list(wire.server.receive(method_frame(ConnectionClose(reply_code=200)))) == []


def test_octets_behind_a_lost_boundary_are_not_taken_in() -> None:
    wire = Wire().open(1)
    damaged = HEARTBEAT[:-1] + b"\0"
    failure = wire.failure_of(damaged + method_frame(QueueDeclare(), 1))
    assert failure.channel == 0
    assert list(wire.server.receive(HEARTBEAT)) == []
    assert wire.fail(failure).command.method.NAME == "connection.close"
    assert list(wire.server.receive(method_frame(ConnectionCloseOk()))) == []


def test_a_lost_boundary_while_closing_is_no_failure() -> None:
    wire = Wire().open()
    wire.say(wire.server, ConnectionClose(reply_code=320))
    assert list(wire.server.receive(HEARTBEAT[:-1] + b"\0")) == []


def test_an_end_does_not_send_what_it_may_not() -> None:
    wire = Wire()
    with pytest.raises(LocalProtocolError, match="CLIENT alone sends"):
        wire.server.send(bytearray(), 0, ConnectionOpen())
    with pytest.raises(LocalProtocolError, match="on channel 1 in connection state"):
        wire.server.send(bytearray(), 1, BasicAck())
    wire.open(1)
    with pytest.raises(LocalProtocolError, match="expected 'channel"):
        wire.server.send(bytearray(), 2, BasicAck())
    with pytest.raises(LocalProtocolError, match="in connection state running"):
        wire.server.send(bytearray(), 0, BasicAck())
    assert wire.server.channels == {1}


def test_what_could_not_be_sent_changes_nothing() -> None:
    wire = Wire().open(1)
    out = bytearray()
    with pytest.raises(EncodeError):
        wire.server.send(out, 1, ChannelClose(reply_code=70000))
    with pytest.raises(EncodeError):
        wire.server.send(out, 0, ConnectionClose(reply_code=70000))
    assert out == b""
    assert wire.server.state is ConnectionState.RUNNING
    deliver = BasicDeliver(consumer_tag="t", delivery_tag=1, exchange="", routing_key="q")
    assert len(wire.say(wire.server, deliver, 1, Content(b"\0\0", b""))) == 1


def test_a_body_goes_out_in_frames_of_the_agreed_size() -> None:
    wire = Wire(max_body_octets=10_000).open(1)
    out, expected = bytearray(), bytearray()
    content = Content(b"\0\0", bytes(9000))
    wire.client.send(out, 1, BasicPublish(), content)
    write_body_frames(expected, 1, content.body, 5000)
    assert out.endswith(expected)
    (event,) = wire.server.receive(bytes(out))
    assert isinstance(event, Received)
    assert event.command.content == content
