"""Contents of AMQP 0-9-1: properties, headers, and commands put together of frames."""

from __future__ import annotations

import pytest

from cogwork.amqp091.assembler import Assembler, Command
from cogwork.amqp091.content import (
    BasicProperties,
    Content,
    ContentHeader,
    decode_content_header,
    decode_properties,
    encode_content_header,
    encode_properties,
    write_command,
)
from cogwork.amqp091.errors import EncodeError, ProtocolError
from cogwork.amqp091.frames import HEARTBEAT, Frame, FrameReader, FrameType
from cogwork.amqp091.methods import BasicAck, BasicPublish, QueuePurge

PROPERTIES = [
    ("8000 01 61", BasicProperties(content_type="a")),
    ("4000 01 61", BasicProperties(content_encoding="a")),
    ("2000 00000003 01 6b 56", BasicProperties(headers={"k": None})),
    ("1000 02", BasicProperties(delivery_mode=2)),
    ("0800 ff", BasicProperties(priority=255)),
    ("0400 01 ff", BasicProperties(correlation_id="\udcff")),
    ("0200 01 61", BasicProperties(reply_to="a")),
    ("0100 04 31303030", BasicProperties(expiration="1000")),
    ("0080 01 61", BasicProperties(message_id="a")),
    ("0040 ffffffffffffffff", BasicProperties(timestamp=2**64 - 1)),
    ("0020 01 61", BasicProperties(type="a")),
    ("0010 01 61", BasicProperties(user_id="a")),
    ("0008 01 61", BasicProperties(app_id="a")),
    ("0004 01 61", BasicProperties(cluster_id="a")),
    ("0000", BasicProperties()),
    ("9800 00 01 00", BasicProperties(content_type="", delivery_mode=1, priority=0)),
]
PUBLISH = BasicPublish(routing_key="q")
EMPTY = b"\0\0"


def frames_of(command: Command, frame_max: int = 4096) -> list[Frame]:
    out = bytearray()
    write_command(out, 1, *command, frame_max)
    return list(FrameReader().feed(bytes(out)))


def refusal_of(*frames: Frame) -> ProtocolError:
    assembler = Assembler(max_body_octets=1000)
    *before, last = frames
    assert [assembler.feed(each) for each in before] == [None] * len(before)
    with pytest.raises(ProtocolError) as caught:
        assembler.feed(last)
    assert assembler.method is None
    return caught.value


def header(body_octets: int, class_id: int = 60) -> Frame:
    return Frame(FrameType.HEADER, 1, encode_content_header(class_id, body_octets, EMPTY))


def body(octets: bytes) -> Frame:
    return Frame(FrameType.BODY, 1, octets)


METHOD = Frame(FrameType.METHOD, 1, PUBLISH.encode())


@pytest.mark.parametrize(("octets", "properties"), PROPERTIES)
def test_each_property_has_its_flag_and_octets(octets: str, properties: BasicProperties) -> None:
    assert encode_properties(properties) == bytes.fromhex(octets)
    assert decode_properties(bytes.fromhex(octets)) == properties


@pytest.mark.parametrize(
    ("octets", "code", "explanation"),
    [
        ("00", 501, "2 octets are needed at 0, 1 are left"),
        ("0001 0000", 502, "unknown property flags in 0x0001"),
        ("0002", 502, "unknown property flags in 0x0002"),
        ("8000 02 61", 501, "2 octets are needed at 3, 1 are left"),
        ("1000 02 02", 501, "1 octets follow the last value, at 3"),
        ("2000 00000003 01 6b 7a", 502, "unknown table field type b'z'"),
    ],
)
def test_damaged_properties_are_an_error_of_the_class(
    octets: str, code: int, explanation: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_properties(bytes.fromhex(octets))
    assert caught.value.code == code
    assert caught.value.explanation == f"cannot decode properties: {explanation}"
    assert (caught.value.class_id, caught.value.method_id) == (60, 0)


def test_a_property_without_an_encoding_is_named() -> None:
    with pytest.raises(EncodeError, match="priority: octet is expected, not int 256"):
        encode_properties(BasicProperties(priority=256))
    with pytest.raises(EncodeError, match="message_id: shortstr is expected, not int 7"):
        encode_properties(BasicProperties(message_id=7))  # type: ignore[arg-type]  # the mistake


def test_a_content_header_has_its_octets() -> None:
    octets = bytes.fromhex("003c 0000 0000000000000100 1000 02")
    assert encode_content_header(60, 256, b"\x10\0\2") == octets
    assert decode_content_header(octets) == ContentHeader(60, 0, 256, b"\x10\0\2")
    with pytest.raises(ProtocolError, match="content header frame of 13 octets") as caught:
        decode_content_header(octets[:13])
    assert caught.value.code == 501


def test_properties_are_decoded_when_asked_for() -> None:
    content = Content(b"damaged", b"body")
    assert frames_of(Command(PUBLISH, content))[1].payload.endswith(b"damaged")
    with pytest.raises(ProtocolError):
        _ = content.properties
    properties = BasicProperties(delivery_mode=2)
    content = Content.of(properties, b"body")
    assert content.properties == properties
    assert content.properties is content.properties


def test_contents_are_equal_where_their_octets_are() -> None:
    one, other = Content(EMPTY, b"a"), Content.of(BasicProperties(), b"a")
    assert one == other
    assert hash(one) == hash(other)
    assert one not in (Content(EMPTY, b"b"), Content(b"\x10\0\2", b"a"), EMPTY)
    assert repr(one) == r"Content(b'\x00\x00', b'a')"


def test_a_publish_has_its_octets() -> None:
    out = bytearray()
    content = Content.of(BasicProperties(delivery_mode=2), b"hello")
    write_command(out, 1, PUBLISH, content, 4096)
    assert out == bytes.fromhex(
        "01 0001 0000000a 003c0028 0000 00 01 71 00 ce"
        "02 0001 0000000f 003c 0000 0000000000000005 1000 02 ce"
        "03 0001 00000005 68656c6c6f ce"
    )


@pytest.mark.parametrize("size", [0, 1, 4088, 4089, 10_000])
def test_commands_come_whole_in_any_frames(size: int) -> None:
    sent = Command(PUBLISH, Content(EMPTY, (bytes(range(256)) * 40)[:size]))
    assembler = Assembler()
    *before, last = frames_of(sent)
    assert [assembler.feed(each) for each in before] == [None] * len(before)
    assert assembler.method == PUBLISH
    assert assembler.feed(last) == sent
    assert assembler.method is None
    assert assembler.feed(frames_of(Command(BasicAck(), None))[0]) == Command(BasicAck(), None)


def test_a_body_may_be_as_large_as_its_limit() -> None:
    assembler = Assembler(max_body_octets=1000)
    assert [assembler.feed(each) for each in (METHOD, header(1000))] == [None, None]
    assert assembler.feed(body(bytes(1000))) == Command(PUBLISH, Content(EMPTY, bytes(1000)))


def test_bodies_of_one_octet_or_none_a_frame_are_taken() -> None:
    assembler = Assembler()
    before = [METHOD, header(2), body(b""), body(b"a")]
    assert [assembler.feed(each) for each in before] == [None] * 4
    assert assembler.feed(body(b"b")) == Command(PUBLISH, Content(EMPTY, b"ab"))


@pytest.mark.parametrize(
    ("frames", "code", "explanation"),
    [
        ([header(1)], 505, "expected method frame, got non method frame instead"),
        ([body(b"")], 505, "expected method frame, got non method frame instead"),
        (
            [METHOD, METHOD],
            505,
            "expected content header for class 60, got non content header frame instead",
        ),
        (
            [METHOD, body(b"a")],
            505,
            "expected content header for class 60, got non content header frame instead",
        ),
        (
            [METHOD, header(1, class_id=50)],
            505,
            "expected content header for class 60, got one for class 50 instead",
        ),
        (
            [METHOD, Frame(FrameType.HEADER, 1, bytes.fromhex("003c0007") + bytes(10))],
            505,
            "expected content header for class 60, got one of weight 7 instead",
        ),
        (
            [METHOD, Frame(FrameType.HEADER, 1, b"")],
            501,
            "content header frame of 0 octets (at least 14)",
        ),
        (
            [METHOD, header(1001)],
            406,
            "message size 1001 is larger than configured max size 1000",
        ),
        (
            [METHOD, header(2), METHOD],
            505,
            "expected content body, got non content body frame instead",
        ),
        (
            [METHOD, header(2), body(b"a"), header(2)],
            505,
            "expected content body, got non content body frame instead",
        ),
        (
            [METHOD, header(2), body(b"a"), body(b"bc")],
            501,
            "content body frame exceeds remaining content size",
        ),
    ],
)
def test_frames_out_of_order_are_refused(frames: list[Frame], code: int, explanation: str) -> None:
    error = refusal_of(*frames)
    assert (error.code, error.explanation) == (code, explanation)
    assert (error.class_id, error.method_id) == ((0, 0) if len(frames) == 1 else (60, 40))


@pytest.mark.parametrize(
    ("command", "explanation"),
    [
        (Command(PUBLISH, None), "basic.publish needs a content"),
        (Command(QueuePurge(), Content(EMPTY, b"")), "queue.purge takes no content"),
        (
            Command(PUBLISH, Content(bytes(4089 - 12), b"")),
            "content header: frame of 4097 octets exceeds frame-max 4096",
        ),
        (
            Command(QueuePurge(queue="q" * 300), None),
            "queue.purge: queue: shortstr is expected",
        ),
    ],
)
def test_what_cannot_be_sent_leaves_nothing_behind(command: Command, explanation: str) -> None:
    out = bytearray(HEARTBEAT)
    with pytest.raises(EncodeError) as caught:
        write_command(out, 1, *command, 4096)
    assert str(caught.value).startswith(explanation)
    assert out == HEARTBEAT


def test_a_method_larger_than_frame_max_is_not_sent() -> None:
    with pytest.raises(EncodeError, match=r"queue\.purge: frame of 16 octets exceeds frame-max 15"):
        write_command(bytearray(), 1, QueuePurge(), None, 15)
