"""A connection to another container: one of the two that make a link of the mesh.

Theory of operation. On the control connection the two tell each other what they know, the data
connection carries what others have sent. Both are opened by the container that dials; the other one
knows them by the properties of their open.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from cogwork import __version__
from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.extensions import ESTABLISHMENT_FAILED
from cogwork.amqp.performatives import Open
from cogwork.amqp.sasl import EXTERNAL, PLAIN, SaslCode
from cogwork.amqp.types import Symbol
from cogwork.container.mesh.names import (
    FRAME_BYTES,
    INCARNATION,
    MESH,
    NUMBER,
    OTHER_CONTAINER,
)
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.host import DiallingSide
from cogwork.io.login import ClientLogin, NoMechanismError, off_loop
from cogwork.sasl.sides import ClientContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Attach, Begin
    from cogwork.amqp.sasl import SaslInit
    from cogwork.config.link_urls import LinkUrl
    from cogwork.container.mesh.control_connection import ControlConnection
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.session_end import Session
    from cogwork.sasl.verifier import Keys

__all__ = (
    "SETTINGS",
    "TRACE",
    "LinkContext",
    "MeshConnection",
    "OtherContainerError",
    "Owner",
    "PasswordWantedError",
)

SETTINGS = ConnectionSettings(
    max_frame_size_bytes=FRAME_BYTES,
    channel_max=65_535,
    handle_max=65_535,
    session_window_frames=2048,
    idle_timeout_s=0.0,
)
"""The same in every container, for a frame that is passed on must fit everywhere. Who says nothing
on a control connection is found out by the protocol."""

TRACE = b"cogwork container"
"""What a container says of itself as an anonymous peer: it need not wait until others are known."""


class OtherContainerError(ConnectionError):
    """Who was dialled shares its port with the one that has the peer link's first connection."""


class PasswordWantedError(ConnectionError):
    """SCRAM was refused where PLAIN is offered, too, and may be tried."""


class Owner(Protocol):
    """Whose connections these are."""

    core: Core
    id: str
    incarnation: int
    silence_s: float

    def on_message(self, connection: ControlConnection, data: bytes) -> None:
        """A message of the protocol has come."""

    def on_datagram(self, connection: ControlConnection, data: memoryview) -> None:
        """A datagram has come."""

    def on_token(self, connection: ControlConnection, data: memoryview) -> None:
        """A token has come that is to hold for both connections of a link."""

    def on_lost(self, connection: MeshConnection, error: AmqpError | None) -> None:
        """A connection is over."""

    def on_begin(self, connection: Connection, channel: int, begin: Begin) -> bool:
        """Take a session that is to be passed on; False where it ends here."""

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Another container attaches a link in a tunnel."""

    def on_fault(self, connection: MeshConnection, error: BaseException) -> None:
        """Our own fault, to be logged."""


class LinkContext(Protocol):
    """Who attached a link of ours, or took one of another container's."""

    def attached(self, link: Link) -> None:
        """The other end answered."""

    def stopping(self, link: Link) -> None:
        """The compiled half is about to end."""

    def detached(self, link: Link, error: AmqpError | None) -> None:
        """It is over."""


class MeshConnection(DiallingSide):
    """What both kinds of connection have in common: login, open, and the end.

    Attributes:
        owner: The mesh.
        connection: The connection itself, from `dialled` or `adopt` on.
        number: Of the peer link, as the side that dialled counts.
        peer: The other container's id, once it opened.
        url: Where it was dialled; None for one that came.
        settings: What this side announces.
        opened: Set once the other side has opened; for the side that dialled.
        tells_password: Whether to log in by PLAIN, as SCRAM was refused.
    """

    connection: Connection

    def __init__(self, owner: Owner, number: int) -> None:
        """Start with no connection yet.

        Args:
            owner: The mesh.
            number: Of the peer link, as the side that dialled counts.
        """
        self.owner = owner
        self.number = number
        self.settings = SETTINGS
        self.peer = ""
        self.url: LinkUrl | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tells_password = False
        self._token: str | None = None
        self._keys: dict[tuple[str, str, bytes, int], Keys] = {}
        self._login = ClientLogin()
        self._end_point: Callable[[], bytes | None] | None = None
        self._fault: BaseException | None = None

    role = ""

    def opening(self) -> Open:
        """Return this side's open."""
        return Open(
            container_id=self.owner.id,
            max_frame_size=self.settings.max_frame_size_bytes,
            channel_max=self.settings.channel_max,
            idle_time_out=int(self.settings.idle_timeout_s * 500) or None,
            properties={
                Symbol("product"): "cogwork",
                Symbol("version"): __version__,
                Symbol("platform"): f"Python {platform.python_version()}, {platform.system()}",
                MESH: self.role,
                NUMBER: self.number,
                INCARNATION: self.owner.incarnation,
            },
        )

    def dialled(
        self,
        connection: Connection,
        url: LinkUrl,
        end_point: Callable[[], bytes | None] | None = None,
        keys: dict[tuple[str, str, bytes, int], Keys] | None = None,
        token: str | None = None,
    ) -> None:
        """Say the first header, on a connection that this side dialled.

        Args:
            connection: Made with this as its host.
            url: Where it leads, and who logs in.
            end_point: Tells what the TLS connection is known by; None without TLS.
            keys: Keys of SCRAM from connections before.
            token: What to log in by; None without.
        """
        self._token = token
        self.connection = connection
        self.url = url
        self._end_point = end_point
        if keys is not None:
            self._keys = keys
        self.connection.start(self.opening())

    def adopt(self, connection: Connection, opened: Open) -> None:
        """Answer the open of a container that dialled."""
        self.connection = connection
        self.peer = opened.container_id
        self.connection.host = self
        # The listener had its own limits, for clients; what is announced now has to be taken, too.
        self.connection.take_settings(self.settings)
        self._demand_frames(opened)
        self.connection.open(self.opening())
        self.begin()

    def begin(self) -> None:
        """Go to work: both sides have opened."""

    def _demand_frames(self, opened: Open) -> None:
        if opened.max_frame_size < FRAME_BYTES:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"containers take frames of {FRAME_BYTES} bytes from each other, "
                f"not of {opened.max_frame_size}",
            )

    def close(self, error: AmqpError | None) -> None:
        """Close, and tell the other side why."""
        self.connection.close(error)

    # -- what the connection asks: SASL and open

    def sasl_init(self, _connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        """Log in as the link's URL and certificate allow."""
        url = self.url
        assert url is not None
        by_name = ClientContext(
            work=off_loop,
            user=url.user,
            password=url.password or "",
            token=self._token,
            has_certificate=url.has_certificate,
            is_private=url.is_private,
            trace=TRACE,
            end_point=None if self._end_point is None else self._end_point(),
            offered=offered,
            chosen=(PLAIN,) if self.tells_password else None,
            keys=self._keys,
        )
        ways = [by_name]
        if url.user is not None and url.has_certificate:
            ways.append(replace(by_name, user=None, token=None, chosen=(EXTERNAL,)))
        for context in ways:
            with contextlib.suppress(NoMechanismError):
                return self._login.begin(context, url.host)
        names = ", ".join(offered) or "none"
        raise ProtocolError(
            Condition.UNAUTHORIZED_ACCESS,
            f"{url} offers the SASL mechanisms {names}; the link's URL needs user:password@, or "
            "a [[link]] in the configuration a certificate or a token_file",
        )

    def on_sasl_challenge(self, connection: Connection, challenge: bytes) -> None:
        """Answer, as soon as the answer is there."""
        self._login.respond(connection, challenge)

    def on_sasl_success(self, _connection: Connection, data: bytes | None) -> None:
        """Demand what the mechanism has the other container prove."""
        self._login.finish(data)

    def on_open(self, _connection: Connection, opened: Open) -> None:
        """The container that was dialled has opened."""
        if ESTABLISHMENT_FAILED in (opened.properties or {}):
            return
        if (opened.properties or {}).get(MESH) != self.role:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"{opened.container_id!r} does not answer as a container of a mesh",
            )
        self._demand_frames(opened)
        self.peer = opened.container_id
        self.begin()
        if not self.opened.done():
            self.opened.set_result(None)

    # -- what the connection asks: sessions and links

    def on_attach(self, link: Link, attach: Attach) -> None:
        """The other container attaches a link."""

    def on_attached(self, link: Link) -> None:
        """The other container answered an attach."""
        if link.context is not None:
            _context(link).attached(link)

    def on_stopping(self, link: Link) -> None:
        """A link's compiled half is about to end."""
        if link.context is not None:
            _context(link).stopping(link)

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:  # noqa: ARG002  # the contract's
        """A link has gone."""
        if link.context is not None:
            _context(link).detached(link, error)

    def on_session_begun(self, session: SessionEndpoint) -> None:
        """The other side answered a begin."""

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        """A session has ended; its links have been told."""

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """A container settled what it sent: nothing is kept of that."""

    def on_drained(self, link: Link) -> None:
        """Never asked for."""

    # -- the end

    def on_fault(self, _connection: Connection, error: BaseException) -> None:
        """Keep what went wrong: it is the cause of what follows."""
        self._fault = error
        if not self.opened.done():
            return
        self.owner.on_fault(self, error)

    def on_closed(self, _connection: Connection, error: AmqpError | None) -> None:
        """The connection is over."""
        self._login.cancel()
        if not self.opened.done():
            why = _told(error) if self._fault is None else _blamed(self._fault, self.url)
            is_elsewhere = error is not None and error.condition == OTHER_CONTAINER
            kind = OtherContainerError if is_elsewhere else ConnectionError
            is_refused = self.connection.sasl_refusal is SaslCode.AUTH
            if is_refused and self._login.may_tell_password:
                kind = PasswordWantedError
            self.opened.set_exception(kind(why))
            self.opened.exception()
        self.owner.on_lost(self, error)


def _context(link: Link) -> LinkContext:
    return cast("LinkContext", link.context)  # mesh links have no other


def _blamed(fault: BaseException, url: LinkUrl | None) -> str:
    """Return what went wrong, and what a link can name that was dialled without it."""
    is_untrusted = isinstance(fault.__cause__, ssl.SSLCertVerificationError)
    if not is_untrusted or url is None or url.authority is not None:
        return str(fault)
    return f"{fault}; by the system's authorities: a [[link]] in the configuration can name others"


def _told(error: AmqpError | None) -> str:
    if error is None:
        return "the connection was closed"
    return error.description or str(error.condition)
