"""Moves bytes between sockets and wires, on asyncio.

Theory of operation. A plain socket is read and written by the compiled core itself: the loop only
says when it is readable (`SocketPump`). Where a layer such as TLS or WebSocket stands between, the
pump reads, feeds the layer, and gives the wire what comes out of it (`StreamPump`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.io.linger import LingeringSocket
from cogwork.io.stream import StreamError

if TYPE_CHECKING:
    import socket

    from cogwork.dataplane.connection import Connection
    from cogwork.io.stream import ByteStream
    from cogwork.io.turn import Turn

__all__ = ("READ_BYTES", "SocketPump", "StreamPump")

READ_BYTES = 256 * 1024
"""What one read of a layered stream takes at most; plain sockets read the same."""

OUTPUT_MAX_BYTES = 256 * 1024
"""Ciphertext kept while the socket is full; the rest stays in the wire, where it counts."""


class SocketPump(LingeringSocket):
    """A plain socket; its bytes never enter Python."""

    def __init__(
        self, connection: Connection, sock: socket.socket, turn: Turn | None = None
    ) -> None:
        """Starts to read.

        Args:
            connection: Made with this socket's file descriptor.
            sock: Connected and non-blocking; the pump owns it from now on.
            turn: Where tasks go on that wait for what is read; None where none do.
        """
        super().__init__(sock)
        self._wire = connection.wire
        self._wire.on_output = self.want_write
        self._is_finishing = False
        connection.transport = self
        self.read_with(self._wire.on_readable, turn)

    def on_writable(self) -> None:
        """Sends what the wire still has."""
        self._wire.on_writable()
        if self._is_finishing and not self._wire.unsent_bytes:
            self.shut()

    def finish(self, *, linger: bool) -> None:
        """Sends what is left and closes; lingers where the peer may still be sending."""
        if self._is_finishing:
            return
        self._is_finishing = True
        self._wire.send_rest()
        if self._wire.unsent_bytes:
            self.discard_input()
            self.close_later()
        else:
            self.end(linger=linger)

    def close(self) -> None:
        """Gives the file descriptor back; what was held until now is never sent."""
        self._wire.let_go()
        super().close()


class StreamPump(LingeringSocket):
    """A socket with a layer on it: TLS, WebSocket, or one on the other."""

    def __init__(
        self,
        connection: Connection,
        sock: socket.socket,
        stream: ByteStream,
        scratch: bytearray,
        turn: Turn | None = None,
    ) -> None:
        """Starts to read.

        Args:
            connection: Made without a file descriptor.
            sock: Connected and non-blocking; the pump owns it from now on.
            stream: The layer next to AMQP, with what lies below it.
            scratch: Where reads go; the streams of one loop share it.
            turn: Where tasks go on that wait for what is read; None where none do.
        """
        super().__init__(sock)
        self._connection = connection
        self._stream = stream
        self._scratch = scratch
        self._output = bytearray()
        self._is_finishing = False
        self._is_stream_closed = False
        self._wire = connection.wire
        self._wire.on_output = self._on_output
        connection.transport = self
        self.read_with(self._on_readable, turn)
        self._on_output()

    def _on_readable(self) -> None:
        try:
            count = self._socket.recv_into(self._scratch)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error.errno or 0)
            return
        if count == 0:
            self._lose(0)
            return
        with memoryview(self._scratch) as view:
            self._feed(view[:count])

    def _feed(self, data: memoryview) -> None:
        try:
            opened = self._stream.feed(data)
        except StreamError as error:
            self._send()
            self._connection.host.on_fault(self._connection, error)
            self._lose(0)
            return
        if opened:
            self._wire.feed(bytes(opened))
        self._send()
        if self._stream.peer_closed:
            self._lose(0)

    def _lose(self, errno: int) -> None:
        self._connection.on_lost(errno)
        self._connection.flush()

    def _on_output(self) -> None:
        while self._wire.sendable_bytes and len(self._output) < OUTPUT_MAX_BYTES:
            self._stream.send(self._wire.take_output(READ_BYTES))
            self._send()
        self._send()
        if self._is_finishing and not self._is_stream_closed and not self._wire.unsent_bytes:
            self._close_stream()

    def _send(self) -> None:
        self._output += self._stream.take_output()
        if not self._output or self._waits_to_write or self.is_closed:
            return
        try:
            sent = self._socket.send(self._output)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._output.clear()
            return
        del self._output[:sent]
        if self._output:
            self.want_write()

    def on_writable(self) -> None:
        """Sends what is encrypted already, then what the wire still has."""
        self._send()
        if not self._waits_to_write:
            self._on_output()
            self._connection.flush()
        if self._is_stream_closed and not self._output:
            self.shut()

    def _close_stream(self) -> None:
        """Says at every layer that nothing more will come."""
        self._is_stream_closed = True
        self._stream.close()
        self._send()
        if not self._output:
            self.shut()

    def finish(self, *, linger: bool) -> None:
        """Sends what is left and closes; lingers where the peer may still be sending.

        What is held (see `dataplane.output`) is waited for.
        """
        if self._is_finishing:
            return
        self._on_output()
        self._is_finishing = True
        if not self._wire.sendable_bytes and self._wire.unsent_bytes:
            self.discard_input()
            self.close_later()
            return
        self._is_stream_closed = True
        self._stream.close()
        self._send()
        if self._output:
            self.discard_input()
            self.close_later()
        else:
            self.end(linger=linger)
