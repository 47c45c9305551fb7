"""How the mesh and this container's links look as rows of plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cogwork.container.management.rows import iso_time
from cogwork.plugin.mesh import LinkRow

if TYPE_CHECKING:
    from cogwork.plugin.management import Row
    from cogwork.plugin.mesh import MeshView

__all__ = ("LINK", "MESH", "LinkRow", "link_row", "mesh_row")

LINK = (
    *("name", "url", "direction", "state", "neighbour", "cost", "since", "error"),
    *("bytes_in", "bytes_out", "control_bytes_in", "control_bytes_out"),
    *("messages_in", "messages_out"),
)
MESH = ("name", "id", "incarnation", "containers", "links", "shards", "leaving")


def link_row(link: LinkRow) -> Row:
    """Make a link's row; its name is its URL."""
    facts = {"name": link.url, "since": iso_time(link.since_s), **asdict(link)}
    return {key: facts[key] for key in LINK}


def mesh_row(mesh: MeshView) -> Row:
    """Make the mesh's row; its name is that of the container that sees it so."""
    known = mesh.snapshot()
    return {"name": known["id"], **known}
