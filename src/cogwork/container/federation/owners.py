"""Replicated queues over linked containers: who owns each, and the ways there.

Theory of operation. Who owns a queue tells all others so, with the epoch in which it does
(`container.cluster.replicated_queue`). Every container sends the queue's messages to the one that
it can reach with the highest epoch; they wait where there is none. What was sent and has no answer
is kept (`OwnerOutbox`): when the owner changes it is sent again to the next one, which knows by the
tags what was taken, as durably as the queue is. Consumers receive from there (`queue_federation`).
A queue with a home has its ways elsewhere (`homes`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cogwork.container.federation.homes import REFUSE_S, first_number, origin_number
from cogwork.container.mesh.changes import Changes
from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.container.mesh.names import OWNED
from cogwork.dataplane.addresses.owner_outbox import OwnerOutbox
from cogwork.plugin.capabilities import Replicated
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from collections.abc import Set

    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.away import Away
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Owners",)

log = logging.getLogger("cogwork")


@dataclass(slots=True, eq=False)
class _Route:
    """The way of one queue's messages to whoever owns it.

    Attributes:
        node: The queue's part here.
        outbox: What was sent and has no answer yet.
        way: The link to the present owner, attached or not; None while there is none.
        away_since_s: Since when no owner takes anything; None while one does.
    """

    node: Replicated
    outbox: OwnerOutbox
    way: Away | None = None
    away_since_s: float | None = None


class Owners:
    """The owners of one virtual host's replicated queues."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost, reach: Reach) -> None:
        self._mesh = mesh
        self._vhost = vhost
        self._reach = reach
        self._elsewhere = Elsewhere()
        self._told: dict[str, int] = {}
        self._routes: dict[str, _Route] = {}
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
                self._end(address)
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
        if node.replica.epoch is not None:
            self._own(address)
            return
        assert node.inlet is not None
        route = self._route_of(address, node)
        if route.outbox.link is node.inlet.near:  # it was the owner until now
            route.outbox.set_link(None)
        if node.inlet.owners != [route.outbox]:
            node.inlet.set_owners([route.outbox])
        owner = self.owner_of(address)
        if route.way is not None and route.way.container != owner:
            self._end_way(route)
        if route.way is None and owner is not None:
            route.way = self._reach.open(owner, address, node.inlet.entry, self, {OWNED: True})
            if route.way is not None:
                route.way.on_attached = partial(self._arrived, route, route.way)
        if route.way is None and route.away_since_s is None:
            route.away_since_s = time.monotonic()
        self._reach.queue_federation.follow(address, owner)

    def _own(self, address: str) -> None:
        """Leave a queue's messages, and its consumers, to this container's store."""
        route = self._routes.get(address)
        if route is not None:
            self._end_way(route)
            route.away_since_s = None
        self._reach.queue_federation.own(address)

    def _route_of(self, address: str, node: Replicated) -> _Route:
        """Return what leads to a queue's owners; what has no answer stays."""
        route = self._routes.get(address)
        if route is not None and route.node is node:
            return route
        self._end(address)
        assert node.inlet is not None
        outbox = OwnerOutbox(
            node.inlet.entry,
            origin_number(self._mesh.id),
            self._mesh.incarnation,
            first_number(),
            holds_back=True,
        )
        route = self._routes[address] = _Route(node, outbox)
        outbox.on_released = partial(self._released, route)
        return route

    @staticmethod
    def _arrived(route: _Route, way: Away) -> None:
        """Use a link that the owner has taken; a refusal is an answer, too."""
        answer = way.link.remote
        if route.way is way and answer is not None and answer.target is not None:
            route.away_since_s = None
            route.outbox.set_link(way.end)

    @staticmethod
    def _released(route: _Route) -> None:
        """Try another link: who was taken for the owner is none, or not yet."""
        if route.way is not None:
            asyncio.get_running_loop().call_soon(route.way.detach)

    @staticmethod
    def _end_way(route: _Route) -> None:
        way, route.way = route.way, None
        if way is None:
            return
        if route.outbox.link is way.end:
            route.outbox.set_link(None)
        way.detach()

    def _end(self, address: str) -> None:
        route = self._routes.pop(address, None)
        if route is not None:
            self._end_way(route)
            route.outbox.close()

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use."""
        route = self._routes.get(way.address or "")
        if route is not None and route.way is way:
            route.way = None
            if route.outbox.link is way.end:
                route.outbox.set_link(None)
            if route.away_since_s is None:
                route.away_since_s = time.monotonic()
        self._mesh.restoration.later()

    def refused(self, way: Away, error: AmqpError) -> None:
        """Log why an owner takes nothing: until it does, its messages wait."""
        log.debug(
            "queue %r: container %s accepts no messages: %s",
            way.address,
            way.container,
            error.description,
        )

    # -- time

    def tick(self) -> None:
        """Wait no longer for answers where nobody has owned a queue for too long."""
        now_s = time.monotonic()
        for address, route in self._routes.items():
            if not route.outbox.unanswered:
                continue
            route.outbox.go_on()
            since_s = route.away_since_s
            if since_s is not None and now_s - since_s > REFUSE_S:
                log.warning(
                    "queue %r: nobody has owned it for %g s: it is not known what became of "
                    "%d messages",
                    address,
                    REFUSE_S,
                    route.outbox.refuse(),
                )


def _is_replicated(node: Replicated) -> bool:
    """Return whether replicas decide who owns a queue."""
    return node.replica is not None and node.replica.home is None
