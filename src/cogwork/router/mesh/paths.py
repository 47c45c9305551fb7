"""Shortest paths, the same in every container that knows the same advertisements.

A link counts where both ends advertise it, each with the cost of its own direction. Of two paths of
one cost the one whose last but one container has the smaller id is taken, so that a way does not
depend on what was heard first. Costs are positive: with each hop along a shortest path the distance
shrinks, so next hops make no loop.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("Graph", "Tree", "graph_of", "shortest_paths")

Graph = dict[str, dict[str, int]]
"""From each container to its neighbours, with costs."""


def graph_of(advertised: Iterable[tuple[str, tuple[tuple[str, int], ...]]]) -> Graph:
    """Return the graph of the links that both ends advertise."""
    claimed = {origin: dict(neighbours) for origin, neighbours in advertised}
    return {
        origin: {
            other: cost
            for other, cost in neighbours.items()
            if other != origin and origin in claimed.get(other, ())
        }
        for origin, neighbours in claimed.items()
    }


class Tree:
    """The shortest paths from one container to all that can be reached.

    Attributes:
        root: The container.
        costs: Of each path; in the order of their costs.
        parents: The last but one container of each path; the root has none.
    """

    __slots__ = ("costs", "parents", "root")

    def __init__(self, root: str, costs: dict[str, int], parents: dict[str, str]) -> None:
        self.root = root
        self.costs = costs
        self.parents = parents

    def next_hops(self) -> dict[str, str]:
        """Return the first container of each path, by the last one."""
        hops: dict[str, str] = {}
        for container in self.costs:
            parent = self.parents.get(container)
            if parent is not None:
                hops[container] = container if parent == self.root else hops[parent]
        return hops

    def path_to(self, container: str) -> tuple[str, ...]:
        """Return the containers of a path, with both its ends; none where there is no path."""
        if container not in self.costs:
            return ()
        path = [container]
        while path[-1] != self.root:
            path.append(self.parents[path[-1]])
        return tuple(reversed(path))


def shortest_paths(graph: Mapping[str, Mapping[str, int]], root: str) -> Tree:
    """Compute the tree of shortest paths from `root` (Dijkstra)."""
    best: dict[str, int] = {root: 0}
    parents: dict[str, str] = {}
    costs: dict[str, int] = {}
    heap = [(0, root)]
    while heap:
        cost, container = heappop(heap)
        if container in costs:
            continue
        costs[container] = cost
        for other, step in graph.get(container, {}).items():
            reached, known = cost + step, best.get(other)
            if known is None or reached < known:
                best[other] = reached
                parents[other] = container
                heappush(heap, (reached, other))
            elif reached == known and other not in costs and container < parents[other]:
                parents[other] = container
    return Tree(root, costs, parents)
