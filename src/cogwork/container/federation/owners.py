"""Replicated queues over linked containers: who owns each, and the ways there.

Theory of operation. Who owns a queue tells all others so, with the epoch in which it does
(`container.cluster.replicated_queue`). Every container sends the queue's messages to the one that
it can reach with the highest epoch; they wait where there is none. Consumers receive from there
(`queue_federation`). A queue with a home has its ways elsewhere (`homes`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.container.mesh.changes import Changes
from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.container.mesh.names import OWNED
from cogwork.plugin.capabilities import Replicated
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from collections.abc import Set

    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.away import Away
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.transport.outgoing import OutgoingLink

__all__ = ("Owners",)

log = logging.getLogger("cogwork")


class Owners:
    """The owners of one virtual host's replicated queues."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost, reach: Reach) -> None:
        self._mesh = mesh
        self._vhost = vhost
        self._reach = reach
        self._elsewhere = Elsewhere()
        self._told: dict[str, int] = {}
        self._ways: dict[str, Away] = {}
        self._changes = Changes(self._settle)

    # -- who owns what

    def owner_of(self, address: str) -> str | None:
        """Return the other container that owns a queue and can be reached."""
        routes = self._mesh.mesh.routes
        owners = self._elsewhere.at(address)
        reachable = [each for each in owners if routes.is_reachable(each)]
        return max(reachable, key=lambda each: owners[each].consumers, default=None)

    def epoch_of(self, address: str, container: str) -> int:
        """Return in which epoch another container owns a queue; 0 where it does not."""
        said = self._elsewhere.at(address).get(container)
        return 0 if said is None else said.consumers

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of a container that owns a queue."""
        self._elsewhere.take(container, interest)
        self.changed(interest.address)

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that a container owns a queue no longer."""
        self._elsewhere.lose(container, interest)
        self.changed(interest.address)

    def changed(self, address: str) -> None:
        """Have a queue looked at, at the end of the loop's turn: its owner may be another one."""
        self._changes.add(address)

    def restore(self) -> None:
        """Look at all queues: ways have come or gone."""
        for address, node in self._vhost.nodes.items():
            if isinstance(node, Replicated) and _is_replicated(node):
                self.changed(address)

    def _settle(self, changed: Set[str]) -> None:
        for address in changed:
            node = self._vhost.nodes.get(address)
            if isinstance(node, Replicated) and _is_replicated(node):
                assert node.replica is not None
                node.replica.wake()
                self._tell(address, node.replica.epoch)
                self._lead(address, node)
            else:
                self._tell(address, None)
                self._end_way(address)
        self._mesh.core.flush()

    def _tell(self, address: str, epoch: int | None) -> None:
        """Tell the others in which epoch a queue is owned here; None: it is not."""
        if epoch == self._told.get(address):
            return
        if epoch is None:
            del self._told[address]
        else:
            self._told[address] = epoch
        self._mesh.set_interest(
            Interest(InterestKind.OWNER, self._vhost.name, address, consumers=epoch or 0)
        )

    # -- ways to the owners

    def _lead(self, address: str, node: Replicated) -> None:
        """Have a queue's messages, and its consumers, go to its owner."""
        assert node.replica is not None
        way = self._ways.get(address)
        if node.replica.epoch is not None:
            self._end_way(address)
            self._reach.queue_federation.own(address)
            return
        assert node.inlet is not None
        owner = self.owner_of(address)
        if way is not None and way.container != owner:
            self._end_way(address)
            way = None
        if way is None and owner is not None:
            way = self._reach.open(owner, address, node.inlet.entry, self, {OWNED: True})
            if way is not None:
                way.end.feeder = node.inlet.entry
                self._ways[address] = way
        self._set(node, None if way is None else way.end)
        self._reach.queue_federation.follow(address, owner)

    @staticmethod
    def _set(node: Replicated, end: OutgoingLink | None) -> None:
        assert node.inlet is not None
        if node.inlet.owners != [end]:
            node.inlet.set_owners([end])

    def _end_way(self, address: str) -> None:
        way = self._ways.pop(address, None)
        if way is not None:
            way.detach()

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use."""
        address = way.address or ""
        if self._ways.get(address) is way:
            del self._ways[address]
        node = self._vhost.nodes.get(address)
        if isinstance(node, Replicated) and node.inlet is not None and way.end in node.inlet.owners:
            self._set(node, None)
        self._mesh.restoration.later()

    def refused(self, way: Away, error: AmqpError) -> None:
        """Log why an owner takes nothing: until it does, its messages wait."""
        log.debug(
            "queue %r: container %s accepts no messages: %s",
            way.address,
            way.container,
            error.description,
        )


def _is_replicated(node: Replicated) -> bool:
    """Return whether replicas decide who owns a queue."""
    return node.replica is not None and node.replica.home is None
