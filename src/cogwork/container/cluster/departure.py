"""What a container that leaves the mesh does with its replicas: others get them."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from cogwork.consensus.errors import ConsensusError
from cogwork.container.cluster.raft import is_replicated, placement_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from cogwork.cluster.declarations import Declaration
    from cogwork.consensus.replicated.placement import Placement
    from cogwork.container.cluster.replication import Replication
    from cogwork.container.mesh.service import MeshService

__all__ = ("Departure", "choose")

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
        there = len(self._held())
        staying = await self._move_all()
        while True:
            held = self._held()
            self.left, self.moved = len(held), there - len(held)
            late = sorted(held[number][0].name for number in held.keys() - staying)
            if not late or time.monotonic() >= deadline_s:
                break
            await asyncio.sleep(LOOK_S)
        if late:
            self.problem = f"{', '.join(late)}: other containers are not ready in time"

    def _held(self) -> dict[int, tuple[Declaration, Placement]]:
        """Returns what this container holds a replica of, or may, by its number."""
        cluster = self._replication.cluster
        declared = (*cluster.declarations.all("stream"), *cluster.declarations.all("queue"))
        placed = ((each, placement_of(cluster, each)) for each in declared if is_replicated(each))
        return {
            each.number: (each, placement)
            for each, placement in placed
            if self._own in placement.holders
        }

    async def _move_all(self) -> set[int]:
        """Declares who is to hold what; returns the numbers of what has to stay."""
        staying: set[int] = set()
        moves = self._replication.raft.moves
        costs = self._mesh.mesh.routes.tree.costs
        others = [each for each in costs if each != self._own and self._mesh.way_to(each)]
        rooms = await moves.rooms.free(others)
        for number, (declaration, placement) in self._held().items():
            if self._own not in (*placement.voters, *placement.learners):
                continue  # it is on its way already
            target = choose(placement, self._own, rooms, costs, self._mesh.siblings)
            try:
                if target is None and self._own in placement.voters:
                    raise ValueError("every container that can be reached holds it, or cannot")
                await moves.move(
                    declaration,
                    _replaced(placement.voters, self._own, target),
                    _replaced(placement.learners, self._own, target),
                )
            except (ConsensusError, ValueError) as error:
                staying.add(number)
                self.problem = f"{declaration.kind} {declaration.name}: {error}"
            else:
                if target is not None:
                    rooms[target] += 1
        return staying


def choose(
    placement: Placement,
    own: str,
    rooms: Mapping[str, int],
    costs: Mapping[str, int],
    siblings: Container[str],
) -> str | None:
    """Chooses who gets a replica of a container that leaves; None where nobody can.

    Args:
        placement: Who holds what it is a replica of.
        own: Who leaves.
        rooms: Who can hold one more, with how many each has.
        costs: Of the ways there.
        siblings: The workers beside it: they leave, too, most likely.
    """
    hosts = {_host(each) for each in placement.voters if each != own}
    return min(
        (each for each in rooms if each not in placement.holders),
        key=lambda each: (
            each in siblings,
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
