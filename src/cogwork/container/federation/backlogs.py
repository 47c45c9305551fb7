"""What other containers are told of the items that wait here, queue by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.capabilities import Shareable, replica_of
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.queue.store import Store

__all__ = ("Backlogs",)

QUEUE_PREFIX = "queue/"


class Backlogs:
    """Those of one virtual host."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost) -> None:
        """Initialize it; it has told nothing yet."""
        self._mesh = mesh
        self._vhost = vhost
        self._told: dict[str, int] = {}
        self._stores: dict[str, Store] = {}
        self._changed = vhost.nodes.follow()

    def tick(self) -> None:
        """Tell of backlogs that have changed much, but for queues with owners."""
        while self._changed:
            self._look_at(self._changed.pop())
        stores = self._stores
        waiting = {address: count for address, each in stores.items() if (count := each.waiting)}
        for address, count in waiting.items():
            self._tell(address, count)
        for address in [each for each in self._told if each not in waiting]:
            self._tell(address, 0)

    def _look_at(self, address: str) -> None:
        """Take note of a queue that is new, or has gone."""
        node = self._vhost.nodes.get(address)
        is_private = address.removeprefix(QUEUE_PREFIX) in self._vhost.exchanges.private
        if isinstance(node, Shareable) and replica_of(node) is None and not is_private:
            self._stores[address] = node.store
        else:
            self._stores.pop(address, None)

    def _tell(self, address: str, waiting: int) -> None:
        """Tell a backlog in steps of two; down only by more than one step, or to nothing."""
        step = waiting.bit_length()
        before = self._told.get(address, 0)
        if step == before or (step and before - step == 1):
            return
        if step:
            self._told[address] = step
        else:
            self._told.pop(address, None)
        backlog = 1 << (step - 1) if step else 0
        self._mesh.set_interest(
            Interest(InterestKind.QUEUE, self._vhost.name, address, backlog=backlog)
        )
