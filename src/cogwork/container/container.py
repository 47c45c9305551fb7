"""The container: a process's listeners, connections, virtual hosts and nodes, wired together.

Theory of operation. Listeners accept sockets and make a `Connection` of each, with the container as
its host: it authenticates peers, answers opens, and has `Attachments` decide over links. From then
on messages move inside the compiled core and nothing here runs, but for a tick ten times a second.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
import time
from typing import TYPE_CHECKING, cast

from msgspec import structs

from cogwork import __version__
from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.performatives import Open
from cogwork.amqp.sasl import ANONYMOUS, SaslInit, SaslResponse
from cogwork.amqp.types import Symbol
from cogwork.container.access import Access
from cogwork.container.addressing import table_of
from cogwork.container.attachments import Attachments
from cogwork.container.clients import ClientContext
from cogwork.container.effects import EffectRunner
from cogwork.container.listeners import Listeners
from cogwork.container.outgoing import Outgoing
from cogwork.container.settings import BLOCK_TIMEOUT_S
from cogwork.container.view import View
from cogwork.container.virtual_host import VirtualHost
from cogwork.dataplane.connection import Connection, ConnectionSettings
from cogwork.dataplane.core import Core, IncomingLink, OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.amqp.performatives import Attach
    from cogwork.container.limits import Limits
    from cogwork.container.settings import Configuration, Listen, Queue, Vhost
    from cogwork.dataplane.core import Session
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.router.addresses import AddressTable

__all__ = ("Container",)

TICK_S = 0.1
"""How exactly time-outs of nodes and slow subscribers are kept."""

CLOSE_TIMEOUT_S = 5.0
"""A peer answers a close at once, or never."""

TOLD_MAX = 16
"""Connections beyond the limit that are kept until they are told of it; others are closed."""

SWEEP_TICKS = 10
"""Connections' time-outs and idle addresses are looked at once a second."""

IMPATIENT_S = 4.0
"""Peers that allow less silence than this are looked at with every tick, for their heartbeats."""

POLICY_DROP = 1
VHOST_PREFIX = "vhost:"
CAPABILITIES = (Symbol("ANONYMOUS-RELAY"), Symbol("cogwork:management"))

log = logging.getLogger("cogwork")


class Container:
    """One container.

    Attributes:
        id: Its name.
        incarnation: Tells its lives apart: the start's time in milliseconds.
        core: Its data plane.
        outgoing: Sends messages of its own.
        vhosts: By name; the default one's is empty.
        connections: Those that stand, each with its `ClientContext`.
    """

    def __init__(self, configuration: Configuration) -> None:
        """Makes a container that does not listen yet.

        Args:
            configuration: Checked.

        Raises:
            CogworkError: A user's hash, an address rule or a node is wrong.
        """
        self.configuration = configuration
        self.id = configuration.id or socket.gethostname()
        self.incarnation = int(time.time() * 1000)
        self.started_at = time.time()
        self.core = Core(self.on_node_fault)
        self.outgoing = Outgoing(self.core)
        self.vhosts: dict[str, VirtualHost] = {}
        self.connections: dict[Connection, ClientContext] = {}
        self.connections_accepted = 0
        self.connections_refused = 0
        self.is_draining = False
        self._limits = configuration.limits
        self._access = Access(configuration)
        self._retired: list[VirtualHost] = []
        self._attachments = Attachments(self._limits, f"_reply/{self.id}.{self.incarnation:x}")
        self._settings = _settings_of(self._limits)
        self._listeners = Listeners(self)
        self._effects = EffectRunner(self.core)
        self._opening = self._make_opening()
        self._impatient: set[Connection] = set()
        self._ticks = 0
        self._refusal_logged_s = -1.0
        self._timer: asyncio.TimerHandle | None = None
        self._limit_core()
        for name, tables in _vhosts_of(configuration).items():
            self._add_vhost(name, table_of(tables), tables.queues)

    def _limit_core(self) -> None:
        self.core.held_bytes_max = self._limits.held_bytes
        self.core.congested_at_bytes = self._limits.unsent_bytes

    def _add_vhost(self, name: str, table: AddressTable, queues: Iterable[Queue]) -> None:
        vhost = VirtualHost(self.core, name, table, self.id, self._effects.run)
        vhost.view = View(self, vhost)
        self.vhosts[name] = vhost
        for queue in queues:
            vhost.entry_of(queue.address)

    # -- life cycle

    async def start(self) -> None:
        """Listens.

        Raises:
            ListenError: A port is taken.
            TlsFilesError: A certificate cannot be used.
        """
        self._listeners.open(self.configuration.listeners)
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def reconfigure(self, configuration: Configuration) -> list[str]:
        """Takes over what a running container can; the rest stays as it was.

        Args:
            configuration: Checked.

        Returns:
            What is wrong with certificates; those in use before stay.

        Raises:
            CogworkError: Users or address rules are wrong; then nothing has changed.
        """
        old = self.configuration
        configuration = structs.replace(
            configuration, id=old.id, data_dir=old.data_dir, nodes=old.nodes
        )
        wanted = _vhosts_of(configuration)
        tables = {name: table_of(each) for name, each in wanted.items()}
        self._access.replace(configuration)
        listeners, problems = self._listeners.replaced(configuration.listeners)
        self.configuration = structs.replace(configuration, listeners=listeners)
        self._limits = self._attachments.limits = configuration.limits
        self._settings = _settings_of(self._limits)
        self._opening = self._make_opening()
        self._limit_core()
        for name, table in tables.items():
            self._take_vhost(name, table, wanted[name].queues)
        for name in self.vhosts.keys() - tables.keys():
            self._retired.append(self.vhosts.pop(name))
        return problems

    def _take_vhost(self, name: str, table: AddressTable, queues: Iterable[Queue]) -> None:
        vhost = self.vhosts.get(name)
        if vhost is None:
            self._add_vhost(name, table, queues)
            return
        vhost.table = table
        for queue in queues:
            vhost.entry_of(queue.address)

    @property
    def endpoints(self) -> list[str]:
        """Where it listens, as URLs."""
        return self._listeners.urls

    async def stop(self, drain_timeout_s: float | None = None) -> None:
        """Accepts no more, lets unsettled deliveries settle, then closes every connection.

        Args:
            drain_timeout_s: How long they may take; None for the configured limit.
        """
        self.is_draining = True
        self._listeners.close()
        limit_s = self._limits.drain_timeout_s if drain_timeout_s is None else drain_timeout_s
        deadline_s = time.monotonic() + limit_s
        while self.unsettled and time.monotonic() < deadline_s:
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.close(
                AmqpError(
                    condition=Condition.CONNECTION_FORCED,
                    description=f"container {self.id} is shutting down",
                )
            )
        self.core.flush()
        deadline_s = time.monotonic() + min(1.0, limit_s)
        while self.connections and time.monotonic() < deadline_s:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.lose()
        if self._timer is not None:
            self._timer.cancel()
        self._access.close()

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent to clients and are not settled."""
        return sum(
            session.end.unsettled
            for connection in self.connections
            for session in connection.sessions
        )

    # -- time

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.core.tick()
        now_s = self.core.now
        for vhost in (*self.vhosts.values(), *self._retired):
            try:
                self._effects.run(vhost, vhost.tick(now_s))
            except Exception as error:  # a plug-in's fault must not stop the container's clock
                self.on_node_fault(vhost, error)
        self._detach_overdue()
        for connection in list(self._impatient):
            connection.tick(now_s)
        self._ticks += 1
        if self._ticks % SWEEP_TICKS == 0:
            self._sweep(now_s)
        self.core.flush()

    def _sweep(self, now_s: float) -> None:
        for connection, client in list(self.connections.items()):
            connection.tick(now_s)
            connection.wire.shed()
            waits_s = now_s - connection.started_s
            if connection.remote is None and waits_s > self._limits.authentication_timeout_s:
                log.info("connection %d: not opened within the time limit", client.number)
                connection.lose()
            elif connection.is_over:
                self._await_close(connection, client, now_s)
        for vhost in self.vhosts.values():
            vhost.forget_idle(now_s)
        if self._retired:
            used = {client.vhost for client in self.connections.values()}
            for vhost in [each for each in self._retired if each not in used]:
                vhost.close()
                self._retired.remove(vhost)

    def _await_close(self, connection: Connection, client: ClientContext, now_s: float) -> None:
        """Gives up a peer that does not answer a close, however lively it is."""
        if client.closing_since_s is None:
            client.closing_since_s = now_s
        elif now_s - client.closing_since_s > CLOSE_TIMEOUT_S:
            connection.lose()

    def _detach_overdue(self) -> None:
        """Detaches the subscribers that are too slow for their address's policy.

        Not those for whom a publisher's unfinished delivery keeps everything back: then it is that
        publisher who goes. Consumers of one message each may take their time.
        """
        overdue, self.core.overdue = self.core.overdue, []
        for end in overdue:
            publisher = end.waits_for
            if publisher is None:
                self._detach_slow(end, "its backlog is full")
            else:
                end.pardon()
                self._detach_unfinished(publisher)
        for end in self.core.blocked_links():
            rule = getattr(end.owner.context, "rule", None)
            limit_s = rule.block_timeout_s if rule is not None else BLOCK_TIMEOUT_S
            if self.core.now - end.blocked_since_s <= limit_s:
                continue
            publisher = end.waits_for
            if publisher is not None:
                self._detach_unfinished(publisher)
            elif end.feeder is None and end.backlog_bytes and _may_not_wait(end):
                self._detach_slow(end, f"it took nothing for {limit_s:g} s")

    def _detach_unfinished(self, end: IncomingLink) -> None:
        link = cast("Link", end.owner)
        if not link.is_attached:
            return
        log.warning("publisher %r detached: it left a delivery unfinished", link.name)
        link.detach(
            AmqpError(
                condition=Condition.RESOURCE_LIMIT_EXCEEDED,
                description="a delivery was left unfinished while others waited behind it",
            )
        )

    def _detach_slow(self, end: OutgoingLink, reason: str) -> None:
        link = cast("Link", end.owner)
        if not link.is_attached:
            return
        log.warning("subscriber %r detached: %s", link.name, reason)
        link.detach(
            AmqpError(
                condition=Condition.RESOURCE_LIMIT_EXCEEDED,
                description=f"the subscriber is too slow: {reason}",
            )
        )

    # -- connections

    def accept(
        self, listen: Listen, sock: socket.socket
    ) -> tuple[Connection, ClientContext] | None:
        """Makes a connection of an accepted socket; a few too many are told why they are not."""
        excess = len(self.connections) - self._limits.connections
        if excess >= 0 or self.is_draining:
            self.connections_refused += 1
            self._log_refused()
        if excess >= TOLD_MAX or self.is_draining:
            sock.close()
            return None
        self.connections_accepted += 1
        fd = sock.fileno() if listen.transport == "amqp" else -1
        connection = Connection(self.core, self, self._settings, fd)
        client = ClientContext(
            listen,
            tuple(map(Symbol, listen.mechanisms)),
            self.connections_accepted,
            self.vhosts[""],
            self._access.permissions(None),
            peer=_peer_of(sock),
            connected_at_s=time.time(),
            is_excess=excess >= 0,
        )
        connection.context = client
        self.connections[connection] = client
        return connection, client

    def _log_refused(self) -> None:
        """Says once a second that connections are refused, however many there are."""
        if self.core.now - self._refusal_logged_s >= 1.0:
            self._refusal_logged_s = self.core.now
            reason = "the container is stopping" if self.is_draining else "the limit is reached"
            log.warning("connection refused: %d are open, %s", len(self.connections), reason)

    def client_of(self, connection: Connection) -> ClientContext:
        """Returns what is kept with a connection."""
        return cast("ClientContext", connection.context)

    def connection_named(self, name: str) -> Connection | None:
        """Finds a connection by its number, as `$management` shows it."""
        found = (each for each, client in self.connections.items() if str(client.number) == name)
        return next(found, None)

    @property
    def limits(self) -> Limits:
        """How much it takes on."""
        return self._limits

    @property
    def links(self) -> dict[str, Link]:
        """The links that stand, by link id."""
        return self._attachments.links

    def sasl_mechanisms(self, connection: Connection) -> tuple[Symbol, ...]:
        """Lists what the connection's listener offers."""
        return self.client_of(connection).mechanisms

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        """Has the login checked."""
        if not isinstance(frame, SaslInit):
            raise ProtocolError(Condition.NOT_ALLOWED, "no challenge was sent")
        self._access.authenticate(
            connection,
            frame,
            self.sasl_mechanisms(connection),
            self.client_of(connection).certificate_name,
        )

    def may_skip_sasl(self, connection: Connection) -> bool:
        """Lets a peer be anonymous without SASL where it could be with it."""
        return ANONYMOUS in self.sasl_mechanisms(connection)

    def sasl_init(self, _connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        """Never asked of a server."""
        raise ProtocolError(Condition.NOT_ALLOWED, f"mechanisms {offered} are the server's to say")

    def on_open(self, connection: Connection, opened: Open) -> None:
        """Finds the virtual host and answers the open."""
        client = self.client_of(connection)
        hostname = opened.hostname or ""
        name = hostname.removeprefix(VHOST_PREFIX) if hostname.startswith(VHOST_PREFIX) else ""
        vhost = self.vhosts.get(name)
        if vhost is not None:
            client.vhost = vhost
        client.permissions = self._access.permissions(connection.identity)
        client.is_free = client.permissions.are_all
        if 0 < connection.peer_idle_timeout_s < IMPATIENT_S:
            self._impatient.add(connection)
        connection.open(self._opening)
        if client.is_excess:
            raise ProtocolError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"{self._limits.connections} connections are open, which is the limit",
            )
        if vhost is None:
            raise ProtocolError(Condition.NOT_FOUND, f"virtual host {name!r} is not served here")

    def _make_opening(self) -> Open:
        limits = self._limits
        return Open(
            container_id=self.id,
            max_frame_size=limits.max_frame_size_bytes,
            channel_max=limits.sessions_per_connection - 1,
            idle_time_out=int(limits.idle_timeout_s * 500),
            offered_capabilities=CAPABILITIES,
            properties={
                Symbol("product"): "cogwork",
                Symbol("version"): __version__,
                Symbol("platform"): f"Python {platform.python_version()}, {platform.system()}",
            },
        )

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Has the attach decided."""
        self._attachments.take(link, attach, self.client_of(link.session.connection))

    def on_attached(self, link: Link) -> None:
        """Never happens: a container attaches no links of its own to clients."""

    def on_stopping(self, link: Link) -> None:
        """Gives back what the link held."""
        self._attachments.release(link, self.client_of(link.session.connection))

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        """Nothing is left to do."""

    def on_session_begun(self, session: SessionEndpoint) -> None:
        """Never happens: a container begins no sessions of its own with clients."""

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        """Nothing is left to do."""

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        """Forgets the connection."""
        self.connections.pop(connection, None)
        self._impatient.discard(connection)
        if error is not None:
            log.info(
                "connection %d closed: %s", self.client_of(connection).number, error.description
            )

    def on_fault(self, connection: Connection, error: BaseException) -> None:
        """Logs what went wrong with one connection."""
        log.error("connection %d: %s", self.client_of(connection).number, error, exc_info=error)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """A publisher settled: what it was told stays told."""

    def on_drained(self, link: Link) -> None:
        """Never asked for: a container does not drain publishers."""

    def on_node_fault(self, _port: object, error: Exception) -> None:
        """Logs a fault of a node; all others go on."""
        log.error("a node failed: %s", error, exc_info=error)

    # -- for people

    @property
    def process_id(self) -> int:
        """The process it runs in."""
        return os.getpid()


def _may_not_wait(end: OutgoingLink) -> bool:
    """Says whether a subscriber's policy has it detached: a dropping one only in mid-delivery."""
    return end.policy != POLICY_DROP or end.is_midway


def _settings_of(limits: Limits) -> ConnectionSettings:
    return ConnectionSettings(
        max_frame_size_bytes=limits.max_frame_size_bytes,
        channel_max=limits.sessions_per_connection - 1,
        handle_max=limits.links_per_session - 1,
        session_window_frames=limits.session_window_frames,
        idle_timeout_s=limits.idle_timeout_s,
    )


def _vhosts_of(configuration: Configuration) -> dict[str, Configuration | Vhost]:
    """Lists the tables of each virtual host, the default one's first."""
    return {"": configuration, **{vhost.name: vhost for vhost in configuration.vhosts}}


def _peer_of(sock: socket.socket) -> str:
    """Tells where a socket is connected to, as host and port."""
    try:
        name = sock.getpeername()
    except OSError:
        return ""
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)
