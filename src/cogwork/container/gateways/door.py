"""The door of a gateway: the client's end of a connection that has no socket."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError, Condition, ProtocolError
from cogwork.amqp.kinds import composite_from
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.performatives import Open, Role
from cogwork.amqp.redirect import FORCE
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Described, Symbol
from cogwork.container.gateways.inlet import LEFT, DoorInlet
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.core import Core
from cogwork.dataplane.encoding.codec import decode
from cogwork.dataplane.host import DiallingSide
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Attach
    from cogwork.amqp.sasl import SaslInit
    from cogwork.container.gateways.pipe import MemoryPipe
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.session_end import Session
    from cogwork.plugin.door import Inlet, Receiver, Sender

__all__ = ("GatewayDoor",)

log = logging.getLogger("cogwork")

SETTINGS = ConnectionSettings(max_frame_size_bytes=1024 * 1024, idle_timeout_s=0)
"""Frames as large as the data plane takes: nobody else waits for this pipe."""

RECEIVED = 0x23
"""A delivery state that is no outcome (AMQP 1.0 §3.4.1)."""


class GatewayDoor(DiallingSide):
    """One gateway's connection, and the host that the data plane asks.

    Attributes:
        connection: Its client's end.
    """

    def __init__(
        self, name: str, sender: Sender, is_served: Callable[[GatewayDoor, str], bool]
    ) -> None:
        """Is not joined to anything yet.

        Args:
            name: What the container calls the gateway.
            sender: Hears of outcomes.
            is_served: Tells whether anything stands at an address that this door can name.
        """
        self._name = name
        self._sender = sender
        self._is_served = is_served
        self._core = Core(self._on_error)
        self.connection = Connection(self._core, self, SETTINGS)
        self._port = Port(self._core, self)
        self._pipe: MemoryPipe | None = None
        self._sessions: list[SessionEndpoint] = []
        self._relay: OutgoingLink | None = None
        self._relay_link: Link | None = None
        self._waiting: list[DoorInlet] = []
        self._inlets: set[DoorInlet] = set()
        self._count = 0
        self._is_starved = False
        self._is_closing = False

    # -- life

    @property
    def is_closed(self) -> bool:
        """Whether nothing comes or goes any more."""
        return self.connection.is_over

    def start(self, pipe: MemoryPipe, vhost: str = "") -> None:
        """Open the connection, once its other end is there."""
        self._pipe = pipe
        self.connection.start(
            Open(
                container_id=f"gateway:{self._name}",
                hostname=f"vhost:{vhost}" if vhost else None,
                max_frame_size=SETTINGS.max_frame_size_bytes,
                properties={Symbol("product"): f"gateway {self._name}", FORCE: True},
            ),
            with_sasl=False,
        )
        pipe.run()

    def tick(self, now_s: float) -> None:
        """Let time pass: heartbeat."""
        self._core.tick()
        self.connection.tick(now_s)
        self.connection.wire.shed()

    def flush(self) -> None:
        """Have everything go on its way."""
        if self._pipe is not None:
            self._pipe.run()

    def close(self) -> None:
        """Close the connection."""
        self._is_closing = True
        self.connection.close(LEFT)
        self.flush()

    # -- sending

    def post(self, message: bytes, token: int, *, is_settled: bool) -> bool:
        """Send a message to the address in its `to`."""
        relay = self._relay
        if relay is not None and relay.send(self._port, token, message, is_settled):
            return True
        self._is_starved = True
        return False

    @property
    def size_bytes_max(self) -> int:
        """How large a message may be; 0 for any size, and until that is known."""
        link = self._relay_link
        remote = None if link is None else link.remote
        return (remote.max_message_size or 0) if remote is not None else 0

    def is_served(self, address: str) -> bool:
        """Return whether a node, or a receiver anywhere in the mesh, stands at an address now."""
        return self._is_served(self, address)

    def on_batch(self, port: Port) -> None:
        """Pass outcomes on."""
        outcomes, port.outcomes = port.outcomes, []
        port.arrivals.clear()
        has_credit = bool(port.woken)
        port.woken.clear()
        for token, code, state, _settled in outcomes:
            if code != RECEIVED:
                self._sender.on_outcome(token, code, _reason_of(state))
        if has_credit and self._is_starved:
            self._is_starved = False
            self._sender.on_credit()

    # -- receiving

    def attach(
        self, address: str | None, receiver: Receiver, credit: int, *, is_exclusive: bool = False
    ) -> Inlet:
        """Receive from an address."""
        inlet = DoorInlet(
            self._core,
            address,
            receiver,
            credit,
            self._inlets.discard,
            is_exclusive=is_exclusive,
        )
        self._inlets.add(inlet)
        if self._sessions and not self.connection.is_over:
            self._open(inlet)
        else:
            self._waiting.append(inlet)
        return inlet

    def _open(self, inlet: DoorInlet) -> None:
        if not inlet.is_closed:
            inlet.open(self._open_link(f"{self._name}-{self._next()}", Role.RECEIVER))

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _open_link(self, name: str, role: Role) -> Link:
        for session in self._sessions:
            try:
                return session.open_link(name, role)
            except ProtocolError:  # full, which is rare
                continue
        self._sessions.append(self.connection.begin_session())
        return self._sessions[-1].open_link(name, role)

    # -- what the data plane asks

    def on_open(self, connection: Connection, _opened: Open) -> None:
        """The container has opened: begins, and attaches the relay."""
        self._sessions.append(connection.begin_session())

    def on_session_begun(self, session: SessionEndpoint) -> None:
        """The container goes along."""
        if session is not self._sessions[0] or self._relay is not None:
            return
        link = self._open_link(f"{self._name}-relay", Role.SENDER)
        end = OutgoingLink(link.session.end, link.handle)
        link.attach(source=Source(), target=Target())
        link.carry(end)
        end.feeder = self._port  # so that credit wakes it
        self._relay, self._relay_link = end, link
        waiting, self._waiting = self._waiting, []
        for inlet in waiting:
            self._open(inlet)

    def on_attached(self, link: Link) -> None:
        """The container answered; a link without a terminus is about to be refused."""
        if isinstance(link.context, DoorInlet):
            link.context.attached(link)

    def on_stopping(self, link: Link) -> None:
        """A link is about to end."""

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:  # noqa: ARG002  # the contract's
        """The container detached a link."""
        if isinstance(link.context, DoorInlet):
            link.context.detached(_text_of(error))
        elif link is self._relay_link and not self._is_closing:
            log.error("gateway %s: cannot send: %s", self._name, _text_of(error))

    def on_closed(self, _connection: Connection, error: AmqpError | None) -> None:
        """The connection is over."""
        self._relay = None
        self._port.close()
        reason = "the connection was closed" if error is None else _text_of(error)
        for inlet in list(self._inlets):
            inlet.detached(reason)
        if not self._is_closing:
            log.error("gateway %s: %s", self._name, reason)
            self._sender.on_closed()

    def on_session_ended(self, _session: SessionEndpoint, error: AmqpError | None) -> None:
        """A session ended, which only happens where the container found a fault."""
        log.error("gateway %s: %s", self._name, _text_of(error))
        self.connection.close()

    def on_fault(self, _connection: Connection, error: BaseException) -> None:
        """Log what went wrong."""
        log.error("gateway %s: %s", self._name, error, exc_info=error)

    def _on_error(self, _port: object, error: Exception) -> None:
        log.error("gateway %s: %s", self._name, error, exc_info=error)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """Never asked for: links settle first."""

    def on_drained(self, link: Link) -> None:
        """Never asked for."""

    def on_attach(self, link: Link, _attach: Attach) -> None:
        """Containers attach no links of their own to clients."""
        link.refuse(Condition.NOT_ALLOWED, "a gateway takes no links")

    def sasl_init(self, _connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        """Never asked: there is no SASL inside a process."""
        raise ProtocolError(Condition.NOT_ALLOWED, f"SASL ({', '.join(offered)}) inside a process")


def _reason_of(state: bytes | None) -> str:
    """Read what the other end says of a rejection."""
    if state is None:
        return ""
    try:
        value, _ = decode(state, 0)
        decoded = composite_from(value) if isinstance(value, Described) else None
    except CogworkError:
        return ""
    if isinstance(decoded, Rejected) and decoded.error is not None:
        return _text_of(decoded.error)
    return ""


def _text_of(error: AmqpError | None) -> str:
    if error is None:
        return "detached without a reason"
    return error.description or str(error.condition)
