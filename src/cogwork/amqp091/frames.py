"""The protocol header and frames (AMQP 0-9-1 §4.2.2, §4.2.3).

A frame is type, channel, size, payload and an end octet that tells whether both ends still agree on
where frames begin. A frame that is wrong in itself ends the connection: nothing that follows can be
read.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = (
    "DEFAULT_FRAME_MAX",
    "FRAME_END",
    "FRAME_OVERHEAD_OCTETS",
    "FRAME_SIZE_TOLERANCE_OCTETS",
    "HEARTBEAT",
    "INITIAL_FRAME_MAX",
    "MIN_FRAME_MAX",
    "PROTOCOL_HEADER",
    "Frame",
    "FrameReader",
    "FrameType",
    "answer_to_header",
    "write_body_frames",
    "write_frame",
)

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"

FRAME_END: Final = 0xCE
FRAME_OVERHEAD_OCTETS: Final = 8
"""Header and end octet: what frame-max counts beside the payload."""

MIN_FRAME_MAX: Final = 4096
"""Every peer takes frames of this size (§4.2.3)."""

INITIAL_FRAME_MAX: Final = 8192
"""What a server takes before frame-max is negotiated: a token in start-ok may exceed the minimum,
and RabbitMQ allows as much."""

DEFAULT_FRAME_MAX: Final = 131_072
"""What a server offers, as RabbitMQ does."""

FRAME_SIZE_TOLERANCE_OCTETS: Final = FRAME_OVERHEAD_OCTETS
"""By how much a frame may exceed frame-max: many clients forget to count header and end octet, and
RabbitMQ lets them."""

_HEADER = struct.Struct(">BHI")


class FrameType(IntEnum):
    """What a frame's payload is."""

    METHOD = 1
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8


class Frame(NamedTuple):
    """A whole frame.

    Attributes:
        type: A `FrameType`, or what the peer sent in its place.
        channel: 0 for what concerns the connection.
        payload: What is between header and end octet.
    """

    type: int
    channel: int
    payload: bytes


def answer_to_header(received: bytes) -> bytes:
    """Return what to answer to the first eight octets of a client.

    Nothing is answered to the right header: the connection goes on with connection.start. To any
    other, the answer is the header that this room speaks, and the connection is to be closed.
    """
    return b"" if received == PROTOCOL_HEADER else PROTOCOL_HEADER


def write_frame(out: bytearray, frame_type: int, channel: int, payload: bytes) -> None:
    """Append a frame to `out`."""
    out += _HEADER.pack(frame_type, channel, len(payload))
    out += payload
    out.append(FRAME_END)


def write_body_frames(out: bytearray, channel: int, body: bytes, frame_max: int) -> None:
    """Append a body to `out`, in frames of at most `frame_max` octets; an empty one has none."""
    if frame_max <= FRAME_OVERHEAD_OCTETS:
        raise EncodeError(f"frame-max {frame_max} leaves no room for a payload")
    payload_max = frame_max - FRAME_OVERHEAD_OCTETS
    view = memoryview(body)
    for at in range(0, len(body), payload_max):
        piece = view[at : at + payload_max]
        out += _HEADER.pack(FrameType.BODY, channel, len(piece))
        out += piece
        out.append(FRAME_END)


def _heartbeat() -> bytes:
    out = bytearray()
    write_frame(out, FrameType.HEARTBEAT, 0, b"")
    return bytes(out)


HEARTBEAT: Final = _heartbeat()
"""The only frame of its type that is allowed."""


class FrameReader:
    """Cuts a stream of octets into frames.

    Attributes:
        frame_max: The largest frame taken, in octets; it may change between two frames.
    """

    def __init__(self, frame_max: int = INITIAL_FRAME_MAX) -> None:
        self.frame_max = frame_max
        self._buffer = bytearray()

    def feed(self, octets: bytes) -> Iterator[Frame]:
        """Take octets in and yield the frames that are whole now.

        Frames that the caller does not ask for stay in the buffer.

        Raises:
            ProtocolError: A frame is too large, or does not end where it should; the stream cannot
                be read on.
        """
        self._buffer += octets
        while len(self._buffer) >= _HEADER.size:
            frame_type, channel, size = _HEADER.unpack_from(self._buffer)
            self._check_size(frame_type, channel, size)
            end = _HEADER.size + size
            if len(self._buffer) <= end:
                return
            if self._buffer[end] != FRAME_END:
                raise _frame_error(
                    f"type {frame_type}, channel {channel}: invalid frame end marker "
                    f"{self._buffer[end]} (expected {FRAME_END})"
                )
            payload = bytes(memoryview(self._buffer)[_HEADER.size : end])
            del self._buffer[: end + 1]
            yield Frame(frame_type, channel, payload)

    def _check_size(self, frame_type: int, channel: int, size: int) -> None:
        allowed = self.frame_max - FRAME_OVERHEAD_OCTETS
        if size > allowed + FRAME_SIZE_TOLERANCE_OCTETS:
            raise _frame_error(
                f"type {frame_type}, channel {channel}: frame too large: "
                f"payload of {size} octets (at most {allowed})"
            )


def _frame_error(explanation: str) -> ProtocolError:
    return ProtocolError(ReplyCode.FRAME_ERROR, explanation)
