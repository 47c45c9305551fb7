"""Opens connections: socket, layers, SASL, open; from a list of hosts, with pauses."""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING

from cogwork.client.connection.handler import ConnectionHandler, KeyCache, PasswordWanted
from cogwork.client.connection.redirection import Redirected, Redirection
from cogwork.client.connection.search import REDIRECTS_MAX, Search
from cogwork.client.connection.tokens import fresh_token
from cogwork.client.errors import AuthenticationError, ConnectError
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.io.connect import connected_path, connected_socket, reason_of
from cogwork.io.pump import READ_BYTES, SocketPump, StreamPump
from cogwork.io.stream import StackedStream
from cogwork.io.tls import client_context
from cogwork.io.tls_stream import TlsStream

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterator, Sequence

    from cogwork.client.connection.url import Endpoint
    from cogwork.client.options import Options
    from cogwork.dataplane.core import Core
    from cogwork.io.stream import ByteStream
    from cogwork.io.turn import Turn

__all__ = ("Connector",)

SESSION_WINDOW_FRAMES = 16_384
"""More than a link's credit is as a rule, whose flows then open the window along with it."""

log = logging.getLogger("cogwork.client")


class Connector:
    """Finds a host that takes a connection. Owned by one client."""

    def __init__(
        self, core: Core, turn: Turn, endpoints: Sequence[Endpoint], options: Options
    ) -> None:
        """Initialize it; it has not connected yet.

        Args:
            core: Whose wires the connections get.
            turn: Where tasks go on that wait for what connections bring.
            endpoints: Tried in this order, after the one that was used last and those that the
                last redirect named.
            options: Time-outs, TLS, SASL, pauses.
        """
        self._core = core
        self._turn = turn
        self._given = list(endpoints)
        self._nearest: list[Endpoint] = []
        self._moves = 0
        self._options = options
        self._scratch: bytearray | None = None
        self._tls = options.tls
        self._keys: KeyCache = {}
        self._opened_s = 0.0
        self._waits_s: Iterator[float] | None = None

    async def connect(self) -> ConnectionHandler:
        """Try every host once, and those that they redirect to.

        Raises:
            AuthenticationError: One refused the user, and no other took the connection.
            ConnectError: None took it; the message says why, for each.
        """
        search = Search(self._nearest, self._given)
        for endpoint in search:
            try:
                handler = await self._connect_one(endpoint, search)
            except Redirected as redirected:
                if self._options.force:
                    search.fail(endpoint, _unwanted(redirected))
                else:
                    log.info("%s", redirected)
                    search.follow(endpoint, redirected)
            except ConnectError as error:
                search.fail(endpoint, error)
            else:
                self._nearest = search.nearest(endpoint)
                self._opened_s = asyncio.get_running_loop().time()
                return handler
        raise _summary(search.failures)

    def follow(self, origin: Endpoint, redirection: Redirection) -> None:
        """Connect next where a connection that stands, or a link of it, is redirected to.

        Args:
            origin: Where the connection leads.
            redirection: Where the next one is to lead.

        Raises:
            ConnectError: It is not wanted, or led around for too long.
        """
        redirected = Redirected(origin, redirection)
        if self._options.force:
            raise _unwanted(redirected)
        if asyncio.get_running_loop().time() - self._opened_s > self._options.retry.longest_s:
            self._moves = 0
        if self._moves == REDIRECTS_MAX:
            raise ConnectError(f"{redirected}, after {REDIRECTS_MAX} redirects in a row")
        log.info("%s", redirected)
        self._moves += 1
        self._nearest = redirection.endpoints

    def avoid(self, endpoint: Endpoint) -> None:
        """Try a host last from now on: it has fallen silent, and another attempt would take long.

        Args:
            endpoint: Where the connection led that was lost.
        """
        self._nearest = []
        if endpoint in self._given:
            at = self._given.index(endpoint) + 1
            self._given = [*self._given[at:], *self._given[:at]]

    async def reconnect(self) -> ConnectionHandler:
        """Try every host again and again, with growing pauses.

        Raises:
            AuthenticationError: The user is not known any more, or the only token is not taken.
            ConnectError: The retry policy gave up.
        """
        retry = self._options.retry
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if self._waits_s is None or began_s - self._opened_s > retry.longest_s:
            self._waits_s = retry.waits_s(random.random)
        while True:
            await asyncio.sleep(next(self._waits_s))
            try:
                return await self.connect()
            except ConnectError as error:
                # Where tokens come anew, the next one may be good.
                if isinstance(error, AuthenticationError) and not callable(self._options.token):
                    raise
                if self._options.on_attempt_failed is not None:
                    self._options.on_attempt_failed(error)
                limit_s = retry.give_up_after_s
                if limit_s is not None and loop.time() - began_s >= limit_s:
                    raise

    async def _connect_one(self, endpoint: Endpoint, search: Search) -> ConnectionHandler:
        limit_s = self._options.connect_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                try:
                    return await self._open(endpoint, search)
                except PasswordWanted as refused:
                    log.info("%s; PLAIN is tried next", refused)
                    return await self._open(endpoint, search, tells_password=True)
        except TimeoutError:
            raise ConnectError(f"{endpoint}: no answer within {limit_s:g} s") from None
        except OSError as error:
            if isinstance(error, ConnectError):
                raise
            raise ConnectError(f"{endpoint}: {reason_of(error)}") from error

    async def _open(
        self, endpoint: Endpoint, search: Search, *, tells_password: bool = False
    ) -> ConnectionHandler:
        token = self._options.token
        fresh = None if token is None else await fresh_token(token)
        sock = await _connected(endpoint, self._options.idle_timeout_s)
        handler = ConnectionHandler(
            endpoint,
            self._options,
            insists=self._options.force or search.insists(endpoint),
            redirects=search.redirects,
            keys=self._keys,
            tells_password=tells_password,
            token=fresh,
        )
        settings = ConnectionSettings(
            max_frame_size_bytes=self._options.max_frame_size_bytes,
            session_window_frames=SESSION_WINDOW_FRAMES,
            idle_timeout_s=self._options.idle_timeout_s,
        )
        try:
            encrypted = self._encrypted(endpoint)
            stream = None if endpoint.is_plain else _stream_to(endpoint, encrypted)
            fd = sock.fileno() if endpoint.is_plain else -1
            connection = Connection(self._core, handler, settings, fd)
        except BaseException:
            sock.close()
            raise
        if stream is None:
            pump: SocketPump | StreamPump = SocketPump(connection, sock, self._turn)
        else:
            if self._scratch is None:
                self._scratch = bytearray(READ_BYTES)
            pump = StreamPump(connection, sock, stream, self._scratch, self._turn)
        bound = None if encrypted is None else partial(_end_point_of, encrypted)
        handler.start(connection, pump, bound)
        try:
            await handler.opened
        except BaseException:
            handler.abandon()
            raise
        return handler

    def _encrypted(self, endpoint: Endpoint) -> TlsStream | None:
        if not endpoint.is_encrypted:
            return None
        return TlsStream(self._tls_context(), False, server_hostname=endpoint.name)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = client_context()
        return self._tls


def _stream_to(endpoint: Endpoint, encrypted: TlsStream | None) -> ByteStream:
    if not endpoint.is_web:
        assert encrypted is not None
        return encrypted
    from cogwork.io.websocket import WebSocketStream  # noqa: PLC0415  # most need none

    web = WebSocketStream(server_side=False, host=endpoint.authority)
    return web if encrypted is None else StackedStream(encrypted, web)


def _end_point_of(encrypted: TlsStream) -> bytes | None:
    return encrypted.server_end_point


async def _connected(endpoint: Endpoint, silence_s: float) -> socket.socket:
    if endpoint.is_unix:
        return await connected_path(endpoint.host)
    return await connected_socket(endpoint.host, endpoint.port, silence_s)


def _unwanted(redirected: Redirected) -> ConnectError:
    """Make the error of a redirect where force=True rules it out."""
    made = ConnectError(f"{redirected}, which force=True rules out")
    made.condition = redirected.condition
    return made


def _summary(failures: Sequence[ConnectError]) -> ConnectError:
    """Make one error of those of all hosts; a refused login is the most telling."""
    if len(failures) == 1:
        return failures[0]
    told = "; ".join(str(failure) for failure in failures)
    kind: type[ConnectError] = ConnectError
    if failures and all(isinstance(failure, AuthenticationError) for failure in failures):
        kind = AuthenticationError
    return kind(told or "no host is given")
