"""What a container that leaves the mesh does with its replicas: others get them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

from cogwork.container.cluster.raft import is_replicated, placement_of
from cogwork.plugin.engine.errors import ConsensusError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from cogwork.cluster.declarations import Declaration
    from cogwork.container.cluster.replication import Replication
    from cogwork.container.mesh.service import MeshService
    from cogwork.plugin.engine.placement import Placement

__all__ = ("Departure", "choose")

LOOK_S = 0.1

AGAIN_S = 5.0
"""How often it is looked whether something has to be moved once more."""

TRIES = 3
"""So often a move is tried that the cluster does not take, or that nobody has room for."""

NO_ROOM = "every container that can be reached holds it, or has no room for it"

log = logging.getLogger("cogwork")


class Departure:
    """One container's.

    Attributes:
        moved: Replicas that others have now.
        left: Replicas that are still here.
    """

    def __init__(self, replication: Replication, mesh: MeshService) -> None:
        """Initialize it; it does nothing yet.

        Args:
            replication: Has the replicas.
            mesh: The other containers.
        """
        self.moved = 0
        self.left = 0
        self._replication = replication
        self._mesh = mesh
        self._own = mesh.id
        self._chosen: dict[int, str] = {}
        self._failures: Counter[int] = Counter()
        self._problems: dict[int, str] = {}
        self._staying: set[int] = set()

    @property
    def problem(self) -> str | None:
        """Why some could not be moved; None while nothing is wrong."""
        return "; ".join(self._problems.values()) or None

    async def run(self, timeout_s: float) -> None:
        """Have others hold what this container holds; return when they do, or after a time.

        Args:
            timeout_s: What is here by then stays.
        """
        replication = self._replication
        if not replication.is_in_use:
            return
        replication.service.room.why_none = "it leaves the mesh"
        voters = replication.cluster.voters
        if self._own in voters and len(voters) > 1:
            log.warning(
                "container %s is a voter of the cluster and leaves: choose other primaries with "
                "`cogwork cluster move` before a majority of %s is gone",
                self._own,
                ", ".join(voters),
            )
        deadline_s, again_s = time.monotonic() + timeout_s, 0.0
        seen: set[int] = set()
        while True:
            held = self._held()
            seen |= held.keys()
            self.left, self.moved = len(held), len(seen - held.keys())
            late = held.keys() - self._staying
            if not late or time.monotonic() >= deadline_s:
                break
            if time.monotonic() >= again_s:
                await self._move_all()
                again_s = time.monotonic() + AGAIN_S
            else:
                await asyncio.sleep(LOOK_S)
        for number in late:
            self._note(held[number][0], "other containers are not ready in time")
        if replication.topology is not None:
            await replication.topology.leave()
        if self._own not in voters:
            await replication.levels.leave()

    def _held(self) -> dict[int, tuple[Declaration, Placement]]:
        """Return what this container holds a replica of, or may, by its number."""
        cluster = self._replication.cluster
        declared = (*cluster.declarations.all("stream"), *cluster.declarations.all("queue"))
        placed = ((each, placement_of(cluster, each)) for each in declared if is_replicated(each))
        return {
            each.number: (each, placement)
            for each, placement in placed
            if self._own in placement.holders
        }

    async def _move_all(self) -> None:
        """Declare who is to hold what is here; once more where that has come to nothing."""
        rooms: dict[str, int] | None = None
        for number in self._held().keys() - self._staying:
            if self._due(number) is None:
                continue
            if rooms is None:
                rooms = await self._replication.raft.moves.rooms.free(self._others())
            due = self._due(number)  # as it is now: others move it, too
            if due is not None:
                await self._move(*due, rooms)

    def _others(self) -> list[str]:
        costs = self._mesh.mesh.routes.tree.costs
        return [each for each in costs if each != self._own and self._mesh.way_to(each)]

    def _due(self, number: int) -> tuple[Declaration, Placement, str] | None:
        """Return what has to be moved, who is to hold it, and who of these is to be replaced.

        That is this container, or one that it chose and that is lost. None where it is on its way.
        """
        cluster = self._replication.cluster
        declaration = cluster.declarations.numbered(number)
        if declaration is None:
            return None
        placement = placement_of(cluster, declaration)
        wanted = (*placement.voters, *placement.learners)
        if self._own in wanted:
            return declaration, placement, self._own
        chosen = self._chosen.get(number)
        if chosen is None or chosen not in wanted or self._mesh.way_to(chosen):
            return None
        return declaration, placement, chosen

    async def _move(
        self, declaration: Declaration, placement: Placement, outgoing: str, rooms: dict[str, int]
    ) -> None:
        """Have another container hold one of them, where there is one that can."""
        number, costs = declaration.number, self._mesh.mesh.routes.tree.costs
        target = choose(placement, outgoing, rooms, costs, self._mesh.siblings)
        if target is None and outgoing in placement.voters:
            if outgoing == self._own:  # another one may come back
                self._failed(declaration, NO_ROOM)
                if costs.keys() <= {self._own, *placement.holders}:
                    self._staying.add(number)  # nobody else is there to be asked again
            return
        voters = _replaced(placement.voters, outgoing, target)
        learners = _replaced(placement.learners, outgoing, target)
        try:
            await self._replication.raft.moves.move(declaration, voters, learners)
        except (ConsensusError, ValueError) as error:
            self._failed(declaration, str(error))
            return
        self._problems.pop(number, None)
        if target is not None:
            rooms[target] += 1
            self._chosen[number] = target

    def _failed(self, declaration: Declaration, problem: str) -> None:
        """Note why a replica is still here, and that it stays where it was tried often enough."""
        self._note(declaration, problem)
        self._failures[declaration.number] += 1
        if self._failures[declaration.number] >= TRIES:
            self._staying.add(declaration.number)

    def _note(self, declaration: Declaration, problem: str) -> None:
        self._problems[declaration.number] = f"{declaration.kind} {declaration.name}: {problem}"


def choose(
    placement: Placement,
    own: str,
    rooms: Mapping[str, int],
    costs: Mapping[str, int],
    siblings: Container[str],
) -> str | None:
    """Choose who gets a replica of a container that leaves; None where nobody can.

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
    """Return what a container's workers share, which die together."""
    name, _, number = container.rpartition(".")
    return name if name and number.isdecimal() else container


def _replaced(members: list[str], own: str, other: str | None) -> list[str]:
    replaced = [other if each == own else each for each in members]
    return [each for each in replaced if each is not None]
