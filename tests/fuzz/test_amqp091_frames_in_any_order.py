"""Hostile clients of AMQP 0-9-1: frames in any order, and octets damaged anywhere.

A server made of the protocol alone answers what it must. It never raises anything, every octet that
it sends is what pika reads too, and after a hard error it takes a close and its answer only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from pika.frame import Method as PikaMethod
from pika.frame import decode_frame

from cogwork.amqp091.connection import Connection, Failure
from cogwork.amqp091.content import (
    BasicProperties,
    encode_content_header,
    encode_properties,
)
from cogwork.amqp091.frames import HEARTBEAT, FrameType, write_frame
from cogwork.amqp091.method import METHODS, Role
from cogwork.amqp091.methods import (
    BasicPublish,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    QueueDeclare,
    QueueDeclareOk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.amqp091.method import Method

CHANNELS = 3
BODY_OCTETS = 200

ANSWERS: dict[type[Method], tuple[Method, ...]] = {
    ConnectionStartOk: (ConnectionTune(channel_max=CHANNELS, frame_max=4096),),
    ConnectionOpen: (ConnectionOpenOk(),),
    ConnectionClose: (ConnectionCloseOk(),),
    ChannelOpen: (ChannelOpenOk(),),
    ChannelClose: (ChannelCloseOk(),),
    QueueDeclare: (QueueDeclareOk(queue="q", message_count=0, consumer_count=0),),
}


class Server:
    """Answers a client's octets, and keeps what it sent."""

    def __init__(self) -> None:
        self.connection = Connection(Role.SERVER, BODY_OCTETS)
        self.sent = bytearray()
        self.is_failed = False
        self.connection.send(self.sent, 0, ConnectionStart())

    def suffer(self, octets: bytes) -> None:
        for event in self.connection.receive(octets):
            if isinstance(event, Failure):
                assert not self.is_failed, "what comes after a hard error is discarded"
                self.connection.fail(self.sent, event)
                self.is_failed = event.error.is_hard or event.channel == 0
                continue
            method = event.command.method
            assert not self.is_failed or isinstance(method, ConnectionClose | ConnectionCloseOk)
            for answer in ANSWERS.get(type(method), ()):
                self.connection.send(self.sent, event.channel, answer)
            content = event.command.content
            assert content is None or len(content.body) <= BODY_OCTETS
        assert len(self.connection.channels) <= CHANNELS

    def check(self) -> None:
        octets = bytes(self.sent)
        while octets:
            size, read = decode_frame(octets)
            assert isinstance(read, PikaMethod)
            octets = octets[size:]


def frame(frame_type: int, channel: int, payload: bytes) -> bytes:
    out = bytearray()
    write_frame(out, frame_type, channel, payload)
    return bytes(out)


def said(method: Method, channel: int = 0) -> bytes:
    return frame(FrameType.METHOD, channel, method.encode())


def header(body_octets: int, channel: int = 1) -> bytes:
    properties = encode_properties(BasicProperties(headers={"a": [1, None]}, delivery_mode=2))
    return frame(FrameType.HEADER, channel, encode_content_header(60, body_octets, properties))


START = (
    said(ConnectionStartOk(client_properties={"capabilities": {"a": True}}, response=b"\0a\0b")),
    said(ConnectionTuneOk(channel_max=CHANNELS, frame_max=4096)),
    said(ConnectionOpen()),
    said(ChannelOpen(), 1),
)
CONVERSATION = (
    *START,
    HEARTBEAT,
    said(QueueDeclare(queue="q", arguments={"x-max-length": 5}), 1),
    said(BasicPublish(routing_key="q"), 1),
    header(9),
    frame(FrameType.BODY, 1, b"begin"),
    said(ChannelOpen(), 2),
    frame(FrameType.BODY, 1, b"rest"),
    said(BasicPublish(routing_key="q"), 2),
    header(BODY_OCTETS + 1, 2),
    frame(FrameType.BODY, 2, bytes(BODY_OCTETS + 1)),
    said(ChannelCloseOk(), 2),
    said(ChannelClose(reply_code=200), 1),
    said(ChannelOpen(), 1),
    said(ConnectionClose(reply_code=200)),
)

EMPTY_METHODS = [
    frame(FrameType.METHOD, channel, b"".join(each.to_bytes(2) for each in ids) + bytes(16))
    for ids in METHODS
    for channel in (0, 1)
]
PIECES = st.one_of(
    st.sampled_from(CONVERSATION),
    st.sampled_from(EMPTY_METHODS),
    st.builds(
        frame,
        st.sampled_from([1, 2, 3, 8, 0, 255]),
        st.sampled_from([0, 1, 2, 3, 4, 65535]),
        st.binary(max_size=30),
    ),
    st.builds(header, st.sampled_from([0, 1, 9, BODY_OCTETS, 2**64 - 1])),
    st.binary(max_size=10),
)


def converse(pieces: Iterable[bytes]) -> Server:
    server = Server()
    for each in pieces:
        server.suffer(each)
    server.check()
    return server


def test_the_good_conversation_goes_to_its_end() -> None:
    server = converse(CONVERSATION)
    assert not server.is_failed
    assert server.connection.state.name == "CLOSED"


@settings(max_examples=3 * settings().max_examples)
@given(st.lists(PIECES, max_size=20), st.booleans())
def test_frames_in_any_order(pieces: list[bytes], is_open: bool) -> None:
    converse([*(START if is_open else ()), *pieces])


@settings(max_examples=3 * settings().max_examples)
@given(st.data())
def test_octets_damaged_anywhere(data: st.DataObject) -> None:
    octets = bytearray(b"".join(CONVERSATION))
    places = st.integers(0, len(octets) - 1)
    for at, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        octets[at] = value
    cut, until = sorted(data.draw(st.tuples(places, places)))
    if data.draw(st.booleans()):
        del octets[cut:until]
    width = data.draw(st.integers(1, 400))
    converse(bytes(octets[at : at + width]) for at in range(0, len(octets), width))
