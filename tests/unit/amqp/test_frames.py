"""Frames cut from a stream."""

from __future__ import annotations

import pytest

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.frames import (
    Frame,
    FrameHeader,
    FrameReader,
    FrameType,
    encode_frame,
    parse_frame_header,
)


def test_a_frame_has_eight_bytes_of_header() -> None:
    data = encode_frame(258, b"body", FrameType.SASL)
    assert data == bytes.fromhex("0000000c 02 01 0102") + b"body"
    assert parse_frame_header(data) == FrameHeader(12, 8, FrameType.SASL, 258)


def test_frames_come_whole_however_the_stream_is_cut() -> None:
    stream = encode_frame(1, b"one") + encode_frame(2, b"") + encode_frame(3, b"three")
    expected = [Frame(1, 0, b"one"), Frame(2, 0, b""), Frame(3, 0, b"three")]
    for width in (1, 5, len(stream)):
        reader = FrameReader()
        pieces = (stream[at : at + width] for at in range(0, len(stream), width))
        assert [frame for piece in pieces for frame in reader.feed(piece)] == expected


def test_an_extended_header_is_skipped() -> None:
    data = bytes.fromhex("00000010 03 00 0000 ffffffff") + b"body"
    assert list(FrameReader().feed(data)) == [Frame(0, 0, b"body")]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("00000201 02 00 0000", "exceeds max-frame-size 512"),
        ("00000007 02 00 0000", "start at byte 8 of a frame of 7"),
        ("00000008 01 00 0000", "start at byte 4"),
        ("00000008 03 00 0000", "start at byte 12"),
        ("00000000 00 00 0000", "start at byte 0"),
    ],
)
def test_a_contradicting_header_ends_the_stream(header: str, words: str) -> None:
    with pytest.raises(ProtocolError, match=words) as caught:
        list(FrameReader().feed(bytes.fromhex(header)))
    assert caught.value.condition == Condition.CONNECTION_FRAMING_ERROR
