"""The mesh as a picture, and the cluster with its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cogwork.cli.management.folding import Folding
from cogwork.cli.terminal.graph import graph_of
from cogwork.cli.terminal.pictures import as_drawing
from cogwork.client import LinkRefused, PermissionDenied
from cogwork.console.rendering import page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.session import Session

__all__ = ("cluster", "mesh")

TYPE = "org.cogwork.mesh"
PICTURE_CONTAINERS_MAX = 200


async def mesh(request: Request, session: Session) -> Response:
    """Show the containers, links and routes that the container knows."""
    snapshot: dict[str, Any] = await session.get("READ", TYPE)
    graph = graph_of(snapshot)
    folded = Folding(graph.vertices).graph(graph)
    is_drawn = len(folded.vertices) <= PICTURE_CONTAINERS_MAX
    return page(
        request,
        "mesh.html",
        session,
        # Names in it are escaped by who draws it.
        picture=Markup(as_drawing(folded)) if is_drawn else None,
        graph=folded,
        shards=snapshot["shards"],
    )


async def cluster(request: Request, session: Session) -> Response:
    """Show the members of the cluster, the root and how far each has read what was declared."""
    container: Mapping[str, Any] = await session.get("READ", "container")
    status: dict[str, Any] | None = None
    problem = ""
    if container["cluster"] is not None:
        try:
            status = await session.get("STATUS", TYPE)
        except PermissionDenied:
            raise
        except LinkRefused as error:
            problem = error.description
    return page(
        request,
        "cluster.html",
        session,
        own=container["cluster"],
        name_=container["name"],
        told=status,
        why=problem,
    )
