"""The ways from here: who can be reached, by which neighbour, at what cost."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from cogwork.router.mesh.paths import Graph, Tree, graph_of, shortest_paths

if TYPE_CHECKING:
    from cogwork.router.mesh.database import Database

__all__ = ("Routes",)


class Routes:
    """What follows from the database; computed when told to.

    Attributes:
        graph: The links that both ends advertise.
        next_hops: The neighbour to go by, for each container that can be reached.
        unreachable_since_s: Since when, for each container that is known and cannot be reached.
        tree: The shortest paths from here.
    """

    def __init__(self, own_id: str, database: Database) -> None:
        self.graph: Graph = {own_id: {}}
        self.next_hops: dict[str, str] = {}
        self.unreachable_since_s: dict[str, float] = {}
        self.tree = Tree(own_id, {own_id: 0}, {})
        self._own_id = own_id
        self._database = database

    def is_reachable(self, container: str) -> bool:
        """Return whether there is a way, by the last computation."""
        return container == self._own_id or container in self.next_hops

    def is_best(self, path: tuple[str, ...]) -> bool:
        """Return whether no path from here to the end of this one is cheaper now.

        One of which a link is not there any more is not the best, either.
        """
        cost = 0
        for one, other in pairwise(path):
            step = self.graph.get(one, {}).get(other)
            if step is None:
                return False
            cost += step
        return cost <= self.tree.costs.get(path[-1], cost)

    def compute(self, now_s: float) -> dict[str, str | None] | None:
        """Compute the ways anew.

        Returns:
            The next hops that have changed; None where no cost from here has, either.
        """
        adverts = [record.advertisement for record in self._database]
        tree_before = self.tree
        self.graph = graph_of((each.origin, each.neighbours) for each in adverts)
        self.tree = shortest_paths(self.graph, self._own_id)
        hops = self.tree.next_hops()
        before, self.next_hops = self.next_hops, hops
        changes: dict[str, str | None] = {
            container: hop for container, hop in hops.items() if before.get(container) != hop
        }
        changes.update((container, None) for container in before if container not in hops)
        self.unreachable_since_s = {
            each.origin: self.unreachable_since_s.get(each.origin, now_s)
            for each in adverts
            if not self.is_reachable(each.origin)
        }
        return changes or (None if self.tree.costs == tree_before.costs else changes)
