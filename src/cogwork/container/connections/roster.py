"""The connections of a container, whatever they speak: counted, bounded, watched and revoked.

Theory of operation. A connection is counted for its source address from the start, and for its user
once it has opened. Once a second those are looked for that are too late with their open, leave too
much unread, do not answer a close, or have logged in by what does not hold any more.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.container.connections.clients import ClientContext, peer_of, who_is
from cogwork.container.connections.newcomers import Newcomers
from cogwork.container.connections.shares import ALL, NOBODYS, Holder, Rate, Tally
from cogwork.container.gateways.inside import Inside, NoSocket
from cogwork.container.security.revocation import login_ended, why_expired, why_misnamed
from cogwork.io.stream import StreamError

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.types import Symbol
    from cogwork.config.limits import Limits
    from cogwork.config.settings import Listen
    from cogwork.container.connections.peer import Identified, Peer
    from cogwork.container.connections.shares import Excess, OwnLimits, Use
    from cogwork.container.security.access import Access
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.container.workers import LinkSocket
    from cogwork.dataplane.core import Core
    from cogwork.io.networks import PeerName

__all__ = ("Roster",)

CLOSE_TIMEOUT_S = 5.0
"""A peer answers a close at once, or never."""

TOLD_MAX = 16
"""Connections beyond a limit that are kept until they are told of it; others are closed."""

ARRIVAL_WAIT_S = 1.0
"""A source address whose clients come too often has them wait so long at most, then refused."""

RUN_FRAMES = 256
UNREAD_RUNS = 2
"""Messages are sent in runs of up to so many frames, and the last one may go beyond `unsent_bytes`.
Where so many runs wait besides, it is answers that the peer does not read."""

log = logging.getLogger("cogwork")


class Roster:
    """Owned by the container.

    Attributes:
        connections: Those that stand, each with its `ClientContext`.
        accepted: How many there have been.
        refused: How many were one too many.
        clients: How many are clients: neither linked containers nor consoles.
        is_draining: Whether no more are taken.
        takes_logins_since_s: When newcomers were last kept waiting with their logins.
        sessions: Who has how many sessions, or channels.
        links: Who has how many links, or consumers.
    """

    def __init__(
        self, core: Core, access: Access, vhosts: Mapping[str, VirtualHost], limits: Limits
    ) -> None:
        """Start with none.

        Args:
            core: The data plane.
            access: Decides over logins.
            vhosts: Those that are served, by name.
            limits: What peers may not exceed.
        """
        self.connections: dict[Peer, ClientContext] = {}
        self.accepted = 0
        self.refused = 0
        self.clients = 0
        self.is_draining = False
        self.takes_logins_since_s = 0.0
        self.sessions = Tally("sessions")
        self.links = Tally("links")
        self._core = core
        self._access = access
        self._security = access.security
        self._vhosts = vhosts
        self._refusal_logged_s = -1.0
        self._impatient: set[Peer] = set()
        self._connected = Tally("connections")
        self._newcomers: Newcomers[Peer] = Newcomers()
        self._arrivals = Rate()
        self._limit(limits, NOBODYS)

    @property
    def idle_timeout_s(self) -> float:
        """Return the silence after which a peer counts as gone."""
        return self._limits.idle_timeout_s

    @property
    def limits(self) -> Limits:
        """What peers may not exceed."""
        return self._limits

    def _limit(self, limits: Limits, own: OwnLimits) -> None:
        self._limits = limits
        for tally in (self._connected, self.sessions, self.links):
            tally.limit(limits, own)
        self._newcomers.most = limits.unauthenticated
        self._newcomers.most_of_source = limits.unauthenticated_per_source
        run_bytes = RUN_FRAMES * limits.max_frame_size_bytes
        self._unsent_bytes_max = limits.unsent_bytes + UNREAD_RUNS * run_bytes

    def uses(self) -> Iterator[Use]:
        """Yield who has most connections, sessions and links, for each limit."""
        for tally in (self._connected, self.sessions, self.links):
            yield from tally.uses()

    # -- coming and going

    def arrival_wait_s(self, peer: PeerName) -> float | None:
        """Count a client that arrives; return how long it waits, None where it is one too many."""
        source = Holder("source", peer.source)
        per_s = self._limits.connection_rate_per_source
        return self._arrivals.wait_s(source, time.monotonic(), per_s, ARRIVAL_WAIT_S)

    def await_open(self, connection: Peer, source: Holder) -> None:
        """Have a newcomer wait among those that have not opened, in the place of one if need be."""
        goes = self._newcomers.enter(source, connection)
        if goes is not None:
            log.info(
                "connection %d: closed, because it has not opened and others wait",
                self.client_of(goes).number,
            )
            goes.lose()

    def count(self, client: ClientContext, *holders: Holder) -> None:
        """Count a connection for more holders."""
        self._connected.take(holders)
        client.holders += holders

    def admit(
        self, listen: Listen | LinkSocket, sock: socket.socket, peer: PeerName
    ) -> Excess | None:
        """Decide over an accepted socket.

        Returns:
            The limit that a connection is beyond which is only kept to be told so.

        Raises:
            ConnectionRefusedError: There is to be no connection; the socket has been closed.
        """
        source = Holder("source", peer.source)
        # Links of this machine's workers do not stand with the connections of clients.
        holders = () if listen.is_for_links else (ALL, source)
        excess = self._connected.excess(holders)
        crowd = self._newcomers.excess(source) if holders else None
        if self.is_draining or crowd or excess:
            self.refused += 1
            reason = "the container is stopping" if self.is_draining else str(crowd or excess)
            self._log_refused(reason)
            self.note_refusal(listen, peer, reason)
        is_told = excess is None or excess.has - excess.bound.most < TOLD_MAX
        if self.is_draining or crowd or not is_told:
            sock.close()
            raise ConnectionRefusedError
        return excess

    def enter(
        self,
        connection: Peer,
        place: Listen | LinkSocket | Inside,
        mechanisms: tuple[Symbol, ...],
        sock: socket.socket | NoSocket,
    ) -> ClientContext:
        """Count a connection, and give it its standing: none yet."""
        self.accepted += 1
        client = ClientContext(
            place,
            mechanisms,
            self.accepted,
            self._vhosts[""],
            self._access.permissions(None),
            sock,
            time.time(),
        )
        connection.context = client
        self.connections[connection] = client
        return client

    def replace(self, connection: Peer, heir: Peer) -> None:
        """Have a connection's standing be that of another, which goes on with its transport."""
        client = self.connections.pop(connection)
        heir.context = client
        self.connections[heir] = client
        self._newcomers.leave(client.source, connection)
        self.await_open(heir, client.source)

    def _log_refused(self, reason: object) -> None:
        """Say once a second that connections are refused, however many there are."""
        if self._core.now - self._refusal_logged_s >= 1.0:
            self._refusal_logged_s = self._core.now
            log.warning("refused a connection: %d are open, %s", len(self.connections), reason)

    def note_refusal(
        self, listen: Listen | LinkSocket | Inside, peer: PeerName | str, reason: str
    ) -> None:
        """Have the security log tell of a connection that was closed before anybody logged in."""
        listener = f"{listen.scheme}://{listen.endpoint}"
        self._security.event("connection_refused", peer=str(peer), listener=listener, reason=reason)

    def client_of(self, connection: Identified) -> ClientContext:
        """Return what is kept with a connection."""
        return cast("ClientContext", connection.context)

    def users_by_origin(self) -> dict[int, Holder]:
        """Return whose the connections are, by what marks the messages that come by them."""
        return {
            each.wire.origin: Holder("user", each.identity)
            for each in self.connections
            if each.identity is not None
        }

    def connection_named(self, name: str) -> Peer | None:
        """Find a connection by its number, as `$management` shows it."""
        found = (each for each, client in self.connections.items() if str(client.number) == name)
        return next(found, None)

    def demand_room(self, connection: Peer, client: ClientContext) -> None:
        """Count a connection for its user.

        Raises:
            ProtocolError: It is beyond a limit.
        """
        users = () if connection.identity is None else (Holder("user", connection.identity),)
        excess = client.excess or self._connected.excess(users)
        if excess is None:
            self.count(client, *users)
            return
        if client.excess is None:  # else it was counted as refused when it came
            self.refused += 1
            self._log_refused(excess)
        raise ProtocolError(Condition.RESOURCE_LIMIT_EXCEEDED, str(excess))

    def note_open(
        self, connection: Peer, client: ClientContext, *, is_client: bool, is_impatient: bool
    ) -> None:
        """Take note that a peer has opened.

        Args:
            connection: The peer's.
            client: Its standing.
            is_client: Whether it counts as a client.
            is_impatient: Whether it allows less silence than a second or two.
        """
        if is_impatient:
            self._impatient.add(connection)
        self._newcomers.leave(client.source, connection)
        client.is_counted = is_client
        self.clients += is_client

    def let_go(self, connection: Peer, client: ClientContext) -> None:
        """Take a connection from those that stand here; its shares are free again."""
        self.connections.pop(connection, None)
        self._impatient.discard(connection)
        self._newcomers.leave(client.source, connection)
        self.sessions.give_back(client.shares, client.sessions)
        client.sessions = 0
        self._connected.give_back(client.holders)
        client.holders = ()

    def end(self, connection: Peer, client: ClientContext, error: AmqpError | None) -> None:
        """Forget a connection that is over."""
        self.let_go(connection, client)
        if client.is_counted:
            client.is_counted = False
            self.clients -= 1
        self._access.forget(connection)
        if error is not None:
            log.info("connection %d closed: %s", client.number, error.description)

    def on_fault(self, connection: Peer, error: BaseException) -> None:
        """Log what went wrong with one connection."""
        client = self.client_of(connection)
        number = client.number
        if isinstance(error, StreamError):  # the peer's doing, and nothing of ours to be looked for
            if not connection.authenticated:
                self.note_refusal(client.listen, peer_of(client), str(error))
            log.warning("connection %d: %s", number, error)
        else:
            log.error("connection %d: %s", number, error, exc_info=error)

    # -- time

    def beat(self, now_s: float) -> None:
        """Let time pass for the peers that need heartbeats more often than once a second."""
        for connection in list(self._impatient):
            connection.tick(now_s)

    def sweep(self, now_s: float) -> None:
        """Let time pass, once a second."""
        for connection, client in list(self.connections.items()):
            connection.tick(now_s)
            connection.wire.shed()
            self._end_expired(connection, client)
            waits_s = now_s - max(connection.started_s, self.takes_logins_since_s)
            if connection.wire.sendable_bytes > self._unsent_bytes_max:
                self._give_up(connection, client)
            elif not connection.has_opened and waits_s > self._limits.authentication_timeout_s:
                log.info("connection %d: closed, because it was not opened in time", client.number)
                connection.lose()
            elif connection.is_over:
                self._await_close(connection, client, now_s)

    def _end_expired(self, connection: Peer, client: ClientContext) -> None:
        """End a connection along with the token that it was opened with."""
        why = None if client.grant is None else why_expired(client.grant)
        if why is not None:
            self.revoke(connection, client, why)

    def _give_up(self, connection: Peer, client: ClientContext) -> None:
        """End a peer that asks and asks, and read no answer: messages never wait like that."""
        log.warning(
            "connection %d: closed, because its peer leaves %d bytes unread",
            client.number,
            connection.wire.sendable_bytes,
        )
        connection.lose()

    def _await_close(self, connection: Peer, client: ClientContext, now_s: float) -> None:
        """Give up a peer that does not answer a close, however lively it is."""
        if client.closing_since_s is None:
            client.closing_since_s = now_s
        elif now_s - client.closing_since_s > CLOSE_TIMEOUT_S:
            connection.lose()

    def close(self, error: AmqpError) -> None:
        """Close every connection; peers may still answer."""
        for connection in list(self.connections):
            connection.close(error)

    def close_those_in(self, vhost: VirtualHost, error: AmqpError) -> None:
        """Close every connection of a virtual host; peers may still answer."""
        for connection, client in list(self.connections.items()):
            if client.vhost is vhost:
                connection.close(error)

    def lose(self) -> None:
        """End every connection that is left, without another word."""
        for connection in list(self.connections):
            connection.lose()

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent to peers and are not settled."""
        return sum(connection.unsettled for connection in self.connections)

    # -- what peers may do

    def permit(self, connection: Peer, client: ClientContext) -> None:
        """Give a connection what its peer may do."""
        if isinstance(client.listen, Inside):
            client.permit(self._access.gateway_permissions(connection.identity))
        else:
            client.permit(self._access.permissions_of_client(client, connection.identity))

    def revoke(self, connection: Peer, client: ClientContext, why: str) -> None:
        """End a connection whose login does not hold any more."""
        if connection.is_over:
            return
        log.warning("connection %d: closed, because %s", client.number, why)
        self._security.event("connection_revoked", **who_is(connection), reason=why)
        if not connection.has_opened:  # it gets no further
            connection.lose()
        else:
            connection.close(login_ended(why))

    def is_logging_in(self, connection: Peer) -> bool:
        """Return whether a peer's password is being checked."""
        return self._access.is_logging_in(connection)

    def why_ended(
        self, connection: Peer, client: ClientContext, revoked: Mapping[str, str]
    ) -> str | None:
        """Return why the login of a connection holds no longer; None where it does."""
        user = connection.identity
        if user is None:
            is_under_way = bool(revoked) and self.is_logging_in(connection)
            return "users have changed: log in again" if is_under_way else None
        if isinstance(client.listen, Inside) and self._access.has(user):
            return None  # a gateway's user has not logged in
        return self.why_login_ended(client, user, revoked)

    def why_login_ended(
        self, client: ClientContext, user: str, revoked: Mapping[str, str]
    ) -> str | None:
        """Return why a password, a certificate or a token is not good for a user any more."""
        if client.grant is not None:
            return self._access.why_token_ended(client)
        if client.is_by_certificate and user not in revoked:
            return why_misnamed(user, client.certificate_name)
        return revoked.get(user)
