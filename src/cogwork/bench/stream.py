"""AMQP frames over a blocking socket, one at a time: for the beginning of a connection."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final, TypeVar

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.frames import (
    FRAME_HEADER_BYTES,
    PROTOCOL_HEADER_BYTES,
    FrameType,
    encode_frame,
    parse_frame_header,
)
from cogwork.amqp.performatives import (
    Close,
    Detach,
    End,
    Flow,
    Performative,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.sasl import SaslFrame, decode_sasl, encode_sasl
from cogwork.bench.url import PeerError, UnreachableError

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

__all__ = ("MAX_FRAME_SIZE", "Stream", "farewell")

MAX_FRAME_SIZE: Final = 65536
"""What we announce, in bytes."""

T = TypeVar("T")


def farewell(performative: object) -> PeerError:
    """Return the error that a Close, End or Detach is."""
    error = getattr(performative, "error", None)
    name = type(performative).__name__.lower()
    if error is None:
        return PeerError(f"the peer sent {name} without an error")
    text = f"the peer sent {name}: {error.condition}: {error.description or 'no description'}"
    return PeerError(text, str(error.condition))


class Stream:
    """Reads and writes frames; what it cannot do is a `PeerError`.

    Attributes:
        socket: The connected socket, with a time-out.
        early: Flows and transfers that arrived while something else was awaited, as bytes.
    """

    def __init__(self, connected: socket.socket) -> None:
        """Take a socket over."""
        self.socket = connected
        self.early = b""

    @property
    def is_tls(self) -> bool:
        """Whether the socket encrypts, so that its descriptor cannot be used directly."""
        return isinstance(self.socket, ssl.SSLSocket)

    def write(self, octets: bytes) -> None:
        """Send bytes."""
        try:
            self.socket.sendall(octets)
        except OSError as error:
            raise PeerError(f"the connection was lost: {error}") from None

    def send(self, performatives: Iterable[Performative]) -> None:
        """Send performatives on channel 0."""
        self.write(b"".join(encode_frame(0, encode_performative(each)) for each in performatives))

    def send_sasl(self, frame: SaslFrame) -> None:
        """Send a SASL frame."""
        self.write(encode_frame(0, encode_sasl(frame), FrameType.SASL))

    def read_header(self, wanted: bytes) -> None:
        """Read a protocol header, which must be `wanted`."""
        header = self._read(PROTOCOL_HEADER_BYTES)
        if header != wanted:
            raise PeerError(f"the protocol header is {header!r}, not {wanted!r}")

    def receive_sasl(self) -> SaslFrame:
        """Read a SASL frame."""
        try:
            return decode_sasl(self._read_frame(FrameType.SASL)[1])
        except ProtocolError as error:
            raise PeerError(f"the peer broke the protocol: {error}") from None

    def expect(self, kind: type[T]) -> T:
        """Read up to a performative of `kind`; flows and transfers on the way are kept.

        Raises:
            PeerError: The peer ended something, or sent another performative.
        """
        while True:
            header, body = self._read_frame(FrameType.AMQP)
            if not body:
                continue
            performative = self._decode(body)
            if isinstance(performative, kind):
                return performative
            if not isinstance(performative, Flow | Transfer):
                raise self._surprise(performative, kind)
            self.early += header + body

    def _surprise(self, performative: Performative, kind: type) -> PeerError:
        if isinstance(performative, Detach | End | Close):
            return farewell(performative)
        return PeerError(f"the peer sent {type(performative).__name__}, not {kind.__name__}")

    def _decode(self, body: bytes) -> Performative:
        try:
            return decode_performative(body)[0]
        except ProtocolError as error:
            raise PeerError(f"the peer broke the protocol: {error}") from None

    def _read_frame(self, frame_type: FrameType) -> tuple[bytes, bytes]:
        """Return header (an extended one included) and body."""
        start = self._read(FRAME_HEADER_BYTES)
        try:
            header = parse_frame_header(start, max_frame_size=MAX_FRAME_SIZE)
        except ProtocolError as error:
            raise PeerError(f"the peer broke the protocol: {error}") from None
        if header.type != frame_type:
            raise PeerError(f"a frame of type {header.type} arrived, not {frame_type}")
        start += self._read(header.data_offset - FRAME_HEADER_BYTES)
        return start, self._read(header.size - header.data_offset)

    def _read(self, size: int) -> bytes:
        octets = b""
        while len(octets) < size:
            try:
                part = self.socket.recv(size - len(octets))
            except TimeoutError:
                raise UnreachableError("the peer did not answer in time") from None
            except OSError as error:
                raise UnreachableError(f"the connection was lost: {error}") from None
            if not part:
                raise UnreachableError("the peer closed the connection")
            octets += part
        return octets
