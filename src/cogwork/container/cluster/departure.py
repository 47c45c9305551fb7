"""What a container that leaves the mesh does with its replicas: others get them."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from cogwork.consensus.errors import ConsensusError
from cogwork.container.cluster.raft import KIND, joined_name

if TYPE_CHECKING:
    from cogwork.consensus.replicated.placement import Placement
    from cogwork.container.cluster.replication import Replication
    from cogwork.container.mesh.service import MeshService

__all__ = ("Departure",)

LOOK_S = 0.1

log = logging.getLogger("cogwork")


class Departure:
    """One container's.

    Attributes:
        moved: Replicas that others have now.
        left: Replicas that are still here.
        problem: Why one could not be moved; None while nothing is wrong.
    """

    def __init__(self, replication: Replication, mesh: MeshService) -> None:
        """Does nothing yet.

        Args:
            replication: Has the replicas.
            mesh: The other containers.
        """
        self.moved = 0
        self.left = 0
        self.problem: str | None = None
        self._replication = replication
        self._mesh = mesh
        self._own = mesh.id

    async def run(self, timeout_s: float) -> None:
        """Has others hold what this container holds; returns when they do, or after a time.

        Args:
            timeout_s: What is here by then stays.
        """
        replication = self._replication
        if not replication.is_in_use:
            return
        replication.service.why_no_room = "it leaves the mesh"
        if self._own in replication.cluster.voters and len(replication.cluster.voters) > 1:
            log.warning(
                "container %s votes in $cluster, and that cannot be moved: name another one in "
                "the others' [cluster]",
                self._own,
            )
        deadline_s = time.monotonic() + timeout_s
        there = self.left = len(self._held())
        staying = await self._move_all()
        while self._held().keys() - staying and time.monotonic() < deadline_s:
            await asyncio.sleep(LOOK_S)
            self.left = len(self._held())
            self.moved = there - self.left
        if late := self._held().keys() - staying:
            self.problem = f"{', '.join(sorted(late))}: other containers are not ready in time"

    def _held(self) -> dict[str, Placement]:
        """Returns the streams that this container holds a replica of, or may."""
        raft, declarations = self._replication.raft, self._replication.cluster.declarations
        placements = {
            name: raft.placement(name) for name in map(joined_name, declarations.all(KIND))
        }
        return {
            name: placement
            for name, placement in placements.items()
            if placement is not None and self._own in placement.holders
        }

    async def _move_all(self) -> set[str]:
        """Declares who is to hold what; returns the streams that have to stay."""
        staying: set[str] = set()
        costs = self._mesh.mesh.routes.tree.costs
        others = [each for each in costs if each != self._own and self._mesh.way_to(each)]
        rooms = await self._replication.raft.rooms.free(others)
        for stream, placement in self._held().items():
            if self._own not in (*placement.voters, *placement.learners):
                continue  # it is on its way already
            target = self._target(placement, rooms)
            if target is None and self._own in placement.voters:
                staying.add(stream)
                self.problem = (
                    f"{stream}: every container that can be reached holds it already, or can not"
                )
                continue
            try:
                await self._replication.raft.move(
                    stream,
                    _replaced(placement.voters, self._own, target),
                    _replaced(placement.learners, self._own, target),
                )
            except (ConsensusError, ValueError) as error:
                staying.add(stream)
                self.problem = f"{stream}: {error}"
            else:
                if target is not None:
                    rooms[target] += 1
        return staying

    def _target(self, placement: Placement, rooms: dict[str, int]) -> str | None:
        """Chooses who gets a replica; None where nobody can."""
        costs = self._mesh.mesh.routes.tree.costs
        hosts = {_host(each) for each in placement.voters if each != self._own}
        return min(
            (each for each in rooms if each not in placement.holders),
            key=lambda each: (
                each in self._mesh.siblings,
                _host(each) in hosts,
                rooms[each],
                costs.get(each, 0),
                each,
            ),
            default=None,
        )


def _host(container: str) -> str:
    """Returns what a container's workers share, which die together."""
    name, _, number = container.rpartition(".")
    return name if name and number.isdecimal() else container


def _replaced(members: list[str], own: str, other: str | None) -> list[str]:
    replaced = [other if each == own else each for each in members]
    return [each for each in replaced if each is not None]
