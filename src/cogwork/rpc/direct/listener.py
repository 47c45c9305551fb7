"""The port that a service has of its own, and the connections that come there."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
from typing import TYPE_CHECKING

from cogwork.amqp.performatives import Open
from cogwork.amqp.redirect import Host as HostPort
from cogwork.amqp.sasl import PLAIN, SaslCode, SaslInit, SaslResponse, parse_plain
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.host import ListeningSide
from cogwork.io.listener import Listener, listening_socket
from cogwork.io.pump import READ_BYTES, SocketPump, StreamPump
from cogwork.io.tls_stream import TlsStream
from cogwork.rpc.direct.links import DirectLinks

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Attach
    from cogwork.amqp.types import Symbol
    from cogwork.client.call_options import Direct
    from cogwork.dataplane.client.request_inbox import RequestInbox
    from cogwork.dataplane.link import Link
    from cogwork.rpc.client_context import RpcContext
    from cogwork.rpc.serving.reply_sender import ReplySender
    from cogwork.rpc.serving.window import Window

__all__ = ("DirectListener",)

CONNECTIONS_MAX = 1000
"""Callers that are connected at once; others go through the mesh."""

LOGIN_S = 5.0
"""How long a connection may take until it is open."""

TICK_S = 1.0
USER = "direct"

_numbers = itertools.count(1)

log = logging.getLogger("cogwork.client.rpc")


class DirectListener(ListeningSide):
    """Takes the connections of callers; the host that the data plane asks.

    Attributes:
        url: Where it listens, with the secret; for callers that are to come.
    """

    def __init__(
        self,
        client: RpcContext,
        direct: Direct,
        addresses: frozenset[str],
        window: Window,
        *,
        take: Callable[[RequestInbox, ReplySender], object],
        lost: Callable[[ReplySender], object],
    ) -> None:
        """Initialize it; it does not listen yet.

        Args:
            client: Whose loop and core carry the connections.
            direct: Where to listen.
            addresses: Where requests may be sent.
            window: Gives the links credit.
            take: Called when requests are there.
            lost: Called when a caller has gone, with what sent its replies.
        """
        self.url = ""
        self._client = client
        self._direct = direct
        self._addresses = addresses
        self._window = window
        self._take = take
        self._lost = lost
        self._secret = secrets.token_urlsafe(24)
        self._connections: dict[Connection, DirectLinks] = {}
        self._listener: Listener | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._scratch = bytearray(READ_BYTES) if direct.tls is not None else bytearray()

    # -- life

    def open(self) -> None:
        """Listen.

        Raises:
            ListenError: The port is taken.
        """
        direct = self._direct
        self._listener = Listener(listening_socket(direct.host, direct.port), self._accept)
        scheme = "amqp" if direct.tls is None else "amqps"
        where = HostPort(direct.advertise or direct.host, self._listener.port)
        self.url = f"{scheme}://{USER}:{self._secret}@{where}"
        self._tick()

    def close(self) -> None:
        """Listen no more; what is connected stays so until `end`."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def end(self) -> None:
        """Close every connection."""
        self.close()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._connections):
            connection.close()
        self._client.core.flush()
        for connection in list(self._connections):
            connection.lose()
        self._client.core.flush()

    def _accept(self, sock: socket.socket) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            sock.close()
            return
        tls = self._direct.tls
        fd = sock.fileno() if tls is None else -1
        connection = Connection(self._client.core, self, ConnectionSettings(), fd)
        self._connections[connection] = DirectLinks(
            self._client, next(_numbers), self._addresses, self._window, self._take
        )
        if tls is None:
            SocketPump(connection, sock)
        else:
            StreamPump(connection, sock, TlsStream(tls, server_side=True), self._scratch)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        now_s = self._client.core.now
        for connection in list(self._connections):
            connection.tick(now_s)
            if connection.remote is None and now_s - connection.started_s > LOGIN_S:
                connection.lose()
        self._client.core.flush()

    # -- what connections ask

    def sasl_mechanisms(self, _connection: Connection) -> tuple[Symbol, ...]:
        """Offer the one by which a secret is told."""
        return (PLAIN,)

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        """Compare the secret."""
        if not isinstance(frame, SaslInit) or frame.mechanism != PLAIN:
            connection.sasl_done(SaslCode.AUTH)
            return
        given = parse_plain(frame.initial_response or b"").password
        if hmac.compare_digest(given.encode(), self._secret.encode()):
            connection.sasl_done(SaslCode.OK, USER)
        else:
            log.info("refused a direct connection: wrong secret")
            connection.sasl_done(SaslCode.AUTH)

    def may_skip_sasl(self, _connection: Connection) -> bool:
        """Nobody is anonymous."""
        return False

    def on_open(self, connection: Connection, _opened: Open) -> None:
        """Answer the open."""
        connection.open(
            Open(
                container_id=self._client.name,
                max_frame_size=connection.settings.max_frame_size_bytes,
                channel_max=connection.settings.channel_max,
                idle_time_out=int(connection.settings.idle_timeout_s * 500) or None,
            )
        )

    def on_attach(self, link: Link, attach: Attach) -> None:
        """A caller attaches a link."""
        self._connections[link.session.connection].attach(link, attach)

    def on_stopping(self, link: Link) -> None:
        """A link's compiled half is about to end."""
        links = self._connections.get(link.session.connection)
        if links is not None:
            links.stopping(link)

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:  # noqa: ARG002  # the contract's
        """A link has gone."""
        links = self._connections.get(link.session.connection)
        if links is not None:
            links.detached(link)

    def on_closed(self, connection: Connection, _error: AmqpError | None) -> None:
        """A caller has gone, and with it everybody who waits for what it asked."""
        links = self._connections.pop(connection, None)
        if links is not None:
            self._lost(links)

    def on_fault(self, _connection: Connection, error: BaseException) -> None:
        """Something was wrong with one connection."""
        log.info("a direct connection failed: %s", error)
