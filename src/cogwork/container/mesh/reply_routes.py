"""The routes to the reply addresses of other containers, for those who send to the null target.

Theory of operation. All reply addresses of a container share an entry, with one link to it: which
of them are there still is known over there. It is closed when nothing has gone there for a while.
Addresses can be invented: a container that nobody has heard of has no way, and no entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.vhost.reply_addresses import REPLY_PREFIX, container_of
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.mesh.service import MeshService

__all__ = ("ReplyRoutes",)

IDLE_S = 60.0
"""A way is closed when nothing has gone there for so long."""


class ReplyRoutes:
    """Owned by the reach of a virtual host."""

    def __init__(self, mesh: MeshService, reach: Reach) -> None:
        self._mesh = mesh
        self._reach = reach
        self._entries: dict[str, AddressEntry] = {}
        self._seen: dict[str, tuple[int, float]] = {}

    def entry_of(self, address: str) -> AddressEntry | None:
        """Find the route to a reply address; None where it is none of another container's."""
        container = self.container_for(address)
        if container is None:
            return None
        entry = self._entries.get(container)
        if entry is None:
            if container not in self._mesh.mesh.database.records:
                return None
            name = f"{REPLY_PREFIX}{container}"
            entry = self._entries[container] = AddressEntry(self._mesh.core, name, CLOSEST_CODE)
        if not entry.outlets:
            way = self._reach.open(container, None, entry)
            if way is not None:
                entry.add_outlet(way.end)
        return entry

    def container_for(self, address: str) -> str | None:
        """Return the other container whose reply address this is."""
        container = container_of(address)
        return None if container == self._mesh.id else container

    def may_lead_to(self, address: str) -> bool:
        """Return whether an address may be there, at another container that is known."""
        container = self.container_for(address)
        return container is not None and container in self._mesh.mesh.database.records

    def sweep(self, now_s: float) -> None:
        """Close the ways that have not been used for long."""
        for container, entry in list(self._entries.items()):
            received, since_s = self._seen.get(container, (-1, now_s))
            ways = [each for each in entry.outlets if isinstance(each, OutgoingLink)]
            if received != entry.received or any(_is_busy(way) for way in ways):
                self._seen[container] = (entry.received, now_s)
            elif now_s - since_s > IDLE_S:
                del self._entries[container], self._seen[container]
                for way in ways:
                    way.owner.detach()
                entry.close()


def _is_busy(end: OutgoingLink) -> bool:
    return end.unsettled > 0 or end.queue_count > 0
