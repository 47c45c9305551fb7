"""Moves bytes between sockets and wires, on asyncio.

Theory of operation. A plain socket is read and written by the compiled core itself: the loop only
says when it is readable (`SocketPump`). Where a layer such as TLS or WebSocket stands between, the
pump reads, feeds the layer, and gives the wire what comes out of it (`StreamPump`).

A layer's work for an octet is the peer's choice: frames of WebSocket may be empty. So a layered
stream is read in small pieces at first, in larger ones while they are quick, and not at all while
what the layer itself has to say is not taken.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from cogwork.io.linger import LingeringSocket
from cogwork.io.stream import StreamError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from cogwork.dataplane.host import Transport
    from cogwork.io.stream import ByteStream
    from cogwork.io.turn import Turn

__all__ = ("READ_BYTES", "Carried", "CarriedWire", "SocketPump", "StreamPump")

READ_BYTES = 256 * 1024
"""What one read of a layered stream takes at most; plain sockets read the same."""

READ_MIN_BYTES = 4 * 1024
"""What the first read takes, and each one while reads take too long."""

READ_TIME_MAX_S = 0.005
"""Above this the next read is half as large."""

OUTPUT_MAX_BYTES = 256 * 1024
"""Ciphertext kept while the socket is full; the rest stays in the wire, where it counts."""

BACKLOG_MAX_BYTES = 4 * OUTPUT_MAX_BYTES
"""Above this nothing is read: only answers of the layer, such as pongs, can be so much."""


class CarriedWire(Protocol):
    """The compiled half of a connection, as a pump sees it."""

    on_output: Callable[[], None] | None

    @property
    def unsent_bytes(self) -> int:
        """What is not sent yet."""

    @property
    def sendable_bytes(self) -> int:
        """What of it may be sent now."""

    def on_readable(self) -> None:
        """Read the socket once."""

    def read_rest(self) -> None:
        """Read what the kernel has."""

    def on_writable(self) -> None:
        """Go on sending."""

    def send_rest(self) -> None:
        """Send what was written, as far as the socket takes it."""

    def take_output(self, size_max_bytes: int = ...) -> bytes:
        """Hand over output."""

    def feed(self, data: bytes) -> None:
        """Take in bytes, and end the batch."""

    def keep(self, size_bytes: int) -> None:
        """Take note that so much of the output taken is unsent."""

    def let_go(self) -> None:
        """Send and read nothing any more."""


class Carried(Protocol):
    """A connection, of whatever protocol, as a pump sees it."""

    transport: Transport | None

    @property
    def wire(self) -> CarriedWire:
        """Its compiled half."""

    def on_stream_error(self, error: StreamError) -> None:
        """What came is not what the layer between speaks."""

    def on_lost(self, errno: int) -> None:
        """The transport has ended."""

    def flush(self) -> None:
        """Send what was written."""


class SocketPump(LingeringSocket):
    """A plain socket; its bytes never enter Python."""

    def __init__(self, connection: Carried, sock: socket.socket, turn: Turn | None = None) -> None:
        """Start to read.

        Args:
            connection: Made with this socket's file descriptor.
            sock: Connected and non-blocking; the pump owns it from now on.
            turn: Where tasks go on that wait for what is read; None where none do.
        """
        super().__init__(sock)
        self._turn = turn
        self._is_finishing = False
        self._take(connection)

    def _take(self, connection: Carried) -> None:
        self._wire = connection.wire
        self._wire.on_output = self.want_write
        connection.transport = self
        self.read_with(self._wire.on_readable, self._turn)

    def hand_over(self, connection: Carried) -> None:
        """Carry the bytes of another connection from now on, made with the same file descriptor."""
        self._wire.let_go()
        self._take(connection)

    def on_writable(self) -> None:
        """Send what the wire still has."""
        self._wire.on_writable()
        if self._is_finishing and not self._wire.unsent_bytes:
            self.shut()

    def pause(self, is_paused: bool) -> None:
        """Read nothing for a while, or again."""
        if self._is_finishing or self.is_closed:
            return
        if is_paused:
            self._loop.remove_reader(self._socket.fileno())
        else:
            self.read_with(self._wire.on_readable, self._turn)

    def read_rest(self) -> None:
        """Read what has come of it."""
        self._wire.read_rest()

    def finish(self, *, linger: bool) -> None:
        """Send what is left and closes; lingers where the peer may still be sending."""
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
        """Give the file descriptor back; what was held until now is never sent."""
        self._wire.let_go()
        super().close()


class StreamPump(LingeringSocket):
    """A socket with a layer on it: TLS, WebSocket, or one on the other."""

    def __init__(
        self,
        connection: Carried,
        sock: socket.socket,
        stream: ByteStream,
        scratch: bytearray,
        turn: Turn | None = None,
    ) -> None:
        """Start to read.

        Args:
            connection: Made without a file descriptor.
            sock: Connected and non-blocking; the pump owns it from now on.
            stream: The layer next to AMQP, with what lies below it.
            scratch: Where reads go; the streams of one loop share it.
            turn: Where tasks go on that wait for what is read; None where none do.
        """
        super().__init__(sock)
        self._stream = stream
        self._scratch = scratch
        self._read_bytes = READ_MIN_BYTES
        self._reads = 0
        self._turn = turn
        self._is_paused = False
        self._is_asked_to_pause = False
        self._output = bytearray()
        self._is_finishing = False
        self._is_stream_closed = False
        self._take(connection)
        self.read_with(self._on_readable, turn)
        self._on_output()

    def _take(self, connection: Carried) -> None:
        self._connection = connection
        self._wire = connection.wire
        self._wire.on_output = self._on_output
        connection.transport = self

    def hand_over(self, connection: Carried) -> None:
        """Carry the bytes of another connection from now on."""
        self._wire.let_go()
        self._take(connection)

    def _on_readable(self) -> None:
        start_s = time.perf_counter()
        size_bytes = min(self._read_bytes, len(self._scratch))
        try:
            count = self._socket.recv_into(self._scratch, size_bytes)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error.errno or 0)
            return
        if count == 0:
            self._lose(0)
            return
        self._reads += 1
        with memoryview(self._scratch) as view:
            self._feed(view[:count])
        if time.perf_counter() - start_s > READ_TIME_MAX_S:
            self._read_bytes = max(READ_MIN_BYTES, self._read_bytes // 2)
        elif count == size_bytes:
            self._read_bytes = min(READ_BYTES, 2 * self._read_bytes)
        if len(self._output) > BACKLOG_MAX_BYTES and not self._is_finishing and not self.is_closed:
            self._is_paused = True
            self._loop.remove_reader(self._socket.fileno())

    def pause(self, is_paused: bool) -> None:
        """Read nothing for a while, or again."""
        self._is_asked_to_pause = is_paused
        if self._is_finishing or self.is_closed or self._is_paused:
            return
        if is_paused:
            self._loop.remove_reader(self._socket.fileno())
        else:
            self.read_with(self._on_readable, self._turn)

    def read_rest(self) -> None:
        """Read what has come of it."""
        before = -1
        while self._reads > before and not self._is_finishing and not self.is_closed:
            before = self._reads
            self._on_readable()

    def _read_on(self) -> None:
        """Read again after a pause, once what was to be sent is."""
        if self._is_paused and not self._output:
            self._is_paused = False
            if not self._is_finishing and not self._is_asked_to_pause:
                self.read_with(self._on_readable, self._turn)

    def _feed(self, data: memoryview) -> None:
        try:
            opened = self._stream.feed(data)
        except StreamError as error:
            self._send()
            self._connection.on_stream_error(error)
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
        except OSError:  # reading goes on to the end, and finds out why
            self._output.clear()
            self._wire.keep(1)  # it has not left, and never will
            return
        del self._output[:sent]
        self._wire.keep(len(self._output))
        if self._output:
            self.want_write()

    def on_writable(self) -> None:
        """Send what is encrypted already, then what the wire still has."""
        self._send()
        if not self._waits_to_write:
            self._on_output()
            self._connection.flush()
        self._read_on()
        if self._is_stream_closed and not self._output:
            self.shut()

    def close(self) -> None:
        """Give the file descriptor back; what was held until now is never sent."""
        self._wire.let_go()
        super().close()

    def _close_stream(self) -> None:
        """Say at every layer that nothing more will come."""
        self._is_stream_closed = True
        self._stream.close()
        self._send()
        if not self._output:
            self.shut()

    def finish(self, *, linger: bool) -> None:
        """Send what is left and closes; lingers where the peer may still be sending.

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
