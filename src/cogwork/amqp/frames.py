"""Protocol headers and frames (AMQP 1.0 §2.2, §2.3, §5.2, §5.3)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp.errors import Condition, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = (
    "AMQP_HEADER",
    "FRAME_HEADER_BYTES",
    "MIN_MAX_FRAME_SIZE",
    "PROTOCOL_HEADER_BYTES",
    "SASL_HEADER",
    "TLS_HEADER",
    "Frame",
    "FrameHeader",
    "FrameReader",
    "FrameType",
    "encode_frame",
    "parse_frame_header",
)

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
PROTOCOL_HEADER_BYTES: Final = 8

FRAME_HEADER_BYTES: Final = 8
MIN_MAX_FRAME_SIZE: Final = 512
"""Every peer takes frames of this size; SASL frames are never larger (§2.3.1, §5.3.1)."""

_HEADER = struct.Struct(">IBBH")
_WORD_BYTES = 4
_MIN_DATA_OFFSET = FRAME_HEADER_BYTES // _WORD_BYTES


class FrameType(IntEnum):
    """What a frame's body is."""

    AMQP = 0x00
    SASL = 0x01


class FrameHeader(NamedTuple):
    """The first eight bytes of a frame.

    Attributes:
        size: The whole frame, header included, in bytes.
        data_offset: Where the body starts, in bytes; an extended header lies before it.
        type: A `FrameType`, or what the peer sent in its place.
        channel: The session's channel; unused in SASL frames.
    """

    size: int
    data_offset: int
    type: int
    channel: int


class Frame(NamedTuple):
    """A frame without its header; an empty body is a heartbeat."""

    channel: int
    type: int
    body: bytes


def encode_frame(channel: int, body: bytes, frame_type: int = FrameType.AMQP) -> bytes:
    """Put a header before `body`."""
    size = FRAME_HEADER_BYTES + len(body)
    return _HEADER.pack(size, _MIN_DATA_OFFSET, frame_type, channel) + body


def parse_frame_header(
    data: bytes | bytearray | memoryview, offset: int = 0, max_frame_size: int = MIN_MAX_FRAME_SIZE
) -> FrameHeader:
    """Read the header at `offset`, where eight bytes must be.

    Raises:
        ProtocolError: The sizes contradict each other or the limit.
    """
    size, words, frame_type, channel = _HEADER.unpack_from(data, offset)
    data_offset = words * _WORD_BYTES
    if size > max_frame_size:
        raise _framing_error(f"a frame of {size} bytes exceeds max-frame-size {max_frame_size}")
    if not FRAME_HEADER_BYTES <= data_offset <= size:
        raise _framing_error(f"the body cannot start at byte {data_offset} of a frame of {size}")
    return FrameHeader(size, data_offset, frame_type, channel)


def _framing_error(description: str) -> ProtocolError:
    return ProtocolError(Condition.CONNECTION_FRAMING_ERROR, description)


class FrameReader:
    """Cuts a stream of bytes into frames: for tests and tools, the data plane has its own."""

    def __init__(self, max_frame_size: int = MIN_MAX_FRAME_SIZE) -> None:
        """Start with an empty buffer.

        Args:
            max_frame_size: The largest frame taken, in bytes.
        """
        self.max_frame_size = max_frame_size
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes in and yield the frames that are whole now.

        Raises:
            ProtocolError: A header is wrong; the stream cannot be read on.
        """
        self._buffer += data
        while len(self._buffer) >= FRAME_HEADER_BYTES:
            header = parse_frame_header(self._buffer, 0, self.max_frame_size)
            if len(self._buffer) < header.size:
                return
            body = bytes(self._buffer[header.data_offset : header.size])
            del self._buffer[: header.size]
            yield Frame(header.channel, header.type, body)
