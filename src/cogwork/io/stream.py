"""What stands between the bytes of a socket and the bytes of AMQP: layers without I/O.

Theory of operation. TLS and WebSocket each turn one stream of bytes into another. A layer is fed
what the network brought and returns what the layer above may read; it is sent what the layer above
wrote, and what the network must get is taken out of it. Any call may produce output (a handshake
message, a pong, an alert), so the owner takes the output after each `feed`, `send` and `close`,
and also after a `feed` that raised: the last bytes tell the peer why.

Layers stack: `StackedStream(tls, websocket)` is `wss`, and is a layer itself.
"""

from __future__ import annotations

from typing import Protocol

from cogwork.amqp.errors import CogworkError

__all__ = ("ByteStream", "Chunk", "StackedStream", "StreamError")

Chunk = bytes | bytearray | memoryview
"""Bytes in any of the shapes they come in."""


class StreamError(CogworkError):
    """The peer broke the rules of TLS or WebSocket, or refused us; the connection is over."""


class ByteStream(Protocol):
    """One layer below AMQP. Owned by one connection; no call blocks."""

    @property
    def ready(self) -> bool:
        """Whether the layer's handshake is complete. What is sent earlier waits for it."""

    @property
    def peer_closed(self) -> bool:
        """Whether the peer ended the stream in order: `feed` will return nothing more."""

    def feed(self, data: Chunk) -> Chunk:
        """Take what the network brought.

        Args:
            data: Bytes from the layer below, cut anywhere.

        Returns:
            What the layer above may read; a memoryview is valid until the next `feed` only.

        Raises:
            StreamError: The stream is broken. Its last output still goes to the peer.
        """

    def send(self, data: Chunk) -> None:
        """Take what the layer above writes; big chunks cost less than many small ones."""

    def take_output(self) -> bytes:
        """Return, and forget, the bytes that the layer below must send."""

    def close(self) -> None:
        """End the stream in order; nothing may be sent afterwards."""


class StackedStream:
    """Two layers as one: what the lower one returns, the upper one is fed."""

    def __init__(self, lower: ByteStream, upper: ByteStream) -> None:
        """Put one layer on another.

        Args:
            lower: The layer next to the socket, such as TLS.
            upper: The layer next to AMQP, such as WebSocket.
        """
        self.lower = lower
        self.upper = upper

    @property
    def ready(self) -> bool:
        """Whether both handshakes are complete."""
        return self.lower.ready and self.upper.ready

    @property
    def peer_closed(self) -> bool:
        """Whether the peer ended either layer."""
        return self.upper.peer_closed or self.lower.peer_closed

    def feed(self, data: Chunk) -> Chunk:
        """Take bytes of the network through both layers."""
        opened = self.lower.feed(data)
        return self.upper.feed(opened) if opened else b""

    def send(self, data: Chunk) -> None:
        """Take bytes of AMQP; they pass the lower layer with `take_output`."""
        self.upper.send(data)

    def take_output(self) -> bytes:
        """Return the bytes for the network, through both layers."""
        self._hand_down()
        return self.lower.take_output()

    def close(self) -> None:
        """End the upper layer, then the lower one."""
        self.upper.close()
        self._hand_down()
        self.lower.close()

    def _hand_down(self) -> None:
        output = self.upper.take_output()
        if output:
            self.lower.send(output)
