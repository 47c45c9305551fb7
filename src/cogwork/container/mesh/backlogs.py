"""What other containers are told of the items that wait here, queue by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.nodes.queue.node import QueueNode
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.virtual_host import VirtualHost

__all__ = ("Backlogs",)


class Backlogs:
    """Those of one virtual host."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost) -> None:
        """Has told nothing yet."""
        self._mesh = mesh
        self._vhost = vhost
        self._told: dict[str, int] = {}

    def tick(self) -> None:
        """Tells of backlogs that have changed much, but for replicated queues: their owners do."""
        told = self._told
        seen: set[str] = set()
        for address, node in self._vhost.nodes.items():
            if not isinstance(node, QueueNode) or node.replica is not None:
                continue
            if node.store.waiting or address in told:
                seen.add(address)
                self._tell(address, node.store.waiting)
        for address in [each for each in told if each not in seen]:
            self._tell(address, 0)

    def _tell(self, address: str, waiting: int) -> None:
        """Tells a backlog in steps of two; down only by more than one step, or to nothing."""
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
