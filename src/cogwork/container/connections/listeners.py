"""The container's listening sockets, and the layers of what they accept."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.redirect import Host
from cogwork.amqp.sasl import ANONYMOUS
from cogwork.amqp.types import Symbol
from cogwork.io.descriptors import Descriptors
from cogwork.io.listener import (
    OWN_MODE,
    Listener,
    ListenError,
    listening_path,
    listening_socket,
)
from cogwork.io.networks import Networks, PeerName, socket_peer
from cogwork.io.proxy_protocol import ProxyHeader
from cogwork.io.pump import READ_BYTES, SocketPump, StreamPump
from cogwork.io.stream import StackedStream
from cogwork.io.tls import ServerTls, TlsFiles
from cogwork.io.tls_stream import RECORD_BYTES, TlsStream
from cogwork.tls.identity import identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.config.settings import Listen, Tls
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peers import Peers
    from cogwork.container.workers import LinkSocket
    from cogwork.io.stream import ByteStream
    from cogwork.io.websocket import WebSocketStream

__all__ = ("Listeners", "mode_of", "tls_files")

log = logging.getLogger("cogwork")

WILDCARDS = frozenset({"0.0.0.0", "::"})
"""Addresses to listen at that nobody can connect to from elsewhere."""


PROXY_TIMEOUT_S = 5.0
"""A load balancer sends its header with the connection, not after a client's thoughts."""

DELAYED_MAX = 1024
"""Connections of sources that come too often which wait to be taken, at most."""

PROXY_HEADERS_MAX = 1024
"""Connections that wait for one, at most."""


class _Networks(NamedTuple):
    """Who may connect to a listener, and who may say for whom."""

    proxies: Networks
    allowed: Networks
    denied: Networks

    def refusal_of(self, peer: PeerName) -> str | None:
        """Say why a client may not connect; None where it may."""
        if self.denied.holds(peer):
            return "deny lists its address"
        if self.allowed and not self.allowed.holds(peer):
            return "allow does not list its address"
        return None


@dataclass(slots=True)
class _Open:
    """A listening socket, and what its connections are to be."""

    listen: Listen
    mechanisms: tuple[Symbol, ...]
    listener: Listener | None
    tls: ServerTls | None
    web: type[WebSocketStream] | None
    networks: _Networks
    more: list[Listener] = field(default_factory=list)


class Listeners:
    """Opens, reloads and closes listeners. Owned by the container.

    Attributes:
        descriptors: Of which connections leave a reserve.
    """

    def __init__(self, peers: Peers) -> None:
        """Listen nowhere yet.

        Args:
            peers: Get the connections.
        """
        self._peers = peers
        self.descriptors = Descriptors(partial(log.warning, "%s"))
        self._open: list[_Open] = []
        self._links: Listener | None = None
        self._scratch = bytearray(READ_BYTES + RECORD_BYTES)
        self._headers: set[ProxyHeader] = set()
        self._delayed: dict[socket.socket, asyncio.TimerHandle] = {}
        self._refused_logged_s = -inf
        self._refused_since = 0

    def open(
        self,
        listens: Iterable[Listen],
        *,
        is_shared: bool = False,
        held: Mapping[str, int] | None = None,
    ) -> None:
        """Open a listener for each; close all of them again where one fails.

        Args:
            listens: Where, and as what.
            is_shared: Whether other processes listen there, too.
            held: The sockets at paths that this process was given, as file descriptors.

        Raises:
            ListenError: A port or a path is taken.
            TlsFilesError: A certificate cannot be used.
        """
        try:
            for listen in listens:
                tls = ServerTls(tls_files(listen.tls)) if listen.tls is not None else None
                place = _Open(
                    listen, _mechanisms_of(listen), None, tls, _web_of(listen), _networks_of(listen)
                )
                accept = partial(self._accept, place)
                if listen.path is None:
                    sock = listening_socket(
                        listen.host,
                        listen.port or 0,
                        is_shared=is_shared,
                        silence_s=self._peers.idle_timeout_s,
                    )
                    place.listener = Listener(sock, accept, descriptors=self.descriptors)
                    self._open_more(place, accept, is_shared=is_shared)
                elif held and listen.path in held:
                    sock = socket.socket(fileno=held[listen.path])
                    place.listener = Listener(
                        sock, accept, is_shared=True, descriptors=self.descriptors
                    )
                else:
                    sock = listening_path(listen.path, mode_of(listen))
                    place.listener = Listener(
                        sock, accept, listen.path, descriptors=self.descriptors
                    )
                self._open.append(place)
        except Exception:
            self.close()
            raise

    def _open_more(
        self, place: _Open, accept: Callable[[socket.socket], None], *, is_shared: bool
    ) -> None:
        """Listen at a listener's further addresses, as far as there are such."""
        assert place.listener is not None
        for host in place.listen.more_hosts:
            try:
                sock = listening_socket(
                    host,
                    place.listener.port,
                    is_shared=is_shared,
                    silence_s=self._peers.idle_timeout_s,
                )
            except ListenError as error:
                log.debug("%s", error)
            else:
                place.more.append(Listener(sock, accept, descriptors=self.descriptors))

    def open_for_links(self, listen: LinkSocket) -> None:
        """Listen for other containers of this machine.

        Raises:
            ListenError: The socket cannot be made.
        """
        sock = listening_path(listen.path)
        self._links = Listener(sock, partial(self._accept_link, listen), listen.path)

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports that were given."""
        return [
            f"{each.listen.scheme}://{_place(each.listen, each.listener)}"
            for each in self._open
            if each.listener is not None
        ]

    @property
    def advertised(self) -> list[str]:
        """Where clients elsewhere reach it, as URLs; a wildcard address leads nobody here."""
        return [
            f"{each.listen.transport}://{host}"
            for each in self._open
            if (host := _advertised(each)) is not None
        ]

    def replaced(self, listens: Iterable[Listen]) -> tuple[list[Listen], list[str]]:
        """Have connections from now on made as `listens` says, and certificates read again.

        Sockets stay as they are: one that is not among `listens` goes on, a new one is not opened.

        Args:
            listens: As configured now.

        Returns:
            What holds for the sockets from now on, and what is wrong with certificates, where the
            ones before stay in use.
        """
        wanted = {(listen.endpoint, listen.scheme): listen for listen in listens}
        problems = []
        for place in self._open:
            listen = wanted.get((place.listen.endpoint, place.listen.scheme), place.listen)
            try:
                self._renew(place, listen)
            except (CogworkError, OSError) as error:
                problems.append(f"{place.listen.endpoint}: {error}")
        return [place.listen for place in self._open], problems

    def _renew(self, place: _Open, listen: Listen) -> None:
        """Take over certificates, which may fail, then mechanisms and origins."""
        if place.tls is not None and listen.tls is not None:
            place.tls.reload(tls_files(listen.tls))
        place.listen = structs.replace(
            place.listen,
            tls=listen.tls,
            sasl=listen.sasl,
            origins=listen.origins,
            advertise=listen.advertise,
            require_tls=listen.require_tls,
            proxy_protocol=listen.proxy_protocol,
            proxy_from=listen.proxy_from,
            allow=listen.allow,
            deny=listen.deny,
        )
        place.mechanisms = _mechanisms_of(place.listen)
        place.networks = _networks_of(place.listen)

    def look(self) -> None:
        """Read revocation lists again that have changed; what is wrong with one is told once."""
        for place in self._open:
            try:
                if place.tls is not None and place.tls.look():
                    log.info("%s: read the revocation list again", place.listen.endpoint)
            except (CogworkError, OSError) as error:
                text = "%s: cannot reload the revocation list, the old one stays in use: %s"
                log.error(text, place.listen.endpoint, error)

    def close(self) -> None:
        """Accept no more."""
        for place in self._open:
            for listener in (place.listener, *place.more):
                if listener is not None:
                    listener.close()
        self._open.clear()
        for header in self._headers:
            header.close()
        self._headers.clear()
        for sock, timer in self._delayed.items():
            timer.cancel()
            sock.close()
        self._delayed.clear()
        if self._links is not None:
            self._links.close()

    def _accept(self, place: _Open, sock: socket.socket) -> None:
        """Have a client connected, or wait for the load balancer to say who it is."""
        if place.listen.proxy_protocol:
            self._await_header(place, sock)
            return
        peer = socket_peer(sock)
        refusal = place.networks.refusal_of(peer)
        if refusal is None:
            self._connect(place, sock, peer)
        else:
            self._refuse(place, sock, peer, refusal)

    def _await_header(self, place: _Open, sock: socket.socket) -> None:
        proxy, proxies = socket_peer(sock), place.networks.proxies
        if proxies and not proxies.holds(proxy):
            self._refuse(place, sock, proxy, "proxy_from does not list its address")
            return
        if len(self._headers) >= PROXY_HEADERS_MAX:
            self._refuse(place, sock, proxy, f"{PROXY_HEADERS_MAX} wait for a PROXY header")
            return

        def take(sock: socket.socket, peer: PeerName | None) -> None:
            self._headers.discard(header)
            # Without a peer it is the load balancer's own, such as a look at our health.
            refusal = None if peer is None else place.networks.refusal_of(peer)
            if refusal is None:
                self._connect(place, sock, peer or proxy)
            else:
                self._refuse(place, sock, peer or proxy, refusal)

        def refuse(sock: socket.socket, found: str) -> None:
            self._headers.discard(header)
            expected = "expected a PROXY header of version 2"
            self._refuse(place, sock, proxy, f"found {found}, {expected}")

        header = ProxyHeader(sock, PROXY_TIMEOUT_S, take, refuse)
        self._headers.add(header)

    def _refuse(self, place: _Open, sock: socket.socket, peer: PeerName, why: str) -> None:
        """Close a connection; say why once a second, however many there are."""
        sock.close()
        self._peers.refused += 1
        self._peers.note_refusal(place.listen, peer, why)
        now_s = time.monotonic()
        if now_s - self._refused_logged_s < 1.0:
            self._refused_since += 1
            return
        more = f", and {self._refused_since} more since" if self._refused_since else ""
        self._refused_logged_s, self._refused_since = now_s, 0
        endpoint = place.listen.endpoint
        log.warning("refused a connection from %s to %s: %s%s", peer, endpoint, why, more)

    def _connect(self, place: _Open, sock: socket.socket, peer: PeerName) -> None:
        """Have a client connected now, or when it is the turn of its source address."""
        wait_s = self._peers.arrival_wait_s(peer)
        if wait_s == 0.0:
            self._connect_now(place, sock, peer)
        elif wait_s is None or len(self._delayed) >= DELAYED_MAX:
            why = "its address connects more often than limits.connection_rate_per_source"
            self._refuse(place, sock, peer, why)
        else:
            take = partial(self._take_delayed, place, sock, peer)
            self._delayed[sock] = asyncio.get_running_loop().call_later(wait_s, take)

    def _take_delayed(self, place: _Open, sock: socket.socket, peer: PeerName) -> None:
        del self._delayed[sock]
        self._connect_now(place, sock, peer)

    def _connect_now(self, place: _Open, sock: socket.socket, peer: PeerName) -> None:
        listen = place.listen
        accepted = self._peers.accept(listen, place.mechanisms, sock, peer)
        if accepted is None:
            return
        connection, client = accepted
        if listen.proxy_protocol:
            proxy = socket_peer(sock)
            log.info("connection %d: from %s by the proxy %s", client.number, peer, proxy)
        if listen.is_plain:
            SocketPump(connection, sock)
            return
        stream = self._stream_of(place, client)
        StreamPump(connection, sock, stream, self._scratch)

    def _accept_link(self, listen: LinkSocket, sock: socket.socket) -> None:
        accepted = self._peers.accept(listen, (ANONYMOUS,), sock)
        if accepted is not None:
            SocketPump(accepted[0], sock)

    def _stream_of(self, place: _Open, client: ClientContext) -> ByteStream:
        encrypted = None
        if place.tls is not None:
            encrypted = TlsStream(place.tls.context, server_side=True, scratch=self._scratch)
            client.name_of_certificate = partial(_name_in, encrypted, place)
            client.end_point = place.tls.end_point
        if place.web is not None:
            web = place.web(server_side=True, origins=tuple(place.listen.origins))
            return web if encrypted is None else StackedStream(encrypted, web)
        assert encrypted is not None
        return encrypted


def _name_in(encrypted: TlsStream, place: _Open) -> str | None:
    """Return whom a client's certificate names by the mapping that holds now."""
    tls = place.listen.tls
    assert tls is not None
    return identity_of(encrypted.peer_certificate, tls.identity_from, tls.users)


def _web_of(listen: Listen) -> type[WebSocketStream] | None:
    """Import what speaks WebSocket where a listener does: most do not, and it takes its time."""
    if listen.transport not in ("ws", "wss"):
        return None
    from cogwork.io.websocket import WebSocketStream  # noqa: PLC0415  # see above

    return WebSocketStream


def mode_of(listen: Listen) -> int:
    """Return the permissions of the file at a listener's path."""
    return OWN_MODE if listen.mode is None else int(listen.mode, 8)


def _place(listen: Listen, listener: Listener) -> str:
    return listen.path or str(Host(listen.host, listener.port))


def _networks_of(listen: Listen) -> _Networks:
    return _Networks(Networks(listen.proxy_from), Networks(listen.allow), Networks(listen.deny))


def _mechanisms_of(listen: Listen) -> tuple[Symbol, ...]:
    return tuple(map(Symbol, listen.mechanisms))


def tls_files(tls: Tls) -> TlsFiles:
    """Return where the certificates of a listener are."""
    return TlsFiles(
        certificate=Path(tls.certificate),
        key=Path(tls.key) if tls.key else None,
        client_ca=Path(tls.client_ca) if tls.client_ca else None,
        require_client_certificate=tls.require_client_certificate,
        key_password=tls.key_password,
        crl=Path(tls.crl_file) if tls.crl_file else None,
        minimum_version=tls.minimum_version,
        ciphers=tls.ciphers,
    )


def _advertised(place: _Open) -> str | None:
    """Return HOST:PORT for clients elsewhere; None where the configuration does not tell."""
    if place.listen.advertise is not None:
        return place.listen.advertise
    is_elsewhere = place.listen.path is None and place.listen.host not in WILDCARDS
    if place.listener is None or not is_elsewhere:
        return None
    return str(Host(place.listen.host, place.listener.port))
