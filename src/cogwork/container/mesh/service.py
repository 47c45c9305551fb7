"""The mesh as a container runs it: links, the protocol on them, and what follows from it.

Theory of operation. `router.mesh.Mesh` decides: events go in, effects come out, and `_run` carries
them out. What other containers want goes to the `Reach` of each virtual host, which opens links to
them through `Tunnels`; what they attach here is taken by the `TunnelAcceptor`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.container.mesh.datagrams import Datagrams
from cogwork.container.mesh.incoming_peers import IncomingPeers
from cogwork.container.mesh.link_manager import LinkManager
from cogwork.container.mesh.names import DUPLICATE_LINK
from cogwork.container.mesh.peer_link import PeerLink
from cogwork.container.mesh.reach import Reach
from cogwork.container.mesh.readiness import Readiness
from cogwork.container.mesh.refusals import Refusals
from cogwork.container.mesh.restoration import Restoration
from cogwork.container.mesh.told_interests import ToldInterests
from cogwork.container.mesh.tunnel_acceptor import TunnelAcceptor
from cogwork.container.mesh.tunnels import Tunnels
from cogwork.container.security.revocation import login_ended
from cogwork.io.secret_file import SECRET_BYTES_MAX
from cogwork.replication.timer import Timer
from cogwork.router.mesh.bounds import Timers
from cogwork.router.mesh.effects import (
    Close,
    Hosts,
    InterestChanged,
    NeighbourDown,
    NeighbourUp,
    PathsChanged,
    Reason,
    Report,
    Send,
)
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.own import Own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cogwork.amqp.performatives import Attach, Begin, Open
    from cogwork.config.settings import Link, MeshOptions
    from cogwork.container.mesh.connection import MeshConnection
    from cogwork.container.mesh.control_connection import ControlConnection
    from cogwork.container.mesh.data_connection import DataConnection
    from cogwork.container.mesh.dialler import LinkDialler
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link as AmqpLink
    from cogwork.router.mesh.effects import Effect
    from cogwork.router.mesh.messages import Interest

__all__ = ("MeshService",)

SWEEP_S = 1.0
"""How often what nobody uses any more is looked for."""

TICK_S = 0.1
"""How often backlogs are looked at."""

log = logging.getLogger("cogwork")


class MeshService:
    """Owned by the container.

    Attributes:
        core: The data plane.
        id: This container's.
        incarnation: The one that this container began with, whatever its name is advertised with.
        silence_s: For how long a data connection may be silent.
        owner_timeout_s: How long who holds partitions of a queue on disk is waited for.
        mesh: What is known of the others.
        told_interests: What is wanted here, as the neighbours know it.
        tunnels: The sessions to them.
        datagrams: Single messages to them.
        is_leaving: Whether this container takes nothing over from others any more.
        siblings: The workers that this container is one of, itself among them; none for no worker.
        reaches: What each virtual host can reach there, by its name.
        hosts: Where neighbours say that clients may be sent to, by their ids.
        diallers: The links that this container keeps.
        incoming_peers: What others have dialled.
        restoration: Opens again what was lost.
        readiness: Whether it is known what others want.
        on_neighbour_down: Called with a container to which no link is left.
        put_token: Called with a token that is to hold for a connection that others have dialled.
    """

    def __init__(
        self,
        core: Core,
        container_id: str,
        incarnation: int,
        vhosts: Mapping[str, VirtualHost],
        options: MeshOptions,
        *,
        cluster_name: str = "",
    ) -> None:
        """Initialize it; it knows nobody yet.

        Args:
            core: The data plane.
            container_id: Unique in the mesh.
            incarnation: Higher after each start.
            vhosts: This container's; those that are here now all containers of a mesh have.
            options: Heartbeat and time-outs.
            cluster_name: What its cluster is called; empty if it has no name.
        """
        self.core = core
        self.id = container_id
        self.incarnation = incarnation
        self.silence_s = options.silence_s
        self.owner_timeout_s = options.owner_timeout_s
        timers = Timers(hello_s=options.heartbeat_s)
        own = Own(
            id=container_id,
            incarnation=incarnation,
            virtual_hosts=frozenset(vhosts),
            timers=timers,
            cluster_name=cluster_name,
        )
        self.mesh = Mesh(own, time.monotonic())
        self.told_interests = ToldInterests(lambda: self.mesh.interests.are_known)
        self.tunnels = Tunnels(self)
        self.datagrams = Datagrams(self)
        self.reaches = {name: Reach(self, vhost) for name, vhost in vhosts.items()}
        self.hosts: dict[str, tuple[str, ...]] = {}
        self.incoming_peers = IncomingPeers(self)
        self._tunnel_acceptor = TunnelAcceptor(self, vhosts)
        self.diallers = LinkManager(self)
        self._peer_links: dict[int, PeerLink] = {}
        self._by_connection: dict[MeshConnection, PeerLink] = {}
        self._number = 0
        self._timer = Timer(self._tick)
        self._ticked_s = 0.0
        self._swept_s = 0.0
        self.is_leaving = False
        self.siblings: frozenset[str] = frozenset()
        self.restoration = Restoration(self._restore)
        self._is_started = self._is_stopped = False
        self._refusals = Refusals()
        self.on_neighbour_down: Callable[[str], None] = _ignore
        self.put_token: Callable[[Connection, str], None] = _take_none
        self.readiness = Readiness(self, options.ready_timeout_s)

    # -- life

    def start(self, links: Iterable[Link]) -> None:
        """Dial the configured links."""
        now_s = time.monotonic()
        self._is_started = True
        for name, vhost_reach in self.reaches.items():
            assert name == vhost_reach.vhost.name
            vhost_reach.start()
        self.run(self.mesh.start(now_s))
        for link in links:
            self.diallers.dial(link)
        self.readiness.start(now_s)

    def add_vhost(self, vhost: VirtualHost) -> None:
        """Carry one more virtual host, which other containers may have already, or not yet."""
        reach = self.reaches[vhost.name] = Reach(self, vhost)
        if not self._is_started:
            return
        reach.start()
        for origin, table in list(self.mesh.interests.table.origins.items()):
            for interest in list(table.entries.values()):
                if interest.virtual_host == vhost.name and origin != self.id:
                    reach.take_interest(origin, interest)

    def remove_vhost(self, name: str) -> None:
        """Carry a virtual host no more."""
        self.reaches.pop(name, None)
        self._tunnel_acceptor.remove_vhost(name)

    def end_credit(self) -> bool:
        """Have other containers send nothing more to queues here; tell whether any could."""
        return self._tunnel_acceptor.end_credit()

    def block(self, are_blocked: bool) -> None:
        """Have other containers send nothing to queues here for a while, or again."""
        self._tunnel_acceptor.block(are_blocked)

    @property
    def unanswered(self) -> int:
        """Counts what other containers have sent to queues here and had no answer to."""
        return self._tunnel_acceptor.unanswered

    def stop(self) -> None:
        """Say good-bye, behind all that is under way, and dial no more."""
        self._is_stopped = True
        self.diallers.stop()
        self._timer.cancel()
        self.restoration.stop()
        error = AmqpError(
            condition=Condition.CONNECTION_FORCED, description=f"container {self.id} is stopping"
        )
        for peer_link in list(self._peer_links.values()):
            peer_link.data.close(error)

    def leave(self) -> None:
        """Let nobody come this way any more; link stay for what is under way."""
        self.run(self.mesh.leave(time.monotonic()))

    # -- links

    @property
    def peer_links(self) -> list[PeerLink]:
        """The links that stand, whoever dialled."""
        return list(self._peer_links.values())

    def adopt(self, connection: Connection, opened: Open) -> None:
        """Take a connection that another container dialled.

        Raises:
            ProtocolError: It does not say what it is for, or is not wanted.
        """
        self.incoming_peers.adopt(connection, opened)

    def add_peer_link(
        self, control: ControlConnection, data: DataConnection, dialler: LinkDialler | None
    ) -> PeerLink:
        """Make a link of two connections that stand."""
        self._number += 1
        peer_link = PeerLink(self._number, control, data, dialler)
        self._peer_links[peer_link.number] = peer_link
        self._by_connection[control] = self._by_connection[data] = peer_link
        if data.connection.is_over or control.connection.is_over:
            self._end_peer_link(peer_link, None)
            return peer_link
        cost = self._cost_of(dialler, control.peer)
        self.run(
            self.mesh.on_connected(
                peer_link.number, time.monotonic(), is_dialled=dialler is not None, cost=cost
            )
        )
        self.core.flush()
        return peer_link

    def _cost_of(self, dialler: LinkDialler | None, peer: str) -> int:
        """Return what is configured for a link, also where the other side was first to dial."""
        return self.diallers.cost_to(peer) if dialler is None else dialler.link.cost

    def end_unwelcome(self, why_not: Callable[[Connection], str | None]) -> int:
        """End links that others dialled and that are taken no longer; return how many.

        Args:
            why_not: Tells why one is not, by either of its connections.
        """
        ended = 0
        for peer_link in self.peer_links:
            if peer_link.dialler is not None or peer_link.why_lost is not None:
                continue
            why = why_not(peer_link.data.connection) or why_not(peer_link.control.connection)
            if why is not None:
                log.warning("link to container %s: closed, because %s", peer_link.peer, why)
                peer_link.why_lost = why
                for each in (peer_link.control, peer_link.data):
                    each.close(login_ended(why))
                self._end_later(peer_link)
                ended += 1
        self.incoming_peers.end_unwelcome(why_not)
        return ended

    def is_linked(self, container: str) -> bool:
        """Return whether a container is a neighbour at present."""
        return container in self.mesh.neighbours.active

    def _end_peer_link(self, peer_link: PeerLink, why: str | None) -> None:
        if self._peer_links.pop(peer_link.number, None) is None:
            return
        peer_link.why_lost = peer_link.why_lost or why
        del self._by_connection[peer_link.control], self._by_connection[peer_link.data]
        for each in (peer_link.control, peer_link.data):
            each.connection.lose()
        peer_link.lost.set()
        self.run(self.mesh.on_closed(peer_link.number, time.monotonic()))

    # -- what connections tell

    def on_message(self, connection: ControlConnection, data: bytes) -> None:
        """Take a message of the protocol."""
        peer_link = self._by_connection.get(connection)
        if peer_link is not None:
            self.run(self.mesh.on_message(peer_link.number, data, time.monotonic()))

    def on_token(self, connection: ControlConnection, data: memoryview) -> None:
        """Have a token hold for a link that its other end has dialled."""
        peer_link = self._by_connection.get(connection)
        if peer_link is not None and peer_link.dialler is None and len(data) <= SECRET_BYTES_MAX:
            token = str(data, errors="replace")
            for each in (peer_link.data, peer_link.control):
                self.put_token(each.connection, token)

    def on_datagram(self, connection: ControlConnection, data: memoryview) -> None:
        """Take a datagram, for here or for further on."""
        try:
            self.datagrams.receive(data)
        except ValueError as error:
            log.warning("mesh: container %s sent a malformed datagram: %s", connection.peer, error)

    def on_lost(self, connection: MeshConnection, error: AmqpError | None) -> None:
        """End the link that a connection belongs to."""
        peer_link = self._by_connection.get(connection)
        if peer_link is not None:
            self._on_peer_link_lost(peer_link, error if connection.connection.was_closed else None)
            return
        self.incoming_peers.forget(connection)

    def _on_peer_link_lost(self, peer_link: PeerLink, error: AmqpError | None) -> None:
        """End a link, and log why the other container did not want it, where that says so."""
        why = None if error is None else error.description
        peer_link.is_duplicate |= error is not None and error.condition == DUPLICATE_LINK
        is_wanted = peer_link.was_up or peer_link.is_duplicate or peer_link.why_lost is not None
        if why is not None and not is_wanted:
            self._refusals.tell(peer_link.peer, why)
        self._end_peer_link(peer_link, why)

    def on_begin(self, connection: Connection, channel: int, begin: Begin) -> bool:
        """Pass a tunnel on."""
        return self.tunnels.on_begin(connection, channel, begin)

    def on_attach(self, link: AmqpLink, attach: Attach) -> None:
        """Take a link that another container attaches."""
        self._tunnel_acceptor.take(link, attach)

    def on_fault(self, connection: MeshConnection, error: BaseException) -> None:
        """Log a fault of ours."""
        log.error("link to container %s: %s", connection.peer, error, exc_info=error)

    # -- the protocol

    def run(self, effects: Iterable[Effect]) -> None:
        """Carry out what the protocol wants done, and wait for when it wants to be called."""
        for effect in effects:
            self._run_one(effect)
        self._arm()

    def _run_one(self, effect: Effect) -> None:
        match effect:
            case Send():
                peer_link = self._peer_links.get(effect.link)
                if peer_link is not None:
                    peer_link.control.send(effect.data)
            case Close():
                self._close(effect)
            case PathsChanged():
                self.restoration.soon()
            case InterestChanged():
                self._take_interests(effect)
            case Report():
                log.log(_LEVELS[effect.severity], "mesh: %s", effect.text)
            case _:
                self._take_neighbour(effect)

    def _take_neighbour(self, effect: NeighbourUp | NeighbourDown | Hosts) -> None:
        match effect:
            case NeighbourUp():
                self._peer_links[effect.link].was_up = True
                self._refusals.forget(effect.neighbour)
                log.info("linked with container %s", effect.neighbour)
            case NeighbourDown():
                self.hosts.pop(effect.neighbour, None)
                log.warning("lost the last link to container %s", effect.neighbour)
                self.on_neighbour_down(effect.neighbour)
            case Hosts():
                self.hosts[effect.neighbour] = effect.hosts

    def _close(self, effect: Close) -> None:
        peer_link = self._peer_links.get(effect.link)
        if peer_link is None:
            return
        peer_link.why_lost = effect.description
        peer_link.is_duplicate = effect.reason is Reason.DUPLICATE_LINK
        if effect.reason in _OFFENCES:
            self.incoming_peers.keep_out(peer_link.peer, effect.description)
        condition = DUPLICATE_LINK if peer_link.is_duplicate else Condition.CONNECTION_FORCED
        error = AmqpError(condition=condition, description=effect.description)
        peer_link.control.close(error)
        peer_link.data.close(error)
        # The other side may be dead: it is not waited for.
        self._end_later(peer_link)

    def _end_later(self, peer_link: PeerLink) -> None:
        asyncio.get_running_loop().call_soon(self._end_peer_link, peer_link, None)

    def _take_interests(self, change: InterestChanged) -> None:
        for interest in change.removed.values():
            reach = self.reaches.get(interest.virtual_host)
            if reach is not None:
                reach.lose_interest(change.origin, interest)
        for interest in change.added.values():
            reach = self.reaches.get(interest.virtual_host)
            if reach is not None:
                reach.take_interest(change.origin, interest)

    def _arm(self) -> None:
        """Have `_tick` called when the protocol wants it, but no later than it would be anyway."""
        if not self._is_stopped:
            now_s = time.monotonic()
            self._timer.set(min(self.mesh.wake_s, now_s + TICK_S), now_s)

    def _tick(self) -> None:
        now_s = time.monotonic()
        if now_s - self._timer.due_s < self.silence_s / 4:  # who stood still has not listened
            for peer_link in self.peer_links:
                peer_link.data.connection.tick(now_s)
        for peer_link in self.peer_links:
            if peer_link.control.connection.wire.last_received_s > self._ticked_s:
                self.mesh.on_octets(peer_link.number, now_s)
        self._ticked_s = now_s
        self.run(self.mesh.tick(now_s))
        self.readiness.look(now_s)
        for reach in self.reaches.values():
            reach.tick(now_s)
        if now_s - self._swept_s >= SWEEP_S:
            self._swept_s = now_s
            self.incoming_peers.sweep(now_s)
            self._tunnel_acceptor.sweep()
            for reach in self.reaches.values():
                reach.sweep(now_s)
            if self.tunnels.sweep():
                self.restoration.now()
        self.core.flush()

    # -- for the others of this package

    def way_to(self, container: str) -> Connection | None:
        """Return the data connection to the next hop; None where there is no way."""
        peer_link = self._peer_link_towards(container)
        if peer_link is None or not peer_link.data.connection.is_open:
            return None
        return peer_link.data.connection

    def control_to(self, container: str) -> ControlConnection | None:
        """Return the control connection to the next hop; None where there is no way."""
        peer_link = self._peer_link_towards(container)
        return None if peer_link is None else peer_link.control

    def _peer_link_towards(self, container: str) -> PeerLink | None:
        next_hop = self.mesh.next_hop(container)
        link = None if next_hop is None else self.mesh.neighbours.active.get(next_hop)
        return None if link is None else self._peer_links.get(link.number)

    def cost_to(self, container: str) -> int:
        """Return the cost of the way to a container; at least 1."""
        cost = self.mesh.routes.tree.costs.get(container)
        return 1 if cost is None else max(1, cost)

    def data_connections(self) -> Iterator[Connection]:
        """Yield the connections on which tunnels run."""
        for peer_link in list(self._peer_links.values()):
            yield peer_link.data.connection

    def subscribe(self, virtual_host: str, pattern: str) -> None:
        """Tell the others of one more subscription."""
        self.run(self.mesh.subscribe(virtual_host, pattern, time.monotonic()))

    def unsubscribe(self, virtual_host: str, pattern: str) -> None:
        """Tell the others of one subscription less."""
        self.run(self.mesh.unsubscribe(virtual_host, pattern, time.monotonic()))

    def set_interest(self, interest: Interest) -> None:
        """Tell the others what this container wants or has."""
        self.run(self.mesh.set_interest(interest, time.monotonic()))

    def set_hosts(self, hosts: tuple[str, ...]) -> None:
        """Tell the neighbours where clients may be sent to; none: nowhere."""
        self.run(self.mesh.set_hosts(hosts, time.monotonic()))

    def _restore(self) -> None:
        for reach in self.reaches.values():
            reach.restore()
        self.core.flush()


def _ignore(_neighbour: str) -> None:
    """Take notice of nothing."""


def _take_none(_connection: Connection, _token: str) -> None:
    """Nobody has linked by a token."""


_OFFENCES = frozenset({Reason.FLOOD, Reason.MALFORMED, Reason.TOO_MUCH})

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
