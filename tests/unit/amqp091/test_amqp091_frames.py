"""Frames of AMQP 0-9-1, octet by octet."""

from __future__ import annotations

import pytest

from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode
from cogwork.amqp091.frames import (
    HEARTBEAT,
    PROTOCOL_HEADER,
    Frame,
    FrameReader,
    FrameType,
    answer_to_header,
    write_body_frames,
    write_frame,
)


def frame(frame_type: int, channel: int, payload: bytes) -> bytes:
    out = bytearray()
    write_frame(out, frame_type, channel, payload)
    return bytes(out)


def body_frames(body: bytes, frame_max: int) -> bytes:
    out = bytearray()
    write_body_frames(out, 3, body, frame_max)
    return bytes(out)


def test_a_frame_is_type_channel_size_payload_and_end_octet() -> None:
    assert frame(FrameType.METHOD, 258, b"ab") == bytes.fromhex("01 0102 00000002 6162 ce")


def test_a_heartbeat_is_an_empty_frame_on_channel_0() -> None:
    assert bytes.fromhex("08 0000 00000000 ce") == HEARTBEAT


def test_frames_come_whole_however_the_stream_is_cut() -> None:
    stream = frame(1, 1, b"one") + HEARTBEAT + frame(3, 65535, b"\xce\xce")
    expected = [Frame(1, 1, b"one"), Frame(8, 0, b""), Frame(3, 65535, b"\xce\xce")]
    for width in (1, 5, 8, len(stream)):
        reader = FrameReader()
        pieces = (stream[at : at + width] for at in range(0, len(stream), width))
        assert [each for piece in pieces for each in reader.feed(piece)] == expected


def test_frames_that_were_not_asked_for_come_later() -> None:
    reader = FrameReader()
    first = next(reader.feed(frame(1, 1, b"a") + frame(1, 2, b"b")))
    assert [first, *reader.feed(b"")] == [Frame(1, 1, b"a"), Frame(1, 2, b"b")]


def test_frame_max_may_change_between_two_frames() -> None:
    reader = FrameReader(frame_max=4096)
    sizes = []
    for each in reader.feed(frame(1, 0, b"tune-ok") + frame(3, 1, bytes(100_000))):
        sizes.append(len(each.payload))
        reader.frame_max = 131_072
    assert sizes == [7, 100_000]


@pytest.mark.parametrize("octets", [8, 4096])
def test_a_frame_may_exceed_frame_max_by_what_clients_forget_to_count(octets: int) -> None:
    reader = FrameReader(frame_max=octets)
    assert [len(each.payload) for each in reader.feed(frame(3, 1, bytes(octets)))] == [octets]


def test_a_larger_frame_is_refused_by_its_header_alone() -> None:
    header = frame(3, 7, bytes(4097))[:7]
    with pytest.raises(ProtocolError) as caught:
        list(FrameReader(frame_max=4096).feed(header))
    assert caught.value.reply_text == (
        "FRAME_ERROR - type 3, channel 7: frame too large: payload of 4097 octets (at most 4088)"
    )


def test_a_frame_without_its_end_octet_ends_the_stream() -> None:
    with pytest.raises(ProtocolError, match="invalid frame end marker 0") as caught:
        list(FrameReader().feed(frame(1, 0, b"x")[:-1] + b"\0"))
    assert caught.value.code is ReplyCode.FRAME_ERROR
    assert caught.value.is_hard


def test_a_body_is_cut_into_frames_of_frame_max() -> None:
    octets = body_frames(b"abcdefg", frame_max=11)
    assert octets == frame(3, 3, b"abc") + frame(3, 3, b"def") + frame(3, 3, b"g")
    assert body_frames(b"abc", frame_max=11) == frame(3, 3, b"abc")
    assert body_frames(b"", frame_max=11) == b""


def test_a_body_needs_room_in_its_frames() -> None:
    with pytest.raises(EncodeError, match="frame-max 8 leaves no room"):
        body_frames(b"a", frame_max=8)


def test_only_the_right_header_is_not_answered() -> None:
    assert bytes.fromhex("414d5150 00 00 09 01") == PROTOCOL_HEADER
    assert answer_to_header(PROTOCOL_HEADER) == b""
    for wrong in (b"AMQP\x00\x00\x09\x02", b"AMQP\x01\x01\x08\x00", b"GET / HT"):
        assert answer_to_header(wrong) == PROTOCOL_HEADER
