"""One kind's socket: a ROUTER, drained in bounded batches on the event loop.

Theory of operation. ZeroMQ's descriptor says that something has happened to a socket, once, and not
that something can be read: so it is read until there is nothing, and looked at again after each
send, which may have swallowed the news. A batch is bounded; the rest has its turn after others.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import zmq
from zmq.backend import Socket as PlainSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.gateways.zeromq.curve import Keys
    from cogwork.gateways.zeromq.kind import Kind
    from cogwork.gateways.zeromq.options import Options
    from cogwork.plugin.gateway import Watch

__all__ = ("Lane", "Sent")

BATCH_MAX = 128
"""Messages read in one turn: some milliseconds of work at most."""

NOBLOCK, MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
EVENTS, POLLIN = int(zmq.EVENTS), int(zmq.POLLIN)
"""As integers: enumerations cost more than what is done with them."""

USER_ID = "User-Id"
"""What ZeroMQ calls who a handshake was found to be with (RFC 27)."""

PARTS_MAX = 16
"""Frames of one message that are kept; none has so many."""

HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 10_000, 30_000
"""A peer whose machine has gone gives its descriptor back within half a minute."""

KEEP_ALIVE_S, KEEP_ALIVE_PROBES = 30, 3
"""Old peers answer no heartbeats of ZeroMQ; the kernel finds out about those within a minute, by
keep-alive probes and, where sent bytes are not acknowledged, by `TCP_USER_TIMEOUT`."""

HANDSHAKE_MS = 5_000
"""A connection that does not get through its handshake holds a descriptor for so long."""


class Sent(Enum):
    """What became of a message to a client."""

    YES = 0
    FULL = 1
    GONE = 2


class Lane:
    """A socket, and what reads it.

    Attributes:
        kind: What it is for.
        endpoint: Where it is bound, with the port that was given.
        received: Messages that came in.
        sent: Messages that went out.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        kind: Kind,
        endpoint: str,
        options: Options,
        keys: Keys | None,
    ) -> None:
        """Bind the socket.

        Args:
            context: Of the gateway.
            kind: What it is for.
            endpoint: Where to.
            options: Sizes and high-water marks.
            keys: For CURVE; None speaks NULL.

        Raises:
            zmq.ZMQError: The endpoint is taken, or cannot be bound.
        """
        self.kind = kind
        self.received = 0
        self.sent = 0
        self._watch: Watch | None = None
        self._on_message: Callable[[Lane, list[bytes], str | None], None] = _ignore
        self._has_users = keys is not None and keys.clients is not None
        self._on_batch: Callable[[], None] = _do_nothing
        self._is_due = False
        self._is_paused = False
        self._socket = context.socket(zmq.ROUTER)
        try:
            self._prepare(options, keys)
            self._socket.bind(endpoint)
        except BaseException:
            self._socket.close(0)
            raise
        self._fd = int(self._socket.get(zmq.FD))
        bound = self._socket.get(zmq.LAST_ENDPOINT)
        assert isinstance(bound, bytes)
        self.endpoint = bound.rstrip(b"\0").decode()

    def _prepare(self, options: Options, keys: Keys | None) -> None:
        socket = self._socket
        socket.linger = 0
        socket.router_mandatory = True
        socket.maxmsgsize = options.message_size_bytes_max
        socket.rcvhwm = socket.sndhwm = options.high_water_mark
        socket.heartbeat_ivl = HEARTBEAT_MS
        socket.heartbeat_timeout = HEARTBEAT_TIMEOUT_MS
        socket.tcp_keepalive = 1
        socket.tcp_keepalive_idle = KEEP_ALIVE_S
        socket.tcp_keepalive_intvl = KEEP_ALIVE_S // KEEP_ALIVE_PROBES
        socket.tcp_keepalive_cnt = KEEP_ALIVE_PROBES
        socket.tcp_maxrt = 2 * KEEP_ALIVE_S * 1000
        socket.handshake_ivl = HANDSHAKE_MS
        if keys is not None:
            keys.guard(socket)

    def start(
        self,
        watch: Watch,
        on_message: Callable[[Lane, list[bytes], str | None], None],
        on_batch: Callable[[], None],
    ) -> None:
        """Read from now on.

        Args:
            watch: The event loop.
            on_message: Gets each message, with the frame of ZeroMQ that names its sender's
                connection, and the public key that it has proved to have; None where nobody
                has to.
            on_batch: Called after each batch of them.
        """
        self._watch = watch
        self._on_message = on_message
        self._on_batch = on_batch
        watch.add_reader(self._fd, self._drain)
        self._drain()

    def _drain(self) -> None:
        """Read what there is, and what comes while that is worked on; bounded, as a turn is."""
        self._is_due = True
        left = BATCH_MAX
        try:
            while before := left:
                while left and not self._is_paused and self._events() & POLLIN:
                    left -= 1
                    self.received += 1
                    self._on_message(self, *self._receive())
                if left == before:
                    return
                self._on_batch()
        finally:  # whatever comes of a message, there is another turn for those behind it
            self._is_due = False
            self.look_again()

    def _events(self) -> int:
        found = PlainSocket.get(self._socket, EVENTS)
        assert isinstance(found, int)
        return found

    def _receive(self) -> tuple[list[bytes], str | None]:
        """Read a message that is there, and by which public key it came.

        That is asked of each message: connections name themselves, and one may take over the name
        of another one that has gone.
        """
        receive, socket = PlainSocket.recv, self._socket
        frame = receive(socket, NOBLOCK, False)
        parts = [frame.bytes]
        while frame.more:
            frame = receive(socket, NOBLOCK, False)
            if len(parts) < PARTS_MAX:
                parts.append(frame.bytes)
        return parts, str(frame.get(USER_ID)) if self._has_users else None

    def look_again(self) -> None:
        """Read in the next turn where there is something: its news may have been swallowed."""
        if self._is_due or self._is_paused or self._watch is None or self._socket.closed:
            return
        if self._events() & POLLIN:
            self._is_due = True
            self._watch.call_soon(self._drain_due)

    def _drain_due(self) -> None:
        if self._watch is not None:
            self._drain()

    def pause(self) -> None:
        """Read nothing for now: what comes waits in ZeroMQ, up to the high-water mark."""
        self._is_paused = True

    def resume(self) -> None:
        """Read again."""
        if self._is_paused:
            self._is_paused = False
            self.look_again()

    def send(self, parts: Sequence[bytes]) -> Sent:
        """Send a message to the client that its first frame names, or say why it cannot."""
        try:
            send, socket = PlainSocket.send, self._socket
            for part in parts[:-1]:
                send(socket, part, MORE)
            send(socket, parts[-1], NOBLOCK)
        except zmq.Again:
            return Sent.FULL
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            return Sent.GONE
        finally:
            self.look_again()
        self.sent += 1
        return Sent.YES

    def close(self) -> None:
        """Close the socket; what was not sent is given up."""
        if self._watch is not None:
            self._watch.remove_reader(self._fd)
            self._watch = None
        self._socket.close()


def _ignore(_lane: Lane, _parts: list[bytes], _user: str | None) -> None:
    """Nobody reads yet."""


def _do_nothing() -> None:
    """Nobody waits for the end of a batch."""
