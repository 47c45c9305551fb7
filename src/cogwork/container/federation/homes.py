"""The ways from here to the homes of queues, and what becomes of messages while one is away.

Theory of operation. Each queue whose home is another container has an outbox (`OwnerOutbox`) here,
which keeps what it has sent until the home has answered. As soon as the home can be reached there
is a link to it; when that is lost, what has no answer is sent again on the next one. A home that
has been away for `REFUSE_S` is waited for no longer: whoever has published is told that it is not
known what became of it (AMQP 0-9-1: `basic.nack`), until the home is back.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from cogwork.container.mesh.changes import Changes
from cogwork.dataplane.addresses.owner_outbox import OwnerOutbox
from cogwork.plugin.capabilities import Replicated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set

    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.away import Away, Opener
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.plugin.node import Node

    OpenWay = Callable[[str, str, AddressEntry, Opener], Away | None]
    """Attaches a link: the container, the address, whose entry has the messages, who asks."""

__all__ = ("REFUSE_S", "Homes", "first_number", "origin_number")

REFUSE_S = 10.0
"""So long messages wait for a home that is away."""

AWAY_S = 3.0
"""A link that is lost is back by then, if it was only that."""

ORIGIN_BYTES = 8

log = logging.getLogger("cogwork")


@dataclass(slots=True, eq=False)
class _Route:
    """The way of one queue's messages to its home.

    Attributes:
        node: The queue's part here.
        home: The container.
        outbox: What has no answer yet.
        way: The link, attached or not; None while there is none.
        away_since_s: Since when there is no link that the home has taken; None while there is.
    """

    node: Replicated
    home: str
    outbox: OwnerOutbox
    way: Away | None = None
    away_since_s: float | None = field(default_factory=time.monotonic)

    def is_away(self, for_s: float) -> bool:
        """Return whether the home has been away for so long."""
        since_s = self.away_since_s
        return since_s is not None and time.monotonic() - since_s > for_s


class Homes:
    """Those of one virtual host's queues."""

    def __init__(
        self,
        own: str,
        incarnation: int,
        nodes: Mapping[str, Node],
        *,
        open_way: OpenWay,
        is_reachable: Callable[[str], bool],
        follow: Callable[[str, str | None], object],
        restore_later: Callable[[], object],
        flush: Callable[[], object],
    ) -> None:
        """Initialize it; it leads nowhere yet.

        Args:
            own: This container's id.
            incarnation: Its own.
            nodes: The virtual host's queues among them.
            open_way: Attaches a link to a home.
            is_reachable: Returns whether there is a way to a container.
            follow: Has the consumers of a queue receive from a container, or wait for it.
            restore_later: Has `restore` called after a moment.
            flush: Has what was written leave.
        """
        self._origin = origin_number(own)
        self._incarnation = incarnation
        self._nodes = nodes
        self._open_way = open_way
        self._is_reachable = is_reachable
        self._follow = follow
        self._restore_later = restore_later
        self._flush = flush
        self._routes: dict[str, _Route] = {}
        self._changes = Changes(self._settle)

    # -- what there is

    def changed(self, address: str) -> None:
        """Have a queue looked at, at the end of the loop's turn: it has come or gone."""
        self._changes.add(address)

    def restore(self) -> None:
        """Look at all queues: ways have come or gone."""
        for address in self._routes:
            self.changed(address)

    def is_away(self, address: str) -> bool:
        """Return whether the home of a queue has been away for more than a moment."""
        route = self._routes.get(address)
        return route is not None and route.is_away(AWAY_S)

    def away(self) -> list[str]:
        """List the queues whose homes have been away for more than a moment."""
        return [address for address, route in self._routes.items() if route.is_away(AWAY_S)]

    def _settle(self, changed: Set[str]) -> None:
        for address in changed:
            node = self._nodes.get(address)
            if isinstance(node, Replicated) and _is_elsewhere(node):
                self._lead(address, node)
            else:
                self._end(address)
        self._flush()

    # -- ways

    def _lead(self, address: str, node: Replicated) -> None:
        """Have a queue's messages, and its consumers, go to its home."""
        route = self._routes.get(address)
        if route is None or route.node is not node:
            self._end(address)
            route = self._begin(address, node)
        assert node.inlet is not None
        is_reachable = self._is_reachable(route.home)
        if route.way is None and is_reachable:
            route.way = self._open_way(route.home, address, node.inlet.entry, self)
            if route.way is not None:
                route.way.on_attached = partial(self._arrived, route, route.way)
        self._follow(address, route.home if is_reachable else None)

    def _begin(self, address: str, node: Replicated) -> _Route:
        assert node.inlet is not None
        assert node.replica is not None
        outbox = OwnerOutbox(node.inlet.entry, self._origin, self._incarnation, first_number())
        route = self._routes[address] = _Route(node, node.replica.home or "", outbox)
        outbox.on_released = partial(self._released, route)
        node.inlet.set_owners([outbox])
        return route

    def _arrived(self, route: _Route, way: Away) -> None:
        """Use a link that the home has taken; a refusal is an answer, too."""
        answer = way.link.remote
        if route.way is way and answer is not None and answer.target is not None:
            route.away_since_s = None
            route.outbox.set_link(way.end)

    def _released(self, route: _Route) -> None:
        """Try another link: the home does not take what it is sent on this one."""
        if route.way is not None:
            asyncio.get_running_loop().call_soon(route.way.detach)

    def _end(self, address: str) -> None:
        route = self._routes.pop(address, None)
        if route is None:
            return
        if route.way is not None:
            route.way.detach()
        route.outbox.close()

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use."""
        route = self._routes.get(way.address or "")
        if route is not None and route.way is way:
            route.way = None
            route.outbox.set_link(None)
            if route.away_since_s is None:
                route.away_since_s = time.monotonic()
        self._restore_later()

    def refused(self, way: Away, error: AmqpError) -> None:
        """Log why a home takes nothing: until it does, its messages wait."""
        log.debug(
            "queue %r: container %s, its home, accepts no messages: %s",
            way.address,
            way.container,
            error.description,
        )

    # -- time

    def tick(self) -> None:
        """Wait no longer for homes that are away for too long."""
        for address, route in self._routes.items():
            if route.is_away(REFUSE_S) and not route.outbox.is_refusing:
                log.warning(
                    "queue %r: container %s, its home, has been away for %g s: messages are not "
                    "confirmed until it is back, %d so far",
                    address,
                    route.home,
                    REFUSE_S,
                    route.outbox.refuse(),
                )


def origin_number(container: str) -> int:
    """Return what the tags of forwarded messages name a container by."""
    digest = hashlib.blake2b(container.encode(), digest_size=ORIGIN_BYTES).digest()
    return int.from_bytes(digest, "big")


def first_number() -> int:
    """Return the first number of an outbox: above those of all earlier ones in this life.

    No clock is set back to them.
    """
    return time.monotonic_ns() // 1000


def _is_elsewhere(node: Replicated) -> bool:
    """Return whether another container is a queue's home."""
    replica = node.replica
    return replica is not None and replica.home is not None and replica.epoch is None
