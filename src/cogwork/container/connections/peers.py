"""The peers of a container: their connections, from the accepted socket to the last word.

Theory of operation. `Peers` is the host of every connection: it has logins checked, answers opens,
and lets `Attachments` decide over links; `redirect`, where it is set, decides who goes to another
container instead. Once a second it looks for those that are too late with their open, silent for
too long, or do not answer a close.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cogwork import __version__
from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.extensions import (
    ANONYMOUS_RELAY,
    DELAYED_DELIVERY,
    ESTABLISHMENT_FAILED,
    TAKES_BACK,
)
from cogwork.amqp.outcomes import Released
from cogwork.amqp.performatives import Attach, Open
from cogwork.amqp.redirect import CONSOLE, FORCE, MESH, REDIRECTS
from cogwork.amqp.sasl import ANONYMOUS, SaslInit, SaslResponse
from cogwork.amqp.types import Symbol
from cogwork.container.connections.clients import who_is
from cogwork.container.connections.redirect import Newcomer
from cogwork.container.connections.roster import Roster
from cogwork.container.connections.shares import ALL, NOBODYS, Rate
from cogwork.container.gateways.inside import Inside, NoSocket
from cogwork.container.mesh.connection import TRACE
from cogwork.container.rabbitmq.identity import (
    as_rabbitmq,
    is_of_rabbitmq,
    names_vhost,
    vhost_names,
)
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.host import ListeningSide
from cogwork.io.networks import socket_peer
from cogwork.sasl.guest import GUEST, login_meant
from cogwork.sasl.mechanisms import MECHANISMS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from cogwork.amqp.redirect import Redirect
    from cogwork.config.limits import Limits
    from cogwork.config.settings import Listen
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peer import LoginPeer
    from cogwork.container.connections.shares import Excess, OwnLimits
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.security.access import Access
    from cogwork.container.vhost.link_desk import LinkDesk
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.container.workers import LinkSocket
    from cogwork.dataplane.connection import Feedable
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.session_end import Session
    from cogwork.io.networks import PeerName

__all__ = ("Peers",)

IMPATIENT_S = 4.0
"""Peers that allow less silence than this are looked at with every tick, for their heartbeats."""

REFUSED_MAX = 64
"""Who begins so many sessions, or attaches so many links, beyond its share is disconnected."""

ATTACH_WAIT_S = 10.0
"""A source address that attaches too often waits so long at most for an answer, then is refused."""

RELEASED = codec.encode(Released().to_described())

CAPABILITIES = (ANONYMOUS_RELAY, DELAYED_DELIVERY, TAKES_BACK, Symbol("cogwork:management"))

log = logging.getLogger("cogwork")


class Peers(Roster, ListeningSide):
    """The host of connections of AMQP 1.0. Owned by the container.

    Attributes:
        redirected: How many were sent elsewhere.
        mesh: Takes the connections of other containers.
        redirect: Asked whether a newcomer has to go elsewhere; None sends nobody away.
        other_protocol: Takes over the connections that begin with another protocol's header; None
            where no other is spoken.
    """

    def __init__(
        self,
        core: Core,
        container_id: str,
        access: Access,
        desk: LinkDesk,
        *,
        vhosts: Mapping[str, VirtualHost],
        limits: Limits,
    ) -> None:
        """Start with none.

        Args:
            core: The data plane.
            container_id: Whose peers they are.
            access: Decides over logins.
            desk: Decides over links.
            vhosts: Those that are served, by name.
            limits: What peers may not exceed.
        """
        super().__init__(core, access, vhosts, limits)
        self.redirected = 0
        self.mesh: MeshService | None = None
        self.redirect: Callable[[Newcomer], Redirect | None] | None = None
        self.other_protocol: Callable[[Connection, bytes], Feedable | None] | None = None
        self._container_id = container_id
        self._desk = desk
        self._offered: dict[Symbol, object] = {}
        self._attaches = Rate()
        self.limit(limits)

    def limit(self, limits: Limits, own: OwnLimits = NOBODYS) -> None:
        """Take over limits, for connections made from now on; `own` are those of single users."""
        self._limit(limits, own)
        self._opening = _opening(self._container_id, limits, self._offered)
        self._settings = ConnectionSettings(
            max_frame_size_bytes=limits.max_frame_size_bytes,
            channel_max=limits.sessions_per_connection - 1,
            handle_max=limits.links_per_session - 1,
            session_window_frames=limits.session_window_frames,
            idle_timeout_s=limits.idle_timeout_s,
        )

    def offer(self, capability: Symbol, told: object) -> None:
        """Tell peers that open from now on of one more thing that there is for them.

        Args:
            capability: What it is called, also among the properties.
            told: What they have to know of it.
        """
        self._offered[capability] = told
        self._opening = _opening(self._container_id, self._limits, self._offered)

    def accept(
        self,
        listen: Listen | LinkSocket,
        mechanisms: tuple[Symbol, ...],
        sock: socket.socket,
        peer: PeerName | None = None,
    ) -> tuple[Connection, ClientContext] | None:
        """Make a connection of an accepted socket; a few too many are told why they are not.

        Args:
            listen: The listener that accepted it.
            mechanisms: Which SASL mechanisms that one offers.
            sock: The socket; it is closed here where no connection is made.
            peer: Where the client is, as a load balancer says; None for what the socket says.
        """
        peer = socket_peer(sock) if peer is None else peer
        try:
            excess = self.admit(listen, sock, peer)
        except ConnectionRefusedError:
            return None
        fd = sock.fileno() if listen.is_plain else -1
        connection = Connection(self._core, self, self._settings, fd)
        client = self.enter(connection, listen, mechanisms, sock)
        client.peer = peer
        connection.wire.source = peer.source
        client.excess = excess
        if not listen.is_for_links:
            connection.takes_over = self.other_protocol
            self.count(client, ALL, client.source)
            self.await_open(connection, client.source)
        return connection, client

    def join(self, place: Inside, mechanisms: tuple[Symbol, ...], user: str | None) -> Connection:
        """Make the container's end of a connection within the process.

        Args:
            place: Stands where a listener does.
            mechanisms: As a listener offers them.
            user: Whose permissions hold; None is an anonymous peer.
        """
        connection = Connection(self._core, self, self._settings)
        connection.identity = user
        self.count(self.enter(connection, place, mechanisms, NoSocket(place.name)), ALL)
        return connection

    # -- time

    def sweep(self, now_s: float) -> None:
        """Let time pass, once a second."""
        self._desk.tick(now_s)
        if self.mesh is not None and not self.mesh.readiness.is_reached:
            self.takes_logins_since_s = now_s
        super().sweep(now_s)
        if self.mesh is not None:
            self.mesh.end_unwelcome(self._why_token_ended)

    def _why_token_ended(self, connection: Connection) -> str | None:
        """Return why the token of a connection holds no longer; None where it does."""
        why = self._access.why_token_ended(self.client_of(connection))
        if why is not None:
            self._security.event("connection_revoked", **who_is(connection), reason=why)
        return why

    # -- what connections ask, and tell

    def sasl_mechanisms(self, connection: LoginPeer) -> tuple[Symbol, ...]:
        """List what the connection's listener offers, as far as it can work for this peer."""
        client = self.client_of(connection)
        return self._access.offered(client.mechanisms, client)

    def authenticate(self, connection: LoginPeer, frame: SaslInit | SaslResponse) -> None:
        """Have the login checked."""
        if not isinstance(frame, SaslInit):
            self._access.respond(connection, frame.response)
            return
        offered, has_guest = self.sasl_mechanisms(connection), self._access.has(GUEST)
        frame = login_meant(frame, offered, has_guest=has_guest)
        if (
            self.mesh is not None
            and not self.mesh.readiness.is_reached
            and not self._is_container(frame)
        ):
            self.mesh.readiness.when_reached(partial(self._authenticate_held, connection, frame))
            return
        self._access.authenticate(
            connection,
            frame,
            offered,
            self.client_of(connection),
        )

    def _is_container(self, frame: SaslInit) -> bool:
        """Return whether a login is that of another container, as far as one can say."""
        if frame.mechanism == ANONYMOUS:
            return frame.initial_response == TRACE
        mechanism = MECHANISMS.get(frame.mechanism)
        if mechanism is None or not mechanism.has_user:
            return True
        user = mechanism.user_of(frame.initial_response or b"")
        return user is not None and self._access.is_container(user)

    def _authenticate_held(self, connection: LoginPeer, frame: SaslInit) -> None:
        """Go on with a login that had to wait until it is known what other containers want."""
        if not connection.is_over:
            try:
                self.authenticate(connection, frame)
            except ProtocolError as error:
                connection.on_violation(error.condition, error.description)
            connection.flush()

    def may_skip_sasl(self, connection: Connection) -> bool:
        """Let a peer be anonymous without SASL where it could be with it."""
        if self.mesh is not None and not self.mesh.readiness.is_reached:
            return False
        may_skip = ANONYMOUS in self.sasl_mechanisms(connection)
        if may_skip:
            self._security.event("login", **who_is(connection), mechanism=None)
        return may_skip

    def on_open(self, connection: Connection, opened: Open) -> None:
        """Answer an open, or refuse it."""
        try:
            self._take_open(connection, opened)
        except ProtocolError as error:
            reason = error.description
            self._security.event("open_refused", **who_is(connection), reason=reason)
            raise

    def _take_open(self, connection: Connection, opened: Open) -> None:
        """Find the virtual host, answers the open, and have it decided who has to go elsewhere."""
        client = self.client_of(connection)
        if MESH in (opened.properties or {}):
            self._hand_over(connection, opened)
            return
        try:
            if client.listen.is_for_links:
                raise ProtocolError(Condition.UNAUTHORIZED_ACCESS, "only containers connect here")
            client.vhost = self._vhost_named(opened.hostname or "")
            self.permit(connection, client)
            properties = opened.properties or {}
            is_client = CONSOLE not in properties
            redirect = self._elsewhere(client, properties) if is_client else None
            if redirect is None:
                self.demand_room(connection, client)
        except ProtocolError:
            self._open_to_refuse(connection)
            raise
        if redirect is not None:
            self.redirected += 1
            self._open_to_refuse(connection)
            size_bytes = connection.wire.max_frame_out
            connection.close(redirect.to_error(frame_size_bytes=size_bytes))
            return
        is_impatient = 0 < connection.peer_idle_timeout_s < IMPATIENT_S
        self.note_open(connection, client, is_client=is_client, is_impatient=is_impatient)
        connection.open(as_rabbitmq(self._opening) if is_of_rabbitmq(opened) else self._opening)

    def _vhost_named(self, hostname: str) -> VirtualHost:
        """Find the virtual host that an open asks for.

        A name as it is may be that of the machine, too, as clients say it by default: it stands for
        a virtual host where there is one of that name, and else for the default one.

        Raises:
            ProtocolError: There is none of the name.
        """
        if not names_vhost(hostname):
            return self._vhosts.get(hostname) or self._vhosts[""]
        names = vhost_names(hostname)
        found = [self._vhosts[name] for name in names if name in self._vhosts]
        if not found:
            text = f"virtual host {names[0]!r} is not served here"
            raise ProtocolError(Condition.NOT_FOUND, text)
        return found[0]

    def permit_anew(self, revoked: Mapping[str, str]) -> None:
        """Have other permissions hold, and end what they do not allow any more.

        Args:
            revoked: Why the logins of users hold no longer, by their names.
        """
        for connection in list(self.connections):
            client = self.client_of(connection)
            why = self.why_ended(connection, client, revoked)
            if why is not None:
                self.revoke(connection, client, why)
                continue
            self.permit(connection, client)
            self._desk.permit_anew(connection, client)
        if self.mesh is not None:
            self.mesh.end_unwelcome(partial(self._why_unwelcome, revoked))
            self.mesh.incoming_peers.owners.forget(self._access.is_container)
        self._core.flush()

    def permit_links_anew(self, connection: Connection, client: ClientContext) -> None:
        """Detach the links of a connection that its permissions do not allow any more."""
        self._desk.permit_anew(connection, client)

    def _why_unwelcome(self, revoked: Mapping[str, str], connection: Connection) -> str | None:
        """Return why the other end of a link is taken no longer; None where it is."""
        why = self._why_no_container(revoked, connection)
        if why is not None:
            self._security.event("connection_revoked", **who_is(connection), reason=why)
        return why

    def _why_no_container(self, revoked: Mapping[str, str], connection: Connection) -> str | None:
        user = connection.identity
        if self.client_of(connection).listen.is_for_links:
            return None
        client = self.client_of(connection)
        why = None if user is None else self.why_login_ended(client, user, revoked)
        if why is not None:
            return why
        if self._access.is_container(user):
            remote = connection.remote
            name = "" if remote is None else remote.container_id
            return self._access.why_not_container(user, name)
        return (
            "containers without a name may not link"
            if user is None
            else (f"user {user!r:.80} may not link any more: links need a user with mesh = true")
        )

    def _elsewhere(
        self, client: ClientContext, properties: Mapping[Symbol, object]
    ) -> Redirect | None:
        """Ask where a newcomer has to go, unless it said that it will not."""
        if self.redirect is None or properties.get(FORCE) is True:
            return None
        redirects = properties.get(REDIRECTS)
        return self.redirect(
            Newcomer(
                client.listen.scheme,
                is_near=client.listen.is_loopback,
                redirects=redirects if isinstance(redirects, int) else 0,
            )
        )

    def _hand_over(self, connection: Connection, opened: Open) -> None:
        """Give a connection to the mesh: another container dialled.

        Raises:
            ProtocolError: Its user is no container, it is not wanted, or this is a reader.
        """
        mesh = self.mesh
        if mesh is None:
            self._open_to_refuse(connection)
            text = f"{self._container_id} is no container that could be linked with"
            raise ProtocolError(Condition.NOT_ALLOWED, text)
        is_sibling = self.client_of(connection).listen.is_for_links
        if not is_sibling and not self._access.is_container(connection.identity):
            self._open_to_refuse(connection)
            user = connection.identity
            who = "a container without a name" if user is None else f"user {user!r}"
            raise ProtocolError(
                Condition.UNAUTHORIZED_ACCESS,
                f"{who} may not link with {self._container_id}: links need a user with mesh = true",
            )
        if not is_sibling:
            self._demand_own_id(connection, opened.container_id, mesh)
        self.let_go(connection, self.client_of(connection))
        try:
            mesh.adopt(connection, opened)
        except ProtocolError:
            if not connection.is_open:
                self._open_to_refuse(connection)
            raise

    def _demand_own_id(self, connection: Connection, container_id: str, mesh: MeshService) -> None:
        """See that a container is who it says: an id is bound to the user that links by it.

        Raises:
            ProtocolError: It is another user's, or a worker's.
        """
        user = connection.identity
        why = self._access.why_not_container(user, container_id)
        if why is None and not mesh.incoming_peers.owners.takes(container_id, user):
            why = f"container {container_id!r:.80} has linked as another user"
        if why is None and container_id in mesh.siblings - {self._container_id}:
            why = f"{container_id!r:.80} is a worker of this container"
        if why is not None:
            self._open_to_refuse(connection)
            log.warning("refused a link of user %r: %s", user, why)
            raise ProtocolError(Condition.UNAUTHORIZED_ACCESS, why)

    def _open_to_refuse(self, connection: Connection) -> None:
        """Answer an open, and say that a close follows which tells why."""
        properties = {**(self._opening.properties or {}), ESTABLISHMENT_FAILED: True}
        connection.open(replace(self._opening, properties=properties))

    def on_begun(self, session: SessionEndpoint) -> None:
        """Count a session; end one that is beyond a limit."""
        connection = session.connection
        client = self.client_of(connection)
        excess = self.sessions.excess(client.shares)
        self.sessions.take(client.shares)
        client.sessions += 1
        if excess is not None and not self._ends(connection, excess):
            condition = Condition.RESOURCE_LIMIT_EXCEEDED
            session.close(AmqpError(condition=condition, description=str(excess)))

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Have the attach decided, now or when it is the turn of who attaches."""
        connection = link.session.connection
        client = self.client_of(connection)
        excess = self.links.excess(client.shares)
        self.links.take(client.shares)
        if excess is not None:
            if not self._ends(connection, excess):
                link.refuse(Condition.RESOURCE_LIMIT_EXCEEDED, str(excess))
            return
        wait_s = self._attach_wait_s(client)
        if wait_s is None:
            per_s = self._limits.attach_rate_per_source
            text = (
                f"{client.source} attaches too many links a second "
                f"(limits.attach_rate_per_source = {per_s:g})"
            )
            link.refuse(Condition.RESOURCE_LIMIT_EXCEEDED, text)
        elif wait_s:
            link.put_off(partial(self._desk.take, link, attach, client))
            asyncio.get_running_loop().call_later(wait_s, _answer, link)
        else:
            self._desk.take(link, attach, client)

    def _attach_wait_s(self, client: ClientContext) -> float | None:
        """Return how long an attach has to wait; None where it is one too many."""
        if isinstance(client.listen, Inside):
            return 0.0
        now_s, per_s = time.monotonic(), self._limits.attach_rate_per_source
        return self._attaches.wait_s(client.source, now_s, per_s, ATTACH_WAIT_S)

    def _ends(self, connection: Connection, excess: Excess) -> bool:
        """Close the connection of who goes on and on beyond its share; tell whether it did."""
        is_shared = excess.holder == ALL  # then it need not be the fault of this one
        if is_shared or excess.has - excess.bound.most < REFUSED_MAX:
            return False
        log.warning("connection %d: closed, because %s", self.client_of(connection).number, excess)
        condition = Condition.RESOURCE_LIMIT_EXCEEDED
        connection.close(AmqpError(condition=condition, description=str(excess)))
        return True

    def on_stopping(self, link: Link) -> None:
        """Give back what the link held."""
        self._desk.release(link, self.client_of(link.session.connection))

    def on_detached(self, link: Link, _error: AmqpError | None, *, closed: bool) -> None:  # noqa: ARG002  # the contract's
        """Count the link no longer."""
        self.links.give_back(self.client_of(link.session.connection).shares)

    def on_session_ended(self, session: SessionEndpoint, _error: AmqpError | None) -> None:
        """Go on to the end of what was kept for links of the session."""
        client = self.client_of(session.connection)
        if client.sessions:
            client.sessions -= 1
            self.sessions.give_back(client.shares)
        self._desk.end_session(session)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        """A client wants back what has got no further than the container."""
        if not settled and state == RELEASED:
            self._core.take_back(session, first, last)

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        """Forget the connection."""
        client = self.client_of(connection)
        self._desk.end_connection(connection, client)
        self.end(connection, client, error)


def _answer(link: Link) -> None:
    """Answer an attach that had to wait, unless its link has gone."""
    link.answer()
    link.session.connection.flush()


def _opening(container_id: str, limits: Limits, offered: Mapping[Symbol, object]) -> Open:
    """Make the open that every peer is answered with."""
    return Open(
        container_id=container_id,
        max_frame_size=limits.max_frame_size_bytes,
        channel_max=limits.sessions_per_connection - 1,
        idle_time_out=int(limits.idle_timeout_s * 500),
        offered_capabilities=(*CAPABILITIES, *offered),
        properties={
            Symbol("product"): "cogwork",
            Symbol("version"): __version__,
            Symbol("platform"): f"Python {platform.python_version()}, {platform.system()}",
            **offered,
        },
    )
