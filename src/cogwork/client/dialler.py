"""Opens connections: socket, layers, SASL, open; from a list of hosts, with pauses."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from typing import TYPE_CHECKING

from cogwork.client.errors import AuthenticationError, ConnectError, connection_error
from cogwork.client.uplink import Uplink
from cogwork.dataplane.connection import Connection, ConnectionSettings
from cogwork.io.pump import READ_BYTES, SocketPump, StreamPump
from cogwork.io.stream import StackedStream
from cogwork.io.tls import client_context
from cogwork.io.tls_stream import TlsStream
from cogwork.io.websocket import WebSocketStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Sequence

    from cogwork.client.options import Options
    from cogwork.client.url import Endpoint
    from cogwork.dataplane.core import Core
    from cogwork.io.stream import ByteStream

__all__ = ("Dialler",)


class Dialler:
    """Finds a host that takes a connection. Owned by one mesh."""

    def __init__(self, core: Core, endpoints: Sequence[Endpoint], options: Options) -> None:
        """Has not dialled yet.

        Args:
            core: Whose wires the connections get.
            endpoints: Tried in this order, the one that was used last first.
            options: Time-outs, TLS, SASL, pauses.
        """
        self._core = core
        self._endpoints = list(endpoints)
        self._options = options
        self._scratch: bytearray | None = None
        self._tls = options.tls
        self._opened_s = 0.0
        self._waits_s: Iterator[float] | None = None

    async def dial(self) -> Uplink:
        """Tries every host once.

        Raises:
            AuthenticationError: One refused the user, and no other took the connection.
            ConnectError: None took it; the message says why, for each.
        """
        failures: list[ConnectError] = []
        for endpoint in list(self._endpoints):
            try:
                uplink = await self._dial_one(endpoint)
            except ConnectError as error:
                failures.append(error)
                continue
            self._endpoints.remove(endpoint)
            self._endpoints.insert(0, endpoint)
            self._opened_s = asyncio.get_running_loop().time()
            return uplink
        raise _summary(failures)

    async def dial_again(self) -> Uplink:
        """Tries every host again and again, with growing pauses.

        Raises:
            AuthenticationError: The user is not known any more.
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
                return await self.dial()
            except AuthenticationError:
                raise
            except ConnectError:
                limit_s = retry.give_up_after_s
                if limit_s is not None and loop.time() - began_s >= limit_s:
                    raise

    async def _dial_one(self, endpoint: Endpoint) -> Uplink:
        limit_s = self._options.connect_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                sock = await _connected_socket(endpoint)
                return await self._open(endpoint, sock)
        except TimeoutError:
            raise ConnectError(f"{endpoint}: no answer within {limit_s:g} s") from None
        except OSError as error:
            if isinstance(error, ConnectError):
                raise
            raise ConnectError(f"{endpoint}: {_reason(error)}") from error

    async def _open(self, endpoint: Endpoint, sock: socket.socket) -> Uplink:
        uplink = Uplink(endpoint, self._options)
        settings = ConnectionSettings(
            max_frame_size_bytes=self._options.max_frame_size_bytes,
            idle_timeout_s=self._options.idle_timeout_s,
        )
        is_plain = endpoint.scheme == "amqp"
        try:
            stream = None if is_plain else self._stream_to(endpoint)
            fd = sock.fileno() if is_plain else -1
            connection = Connection(self._core, uplink, settings, fd)
        except BaseException:
            sock.close()
            raise
        if stream is None:
            pump: SocketPump | StreamPump = SocketPump(connection, sock)
        else:
            if self._scratch is None:
                self._scratch = bytearray(READ_BYTES)
            pump = StreamPump(connection, sock, stream, self._scratch)
        uplink.start(connection, pump)
        try:
            await uplink.opened
        except BaseException:
            uplink.abandon()
            raise
        return uplink

    def _stream_to(self, endpoint: Endpoint) -> ByteStream:
        encrypted = None
        if endpoint.is_encrypted:
            encrypted = TlsStream(self._tls_context(), False, server_hostname=endpoint.host)
        if not endpoint.is_web:
            assert encrypted is not None
            return encrypted
        web = WebSocketStream(server_side=False, host=endpoint.authority)
        return web if encrypted is None else StackedStream(encrypted, web)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = client_context()
        return self._tls


async def _connected_socket(endpoint: Endpoint) -> socket.socket:
    """Connects to the first address of the host that answers."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    problem: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            problem = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise problem or connection_error(str(endpoint), None)


def _reason(error: OSError) -> str:
    """Says what the system says; asyncio puts its own words in the place of that."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _summary(failures: Sequence[ConnectError]) -> ConnectError:
    """Makes one error of those of all hosts; a refused login is the most telling."""
    if len(failures) == 1:
        return failures[0]
    told = "; ".join(str(failure) for failure in failures)
    kind: type[ConnectError] = ConnectError
    if failures and all(isinstance(failure, AuthenticationError) for failure in failures):
        kind = AuthenticationError
    return kind(told or "no host is given")
