"""What `cogwork mesh` shows of one container's view, in plain values."""

from __future__ import annotations

from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING

from cogwork.router.mesh.messages import InterestKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.router.mesh.link import Link
    from cogwork.router.mesh.mesh import Mesh

__all__ = ("view_of",)

SHARDS_MAX = 100
"""Of all queues in all containers, how many are shown: those with the longest backlog."""


def view_of(mesh: Mesh, now_s: float) -> dict[str, object]:
    """Return the containers, links, and interests that are known, and the ways to them."""
    return {
        "id": mesh.own.id,
        "incarnation": mesh.own.incarnation,
        "links": [_link(mesh, link, now_s) for link in mesh.neighbours.links.values()],
        "containers": [_container(mesh, origin, now_s) for origin in sorted(mesh.database.records)],
        "shards": nlargest(SHARDS_MAX, _shards(mesh), key=itemgetter("backlog")),
    }


def _link(mesh: Mesh, link: Link, now_s: float) -> dict[str, object]:
    return {
        "link": link.number,
        "neighbour": link.peer,
        "state": link.state.name.lower().replace("_", "-"),
        "in_use": mesh.neighbours.active.get(link.peer) is link,
        "dialled": link.is_dialled,
        "cost": link.effective_cost,
        "silent_s": max(0.0, now_s - link.heard_s),
        "figures": None if link.figures is None else link.figures._asdict(),
    }


def _shards(mesh: Mesh) -> Iterator[dict[str, object]]:
    return (
        {
            "container": origin,
            "virtual_host": entry.virtual_host,
            "address": entry.address,
            "consumers": entry.consumers,
            "backlog": entry.backlog,
        }
        for origin, table in mesh.interests.table.origins.items()
        for entry in table.entries.values()
        if entry.kind == InterestKind.QUEUE
    )


def _container(mesh: Mesh, origin: str, now_s: float) -> dict[str, object]:
    record = mesh.database.records[origin]
    since_s = mesh.routes.unreachable_since_s.get(origin)
    table = mesh.interests.table.origins.get(origin)
    entries = [] if table is None else list(table.entries.values())
    return {
        "id": origin,
        "incarnation": record.advertisement.incarnation,
        "neighbours": dict(record.advertisement.neighbours),
        "next_hop": mesh.next_hop(origin),
        "cost": mesh.routes.tree.costs.get(origin),
        "unreachable_s": None if since_s is None else max(0.0, now_s - since_s),
        "interests": {
            kind.name.lower(): sum(entry.kind == kind for entry in entries) for kind in InterestKind
        },
        "backlog": sum(entry.backlog for entry in entries),
    }
