"""Keeps a link to another container: dials, and dials again when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from cogwork.amqp.errors import CogworkError
from cogwork.config.link_urls import link_url
from cogwork.container.mesh.connection import OtherContainerError, PasswordWantedError
from cogwork.container.mesh.control_connection import ControlConnection
from cogwork.container.mesh.data_connection import DataConnection
from cogwork.dataplane.connection import Connection
from cogwork.io.connect import connected_path, connected_socket, reason_of
from cogwork.io.pump import READ_BYTES, SocketPump, StreamPump
from cogwork.io.secret_file import SecretFileError, read_secret
from cogwork.io.tls import Watched, client_context
from cogwork.io.tls_stream import RECORD_BYTES, TlsStream

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from cogwork.config.link_urls import LinkUrl
    from cogwork.config.settings import Link
    from cogwork.container.mesh.connection import MeshConnection
    from cogwork.container.mesh.peer_link import PeerLink
    from cogwork.container.mesh.service import MeshService
    from cogwork.sasl.verifier import Keys

__all__ = ("LinkDialler", "link_context")

PAUSE_S = 0.05
PAUSE_MAX_S = 2.0
"""Pauses between attempts; each is twice the one before, and up to half longer at random."""

CONNECT_TIMEOUT_S = 5.0

LOOK_S = 60.0
"""How often it is looked who is at a link's URL, where the last one known has a link of its own."""

MEETINGS_MAX = 64
"""Attempts to meet one container twice where several share a port, before it is begun anew."""

C = TypeVar("C", bound="MeshConnection")

log = logging.getLogger("cogwork")


class LinkDialler:
    """One link that this container keeps.

    Attributes:
        link: As configured.
        url: Where it leads.
        peer_link: The connections, while they stand.
        problem: Why they do not stand; None while they do.
        last_problem: Why they did not stand last.
        peer: The other container's id; empty until it has said it.
        has_failed: Whether an attempt has failed.
        is_refused: Whether one of the two containers does not want the link.
        since_s: Since when that is so, by the wall clock.
    """

    def __init__(self, mesh: MeshService, link: Link) -> None:
        """Initialize it; it does not dial yet.

        Args:
            mesh: Gets the peer links.
            link: Where to, with its cost.

        Raises:
            BadLinkUrl: The URL is malformed.
        """
        self.link = link
        self.url = link_url(link)
        self.peer_link: PeerLink | None = None
        self.problem: str | None = "not dialled yet"
        self.last_problem = self.problem
        self.has_failed = False
        self.peer = ""
        self.is_refused = False
        self.since_s = time.time()
        self._dialled_s = 0.0
        self._mesh = mesh
        self._tls: ssl.SSLContext | None = None
        self._crl = Watched(self.url.crl)
        self._keys: dict[tuple[str, str, bytes, int], Keys] = {}
        self._scratch: bytearray | None = None
        self._token: str | None = None
        self._token_problem = ""
        self._task: asyncio.Task[None] | None = None

    def renew(self, link: Link) -> None:
        """Log in from the next attempt on as a configuration says that was read again.

        Args:
            link: To the same place; its cost stays as it was.

        Raises:
            TlsFilesError: A certificate cannot be used; everything stays as it was.
        """
        url = link_url(link)
        if self._tls is not None:
            self._tls = link_context(url)
        self._crl = Watched(url.crl)
        self.link = structs.replace(link, cost=self.link.cost)
        self.url = url

    def look(self) -> None:
        """Have the next attempt read the certificates again if the revocation list has changed.

        And tell the other container of a new token, where this one has logged in by one: once the
        first has ended, it is too late.
        """
        if self._crl.has_changed():
            self._tls = None
        if self.peer_link is not None and self.url.token_file is not None:
            self._renew_token(self.peer_link, self.url.token_file)

    def _renew_token(self, peer_link: PeerLink, file: Path) -> None:
        try:
            token = read_secret(file).text
        except SecretFileError as error:  # it may be under way
            if str(error) != self._token_problem:
                log.warning("link to %s: cannot renew its token: %s", self.url, error)
            self._token_problem = str(error)
            return
        self._token_problem = ""
        if token != self._token:
            self._token = token
            peer_link.control.send_token(token)
            self._mesh.core.flush()

    def start(self) -> None:
        """Dial until it is stopped."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        """Dial no more; the link stays as it is."""
        if self._task is not None:
            self._task.cancel()

    async def _keep(self) -> None:
        pause_s = PAUSE_S
        while True:
            await self._while_linked()
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    self.peer_link = await self._dial()
                if self.peer_link is None:
                    continue
            except TimeoutError:
                self._failed(f"no answer within {CONNECT_TIMEOUT_S:g} s")
            except (OSError, CogworkError) as error:
                self._failed(reason_of(error))
            else:
                self.problem = None
                if await self._stood_well(self.peer_link):
                    pause_s = PAUSE_S
                self._lost(self.peer_link)
            await asyncio.sleep(pause_s * (1 + random.random() / 2))  # no secret
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    async def _while_linked(self) -> None:
        """Wait while the other container's own link to this one stands, or it was cut off.

        Now and then it is dialled all the same: another one may have taken its place.
        """
        while self.peer and self._mesh.is_linked(self.peer):
            self.problem = None
            if time.monotonic() - self._dialled_s > LOOK_S:
                return
            await asyncio.sleep(PAUSE_S)
        while self.peer and self._mesh.incoming_peers.is_kept_out(self.peer):
            await asyncio.sleep(PAUSE_S)

    async def _stood_well(self, peer_link: PeerLink) -> bool:
        """Wait until the link is lost; tell whether it was ever of use."""
        await peer_link.lost.wait()
        return peer_link.was_up

    def _lost(self, peer_link: PeerLink) -> None:
        self.peer_link = None
        is_wanted = peer_link.was_up or peer_link.is_duplicate
        self.is_refused = peer_link.why_lost is not None and not is_wanted
        self._has_problem(peer_link.why_lost or "the connection was lost", is_new=peer_link.was_up)

    def _failed(self, problem: str) -> None:
        if self.peer and self._mesh.is_linked(self.peer):
            return  # by a link of its own: it was only looked who is there
        if problem != self.last_problem:
            # Of a worker that is not there the supervisor tells.
            level = logging.DEBUG if self.link.is_to_worker else logging.WARNING
            log.log(level, "link to %s: %s", self.url, problem)
        self.has_failed = True
        self.is_refused = False
        self._has_problem(problem)

    def _has_problem(self, problem: str, *, is_new: bool = False) -> None:
        if is_new or problem != self.last_problem:
            self.since_s = time.time()
        self.problem = self.last_problem = problem

    async def _dial(self) -> PeerLink | None:
        """Open the data connection, then the one for control: with that the link is there.

        Returns None where it turns out that the other container has dialled already.
        """
        number = self._mesh.diallers.next_number()
        self._dialled_s = time.monotonic()
        data = await self._open(DataConnection, number)
        self.peer = data.peer
        if self._mesh.is_linked(self.peer):
            data.connection.close()
            return None
        try:
            control = await self._open_control(number)
        except BaseException:
            data.connection.lose()
            raise
        return self._mesh.add_peer_link(control, data, self)

    async def _open_control(self, number: int) -> ControlConnection:
        """Open the second connection with the container that has the first: ports are shared."""
        for _ in range(MEETINGS_MAX - 1):
            with contextlib.suppress(OtherContainerError):
                return await self._open(ControlConnection, number)
        return await self._open(ControlConnection, number)

    async def _open(self, kind: type[C], number: int) -> C:
        try:
            return await self._open_as(kind, number)
        except PasswordWantedError:
            return await self._open_as(kind, number, tells_password=True)

    async def _open_as(self, kind: type[C], number: int, *, tells_password: bool = False) -> C:
        url = self.url
        token = None if url.token_file is None else read_secret(url.token_file).text
        opening = connected_path(url.host) if url.is_unix else connected_socket(url.host, url.port)
        sock = await opening
        try:
            is_plain = self.url.scheme != "amqps"
            stream = None if is_plain else self._encrypted()
            made = kind(self._mesh, number)
            made.tells_password = tells_password
            fd = sock.fileno() if is_plain else -1
            connection = Connection(self._mesh.core, made, made.settings, fd)
        except BaseException:
            sock.close()
            raise
        if stream is None:
            SocketPump(connection, sock)
        else:
            if self._scratch is None:
                self._scratch = bytearray(READ_BYTES + RECORD_BYTES)
            StreamPump(connection, sock, stream, self._scratch)
        end_point = None if stream is None else partial(_end_point_of, stream)
        if issubclass(kind, DataConnection):  # if the other one's is newer, both get it
            self._token = token
        made.dialled(connection, self.url, end_point, self._keys, token)
        try:
            await made.opened
        except BaseException:
            connection.lose()
            raise
        return made

    def _encrypted(self) -> TlsStream:
        if self._tls is None:
            self._tls = link_context(self.url)
        return TlsStream(self._tls, False, server_hostname=self.url.host)


def link_context(url: LinkUrl) -> ssl.SSLContext:
    """Build the TLS context of a link.

    Raises:
        TlsFilesError: A file is missing or cannot be used.
    """
    return client_context(
        url.authority,
        url.certificate,
        url.key,
        key_password=url.key_password,
        crl=url.crl,
        minimum_version=url.minimum_version,
        ciphers=url.ciphers,
    )


def _end_point_of(encrypted: TlsStream) -> bytes | None:
    return encrypted.server_end_point
