"""Queues whose messages each have one container that takes them: who that is, and the ways there.

Theory of operation. A queue that keeps groups in order, or remembers message-ids, has a fixed
number of partitions. A container that has such a queue tells the others so, with the partitions
that it holds; who hears of one that its own configuration knows too has it from then on. All that
can be reached and have it share the partitions (`router.partitions`), and there is a link to each
one that owns any.

A partition is held by its owner from its first message until there is nothing left that a later one
must come behind, or be compared with, and `QUIET_S` more. So a container that joins gets only
partitions that nothing depends on.

Where the queue is on disk, a container that cannot be reached any more is waited for: it keeps the
partitions that it said it holds, and those it owned, of which it may hold some without having said
so. Their messages wait until it is back with what it has of them, or for `owner_timeout_s`. One
that leaves for good takes its claims back first.

Changes are gathered, and settled at the end of the loop's turn: what is held here is told before
anybody else is taken for the owner of it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.container.connections.node_shares import FROM_AFAR
from cogwork.container.federation.absences import Absences
from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.plugin.capabilities import Partitioned
from cogwork.plugin.node import Refused
from cogwork.plugin.node_kinds import provides
from cogwork.router.mesh.messages import Interest, InterestKind
from cogwork.router.partitions import owners_of

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.away import Away
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.partitions import PartitionedInlet
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.plugin.node import Node

__all__ = ("Partitions",)

QUIET_S = 5.0
"""So long nothing must have come for a partition before another container may get it: nothing that
was sent to the old owner is still on its way then."""

QUEUES_MAX = 10_000
"""Queues that this container has only because others have them."""

log = logging.getLogger("cogwork")


@dataclass(slots=True, eq=False)
class PartitionedQueue:
    """A queue of this container that is shared with others.

    Attributes:
        address: Its address.
        node: This container's part.
        inlet: Where its messages are told apart.
        members: Who shares it, with the partitions that each holds; as last settled.
        away: Who is waited for, with the partitions that each holds; as last settled.
        owners: The container that has each partition.
        ways: The links to other owners, by container.
    """

    address: str
    node: Partitioned
    inlet: PartitionedInlet
    members: dict[str, int] = field(default_factory=dict)
    away: dict[str, int] = field(default_factory=dict)
    owners: list[str | None] = field(default_factory=list)
    ways: dict[str, Away] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """The partitions that this container holds, as bits."""
        return self.inlet.held(max(QUIET_S, self.node.deduplication_window_s))


class Partitions:
    """The partitioned queues of one virtual host."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost, reach: Reach) -> None:
        self._mesh = mesh
        self._vhost = vhost
        self._reach = reach
        self._queues: dict[str, PartitionedQueue] = {}
        self._elsewhere = Elsewhere()
        self._absences = Absences(mesh)
        self._created = 0
        self._changed = vhost.nodes.follow()
        self._is_settling = False

    # -- queues here

    def add(self, address: str, node: Node) -> None:
        """Share a queue of this container, where that is one with partitions."""
        if isinstance(node, Partitioned) and node.is_partitioned and node.inlet is None:
            if address in self._queues:
                self._remove(self._queues[address])
            self._queues[address] = PartitionedQueue(address, node, node.share())
            self._settle_soon()

    def _remove(self, queue: PartitionedQueue) -> None:
        """Let go of a queue that this container has no longer."""
        del self._queues[queue.address]
        for way in list(queue.ways.values()):
            way.detach()
        self._tell(queue, None)

    # -- queues elsewhere

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of a container that shares a queue, and of what it holds."""
        self._elsewhere.take(container, interest)
        self._absences.end(container, interest.address)
        self._settle_soon()

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that a container shares a queue no longer."""
        self._elsewhere.lose(container, interest)
        self._absences.begin(container, interest)
        self._settle_soon()

    # -- settling

    def tick(self) -> None:
        """Tell what is held now, and lets go of what is over."""
        nodes = self._vhost.nodes
        while self._changed:
            address = self._changed.pop()
            node = nodes.get(address)
            if node is not None:
                self.add(address, node)
        for queue in list(self._queues.values()):
            if nodes.get(queue.address) is not queue.node:
                self._remove(queue)
            elif (
                self._held_by(queue) != queue.members.get(self._mesh.id)
                or self._away_from(queue) != queue.away
            ):
                self._settle_soon()
            else:
                _end_idle(queue)

    def sweep(self) -> None:
        """Forget who was waited for long enough."""
        self._absences.sweep()

    def _held_by(self, queue: PartitionedQueue) -> int | None:
        """Return what this container holds; None where it is leaving, and share nothing."""
        return None if self._mesh.is_leaving else queue.held

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        self._is_settling = False
        self._create()
        self.restore()
        self._mesh.core.flush()

    def _create(self) -> None:
        """Make the queues that others have and that are partitioned by what is configured here.

        Else the first to come here with a message would have it know nothing of the others yet.
        """
        for address in [each for each in self._elsewhere if each not in self._queues]:
            if self._created >= QUEUES_MAX:
                return
            try:
                name, rule = self._vhost.rule_of(address)
                if not provides(rule.kind, Partitioned) or name in self._vhost.nodes:
                    continue
                self._vhost.entry_of(name, FROM_AFAR)
            except Refused as refusal:
                log.debug("cannot create queue %r of other containers: %s", address, refusal)
                continue
            self._created += 1

    def restore(self) -> None:
        """Give every partition its owner, and open the links that should be there and are not."""
        for queue in self._queues.values():
            members, away = self._members_of(queue), self._away_from(queue)
            if (members, away) != (queue.members, queue.away):
                self._tell(queue, members.get(self._mesh.id))
                queue.members, queue.away = members, away
                queue.owners = owners_of(queue.address, queue.inlet.count, members, away)
                self._connect(queue)
            elif self._missing(queue):
                self._connect(queue)

    def _members_of(self, queue: PartitionedQueue) -> dict[str, int]:
        """List who shares a queue and can be reached, with the partitions that each holds.

        One that leaves is not among them, even if nobody else is: what it took would be lost.
        """
        routes = self._mesh.mesh.routes
        members = {}
        for container, interest in self._elsewhere.at(queue.address).items():
            if interest.consumers == queue.inlet.count and routes.is_reachable(container):
                members[container] = interest.producers
        if not self._mesh.is_leaving:
            members[self._mesh.id] = queue.held
        return members

    def _away_from(self, queue: PartitionedQueue) -> dict[str, int]:
        """List who is waited for, with the partitions that each held, or may hold."""
        if not queue.node.is_on_disk:
            return {}
        elsewhere = self._elsewhere.at(queue.address)
        away = self._absences.of(queue.address, queue.inlet.count, elsewhere)
        return {each: held | _bits_of(queue.owners, each) for each, held in away.items()}

    def _tell(self, queue: PartitionedQueue, held: int | None) -> None:
        """Tell the others what is held here; None: that the queue is not shared any more."""
        if held == queue.members.get(self._mesh.id):
            return
        figures = (0, 0) if held is None else (queue.inlet.count, held)
        self._mesh.set_interest(
            Interest(InterestKind.PARTITIONS, self._vhost.name, queue.address, *figures)
        )

    # -- ways to the owners

    def _missing(self, queue: PartitionedQueue) -> set[str]:
        """List the owners to which there should be a link, and is none."""
        known = {self._mesh.id, *queue.ways}
        return {owner for owner in queue.owners if owner is not None and owner not in known}

    def _connect(self, queue: PartitionedQueue) -> None:
        """Have each partition's messages go to its owner; they wait where there is no way yet."""
        for container in self._missing(queue):
            way = self._reach.open(container, queue.address, queue.inlet.entry, self)
            if way is not None:
                way.end.feeder = queue.inlet.entry
                queue.ways[container] = way
        queue.inlet.set_owners(
            [
                queue.node.store if owner == self._mesh.id else _end_of(queue, owner)
                for owner in queue.owners
            ]
        )

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use."""
        queue = self._queues.get(way.address or "")
        if queue is not None and queue.ways.get(way.container) is way:
            del queue.ways[way.container]
            self._connect_without(queue, way)
        self._mesh.restoration.later()

    def refused(self, way: Away, error: AmqpError) -> None:
        """Log why an owner takes nothing: until it does, its messages wait."""
        log.warning(
            "queue %r: container %s accepts no messages: %s",
            way.address,
            way.container,
            error.description,
        )

    def _connect_without(self, queue: PartitionedQueue, way: Away) -> None:
        """Have messages wait whose owner's link has gone."""
        queue.inlet.set_owners(
            [None if owner is way.end else owner for owner in queue.inlet.owners]
        )


def _bits_of(owners: list[str | None], container: str) -> int:
    """Return the partitions that a container owns, as bits."""
    return sum(1 << at for at, owner in enumerate(owners) if owner == container)


def _end_of(queue: PartitionedQueue, owner: str | None) -> OutgoingLink | None:
    way = None if owner is None else queue.ways.get(owner)
    return None if way is None else way.end


def _end_idle(queue: PartitionedQueue) -> None:
    """End the links to containers that own nothing any more, once all is answered."""
    for container in queue.ways.keys() - set(queue.owners):
        way = queue.ways[container]
        if not way.end.unsettled and not way.end.queue_count:
            way.detach()
