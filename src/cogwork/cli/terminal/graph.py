"""The mesh as a graph: containers, the links between them, and the ways from one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Edge", "Graph", "Vertex", "graph_of", "natural")

_PARTS = re.compile(r"(\D*)([0-9]*)")


@dataclass(frozen=True, slots=True)
class Vertex:
    """A container.

    Attributes:
        id: Its name.
        next_hop: The neighbour to go by; None for the container that looks, and where no way is.
        cost: Of the way there; None where there is none.
        unreachable_s: How long there has been none; None where there is one.
        interests: How many, by kind.
        backlog: Items that wait in its queues.
        neighbours: The cost of the link to each.
    """

    id: str
    next_hop: str | None
    cost: int | None
    unreachable_s: float | None
    interests: Mapping[str, int]
    backlog: int
    neighbours: Mapping[str, int]

    @property
    def is_reachable(self) -> bool:
        """Whether there is a way, or it is the container that looks."""
        return self.cost is not None


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two containers.

    Attributes:
        ends: Both, in the order of their names.
        cost: Of the way over it.
        is_whole: Whether both ends say so: only then it is used.
        is_used: Whether the container that looks reaches anything over it.
    """

    ends: tuple[str, str]
    cost: int
    is_whole: bool
    is_used: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """A mesh, as one container sees it.

    Attributes:
        own: The container that looks.
        vertices: All that are known, by name.
        edges: The links between them.
    """

    own: str
    vertices: dict[str, Vertex]
    edges: list[Edge] = field(default_factory=list)

    def walk(self) -> list[str]:
        """List the containers in the order of a walk from neighbour to neighbour.

        In this order round a circle, the links of a ring or a line lie on the circle.
        """
        order: dict[str, None] = {}
        for start in (self.own, *sorted(self.vertices, key=natural)):
            stack = [start]
            while stack:
                name = stack.pop()
                if name in order or name not in self.vertices:
                    continue
                order[name] = None
                stack += sorted(self.vertices[name].neighbours, key=natural, reverse=True)
        return list(order)

    @property
    def hub(self) -> str | None:
        """The one container that is linked with all others, where no other one is; of four up."""
        most = len(self.vertices) - 1
        hubs = [each.id for each in self.vertices.values() if len(each.neighbours) >= most]
        return hubs[0] if len(hubs) == 1 and most > 2 else None


def graph_of(snapshot: Mapping[str, Any]) -> Graph:
    """Read what `READ org.cogwork.mesh` answers.

    Args:
        snapshot: The reply's body.
    """
    rows = sorted(snapshot["containers"], key=lambda row: natural(row["id"]))
    vertices = {row["id"]: _vertex(row) for row in rows}
    return Graph(snapshot["id"], vertices, _edges(snapshot["id"], vertices))


def natural(name: str) -> list[tuple[str, int]]:
    """Sort c10 after c9."""
    return [(word, int(digits or 0)) for word, digits in _PARTS.findall(name)]


def _vertex(row: Mapping[str, Any]) -> Vertex:
    return Vertex(
        id=row["id"],
        next_hop=row["next_hop"],
        cost=row["cost"],
        unreachable_s=row["unreachable_s"],
        interests=row["interests"],
        backlog=row["backlog"],
        neighbours=row["neighbours"],
    )


def _edges(own: str, vertices: Mapping[str, Vertex]) -> list[Edge]:
    pairs = sorted({_pair(each.id, to) for each in vertices.values() for to in each.neighbours})
    costs = {
        pair: [
            vertices[one].neighbours[other]
            for one, other in (pair, pair[::-1])
            if one in vertices and other in vertices[one].neighbours
        ]
        for pair in pairs
    }
    used = _used(own, vertices)
    return [
        Edge(pair, max(costs[pair]), is_whole=len(costs[pair]) == 2, is_used=pair in used)
        for pair in pairs
        if pair[0] in vertices and pair[1] in vertices
    ]


def _used(own: str, vertices: Mapping[str, Vertex]) -> set[tuple[str, str]]:
    """Find the links of the shortest paths: from each container one step back to the start."""
    used = set()
    for vertex in vertices.values():
        for name, cost in vertex.neighbours.items():
            before = vertices.get(name)
            if vertex.cost is None or before is None or before.cost is None:
                continue
            via = vertex.id if before.id == own else before.next_hop
            if before.cost + cost == vertex.cost and via == vertex.next_hop:
                used.add(_pair(vertex.id, name))
                break
    return used


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
