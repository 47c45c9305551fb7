"""The workers of a container as the one that they are to people.

A container that runs as several workers is known to the mesh as containers named `north.0`,
`north.1` and so on. Nothing but these names says that they belong together.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cogwork.cli.terminal.graph import Edge, Graph, Vertex, natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ("Folding",)

_WORKER = re.compile(r"(.+)\.(0|[1-9][0-9]*)")


class Folding:
    """Which containers are workers of which.

    Attributes:
        workers: Those of each container that has several, by its name, in the order of numbers.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        """Find the names that have a worker 0 and at least one more.

        Args:
            ids: Those of all containers.
        """
        known = set(ids)
        found: dict[str, list[str]] = {}
        for each in sorted(known, key=natural):
            match = _WORKER.fullmatch(each)
            if match is not None and match[1] not in known:
                found.setdefault(match[1], []).append(each)
        self.workers = {
            name: workers
            for name, workers in found.items()
            if len(workers) > 1 and f"{name}.0" in workers
        }
        self._names = {each: name for name, workers in self.workers.items() for each in workers}

    def name_of(self, container: str) -> str:
        """Return the name that people know a container by."""
        return self._names.get(container, container)

    def is_inside(self, one: str, other: str | None) -> bool:
        """Return whether two containers are workers of one."""
        return other is not None and one in self._names and self.name_of(other) == self._names[one]

    def graph(self, graph: Graph) -> Graph:
        """Return a mesh in which a container with workers is one vertex."""
        vertices: dict[str, Vertex] = {}
        for name, members in self._members(graph).items():
            vertices[name] = self._vertex(name, members)
        return Graph(self.name_of(graph.own), vertices, self._edges(graph.edges))

    def _members(self, graph: Graph) -> dict[str, list[Vertex]]:
        members: dict[str, list[Vertex]] = {}
        for vertex in graph.vertices.values():
            members.setdefault(self.name_of(vertex.id), []).append(vertex)
        return members

    def _vertex(self, name: str, members: Sequence[Vertex]) -> Vertex:
        """Add up the workers of a container; the way to it is that to the nearest of them."""
        reachable = [each for each in members if each.cost is not None]
        nearest = min(reachable, key=lambda each: each.cost or 0, default=members[0])
        silent_s = [each.unreachable_s for each in members if each.unreachable_s is not None]
        neighbours: dict[str, int] = {}
        for each in members:
            for other, cost in each.neighbours.items():
                if not self.is_inside(each.id, other):
                    known = self.name_of(other)
                    neighbours[known] = min(cost, neighbours.get(known, cost))
        next_hop = None if nearest.next_hop is None else self.name_of(nearest.next_hop)
        return replace(
            nearest,
            id=name,
            next_hop=next_hop,
            unreachable_s=None if reachable else min(silent_s, default=None),
            interests=_sums(each.interests for each in members),
            backlog=sum(each.backlog for each in members),
            neighbours=neighbours,
        )

    def _edges(self, edges: Iterable[Edge]) -> list[Edge]:
        found: dict[tuple[str, str], Edge] = {}
        for edge in edges:
            one, other = sorted(map(self.name_of, edge.ends))
            if one == other:
                continue
            known = found.get((one, other), replace(edge, ends=(one, other)))
            found[one, other] = Edge(
                known.ends,
                min(known.cost, edge.cost),
                is_whole=known.is_whole or edge.is_whole,
                is_used=known.is_used or edge.is_used,
            )
        return [found[ends] for ends in sorted(found)]

    def shards(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Add up the shards of workers that are shards of one container to people."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for row in rows:
            name = self.name_of(row["container"])
            key = (row["address"], row["virtual_host"], name)
            known = found.setdefault(key, {**row, "container": name, "backlog": 0, "consumers": 0})
            known["backlog"] += row["backlog"]
            known["consumers"] += row["consumers"]
        return list(found.values())


def _sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for kind, count in each.items():
            total[kind] = total.get(kind, 0) + count
    return total
