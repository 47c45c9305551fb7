"""A connection to another container: one of the two that make a link of the mesh.

Theory of operation. The control connection has two AMQP links in each direction, one for the
protocol's messages and one for parcels; each message is a data section. The data connection carries
tunnels: sessions that end here, are passed on, or begin here. Both are opened by the container that
dials; the other one knows them by the properties of their open.
"""

from __future__ import annotations

import asyncio
import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from cogwork import __version__
from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.performatives import Open, Role
from cogwork.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN, SaslInit, build_plain
from cogwork.amqp.terminus import Target
from cogwork.amqp.types import Symbol
from cogwork.container.mesh.channel import Channel
from cogwork.container.mesh.names import (
    CONTROL,
    FAILED,
    FRAME_BYTES,
    INCARNATION,
    MESH,
    NUMBER,
    OTHER_CONTAINER,
)
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.host import DiallingSide
from cogwork.dataplane.incoming import IncomingLink
from cogwork.dataplane.loan import Loan

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach, Begin
    from cogwork.container.mesh.urls import LinkUrl
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.outgoing import OutgoingLink
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.session_end import Session

__all__ = (
    "SETTINGS",
    "TRACE",
    "ControlConnection",
    "DataConnection",
    "LinkContext",
    "OtherContainerError",
    "Owner",
)

CONTROL_ADDRESS = "$mesh"
PARCELS_ADDRESS = "$parcels"
"""What the targets on a control connection name."""

CONTROL_WINDOW = 256
"""Messages of the protocol on their way; it paces itself long before."""

PARCELS_WINDOW = 1_024
PARCELS_WAITING_BYTES_MAX = 64 * 1024 * 1024
"""Parcels on their way to a neighbour, and what may wait for it: what is more is dropped."""

WAITING_MAX = 10_000
"""Messages that may wait for a neighbour: it would have been silent long before."""

SETTINGS = ConnectionSettings(
    max_frame_size_bytes=FRAME_BYTES,
    channel_max=65_535,
    handle_max=65_535,
    session_window_frames=2048,
    idle_timeout_s=0.0,
)
"""The same in every container, for a frame that is passed on must fit everywhere. Who says nothing
on a control connection is found out by the protocol."""

ACCEPTED = 0x24
"""The outcome's descriptor code (AMQP 1.0 §3.4.2)."""

TRACE = b"cogwork container"
"""What a container says of itself as an anonymous peer: it need not wait until others are known."""


class OtherContainerError(ConnectionError):
    """Who was dialled shares its port with the one that has the pair's first connection."""


class Owner(Protocol):
    """Whose connections these are."""

    core: Core
    id: str
    incarnation: int
    silence_s: float

    def on_message(self, connection: ControlConnection, data: bytes) -> None:
        """A message of the protocol has come."""

    def on_parcel(self, connection: ControlConnection, data: memoryview) -> None:
        """A parcel has come."""

    def on_lost(self, connection: MeshConnection, error: AmqpError | None) -> None:
        """A connection is over."""

    def on_begin(self, connection: Connection, channel: int, begin: Begin) -> bool:
        """Takes a session that is to be passed on; False where it ends here."""

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
        number: Of the pair, as the side that dialled counts.
        peer: The other container's id, once it opened.
        url: Where it was dialled; None for one that came.
        settings: What this side announces.
        opened: Set once the other side has opened; for the side that dialled.
    """

    connection: Connection

    def __init__(self, owner: Owner, number: int) -> None:
        """Has no connection yet.

        Args:
            owner: The mesh.
            number: Of the pair, as the side that dialled counts.
        """
        self.owner = owner
        self.number = number
        self.settings = SETTINGS
        self.peer = ""
        self.url: LinkUrl | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fault: BaseException | None = None

    role = ""

    def opening(self) -> Open:
        """Returns this side's open."""
        return Open(
            container_id=self.owner.id,
            max_frame_size=FRAME_BYTES,
            channel_max=SETTINGS.channel_max,
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

    def dialled(self, connection: Connection, url: LinkUrl) -> None:
        """Says the first header, on a connection that this side dialled."""
        self.connection = connection
        self.url = url
        self.connection.start(self.opening())

    def adopt(self, connection: Connection, opened: Open) -> None:
        """Answers the open of a container that dialled."""
        self.connection = connection
        self.peer = opened.container_id
        self.connection.host = self
        self.connection.settings = self.settings
        self._demand_frames(opened)
        self.connection.open(self.opening())
        self.begin()

    def begin(self) -> None:
        """Goes to work: both sides have opened."""

    def _demand_frames(self, opened: Open) -> None:
        if opened.max_frame_size < FRAME_BYTES:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"containers take frames of {FRAME_BYTES} bytes from each other, "
                f"not of {opened.max_frame_size}",
            )

    def close(self, error: AmqpError | None) -> None:
        """Closes, and tells the other side why."""
        self.connection.close(error)

    # -- what the connection asks: SASL and open

    def sasl_init(self, connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:  # noqa: ARG002  # the contract's
        """Logs in as the link's URL and certificate allow."""
        url = self.url
        assert url is not None
        if url.user is not None and PLAIN in offered:
            response = build_plain(url.user, url.password or "")
            return SaslInit(mechanism=PLAIN, initial_response=response, hostname=url.host)
        if url.has_certificate and EXTERNAL in offered:
            return SaslInit(mechanism=EXTERNAL, initial_response=b"", hostname=url.host)
        if url.user is None and ANONYMOUS in offered:
            return SaslInit(mechanism=ANONYMOUS, initial_response=TRACE, hostname=url.host)
        names = ", ".join(offered) or "none"
        raise ProtocolError(
            Condition.UNAUTHORIZED_ACCESS,
            f"{url} offers the SASL mechanisms {names}; the link's URL needs user:password@, or "
            "the link a certificate",
        )

    def on_open(self, connection: Connection, opened: Open) -> None:  # noqa: ARG002  # the contract's
        """The container that was dialled has opened."""
        if FAILED in (opened.properties or {}):
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

    def on_fault(self, connection: Connection, error: BaseException) -> None:  # noqa: ARG002  # the contract's
        """Keeps what went wrong: it is the cause of what follows."""
        self._fault = error
        if not self.opened.done():
            return
        self.owner.on_fault(self, error)

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:  # noqa: ARG002  # the contract's
        """The connection is over."""
        if not self.opened.done():
            why = str(self._fault) if self._fault is not None else _told(error)
            is_elsewhere = error is not None and error.condition == OTHER_CONTAINER
            kind = OtherContainerError if is_elsewhere else ConnectionError
            self.opened.set_exception(kind(why))
            self.opened.exception()
        self.owner.on_lost(self, error)


class ControlConnection(MeshConnection):
    """The connection on which two neighbours tell each other what they know."""

    role = CONTROL

    def __init__(self, owner: Owner, number: int) -> None:
        super().__init__(owner, number)
        self._protocol = Channel(owner.core, CONTROL_ADDRESS, CONTROL_WINDOW, self._on_message)
        self._parcels = Channel(owner.core, PARCELS_ADDRESS, PARCELS_WINDOW, self._on_parcel)
        self._channels = {each.address: each for each in (self._protocol, self._parcels)}

    def begin(self) -> None:
        """Attaches the links on which this side sends, each in a session of its own.

        What neighbours tell each other is served first: it is little, and much depends on it.
        """
        if self.connection.transport is not None:
            self.connection.transport.prefer()
        self.connection.wire.is_never_held = True
        for channel in self._channels.values():
            channel.open(self.connection.begin_session(), self.owner.id)

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Takes the links on which the other side sends."""
        target = attach.target
        address = target.address if isinstance(target, Target) else None
        channel = self._channels.get(address or "")
        if attach.role is not Role.SENDER or channel is None:
            link.refuse(Condition.NOT_ALLOWED, "a control connection has no other links")
            return
        channel.take(link, attach)

    def send(self, data: bytes) -> None:
        """Sends a message of the protocol, as soon as the other side takes it."""
        if self._protocol.waiting >= WAITING_MAX:
            self._give_up()
            return
        self._protocol.send(data)

    def send_parcel(self, *parts: bytes) -> bool:
        """Sends a parcel, or drops it where too much waits already; returns whether it goes."""
        if self._parcels.waiting_bytes + sum(map(len, parts)) > PARCELS_WAITING_BYTES_MAX:
            return False
        self._parcels.send(*parts)
        return True

    def _on_message(self, data: memoryview) -> None:
        self.owner.on_message(self, bytes(data))

    def _on_parcel(self, data: memoryview) -> None:
        self.owner.on_parcel(self, data)

    def _give_up(self) -> None:
        """Ends a connection whose other end says hello, and takes nothing."""
        error = AmqpError(
            condition=Condition.RESOURCE_LIMIT_EXCEEDED,
            description=f"{WAITING_MAX} messages of the protocol wait to be taken",
        )
        asyncio.get_running_loop().call_soon(self.connection.lose, error)

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        """The connection is over."""
        for channel in self._channels.values():
            channel.close()
        super().on_closed(connection, error)


class DataConnection(MeshConnection):
    """The connection on which tunnels run."""

    role = "data"

    def __init__(self, owner: Owner, number: int) -> None:
        super().__init__(owner, number)
        self.settings = replace(SETTINGS, idle_timeout_s=owner.silence_s)
        self._carried = (0, 0)

    @property
    def carried(self) -> tuple[int, int]:
        """Counts the messages that came over it, and that went over it, whoever sent them."""
        sessions = self.connection.sessions
        ends = [link.end for session in sessions for link in session.links.values()]
        counts = [self._carried, self.connection.passed, *map(_count_of, ends)]
        return sum(incoming for incoming, _ in counts), sum(outgoing for _, outgoing in counts)

    def on_stopping(self, link: Link) -> None:
        """Keeps the count of a link that is about to end."""
        (incoming, outgoing), (more_in, more_out) = self._carried, _count_of(link.end)
        self._carried = incoming + more_in, outgoing + more_out
        super().on_stopping(link)

    def begin(self) -> None:
        """Lets sessions of others pass."""
        self.connection.relay = self.owner.on_begin

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Has the attach decided."""
        self.owner.on_attach(link, attach)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """A shard confirms what was claimed of items that it lent."""
        if not settled:
            return
        code = state[2] if len(state) > 2 else ACCEPTED
        for link in session.owner.links.values():
            if isinstance(link.end, Loan):
                link.end.confirm(first, last, code, None if code == ACCEPTED else state)


def _count_of(end: IncomingLink | OutgoingLink | None) -> tuple[int, int]:
    """Counts the messages that came, and went, by a link that has not ended."""
    if end is None or end.detached:
        return 0, 0
    return (end.deliveries, 0) if isinstance(end, IncomingLink) else (0, end.deliveries)


def _context(link: Link) -> LinkContext:
    context: LinkContext = link.context  # type: ignore[assignment]  # mesh links have no other
    return context


def _told(error: AmqpError | None) -> str:
    if error is None:
        return "the connection was closed"
    return error.description or str(error.condition)
