"""A container without neighbours, as management sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.mesh.url import LinkUrl
from cogwork.spi.node import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.spi.mesh import LinkRow

__all__ = ("Alone",)


class Alone:
    """The mesh of one container."""

    def __init__(self, container_id: str, incarnation: int) -> None:
        self._id = container_id
        self._incarnation = incarnation

    def links(self) -> Sequence[LinkRow]:
        """Lists none."""
        return ()

    def add_link(self, url: str, cost: int) -> None:  # noqa: ARG002  # MeshView's signature
        """Refuses."""
        raise Refused(f"no link to {LinkUrl.parse(url)}: this container stands alone")

    def remove_link(self, url: str) -> None:
        """Finds none."""
        raise KeyError(LinkUrl.parse(url).endpoint)

    def snapshot(self) -> dict[str, object]:
        """Returns itself."""
        own = {
            "id": self._id,
            "incarnation": self._incarnation,
            "neighbours": {},
            "next_hop": None,
            "cost": 0,
            "unreachable_s": None,
            "interests": {},
            "backlog": 0,
        }
        return {
            "id": self._id,
            "incarnation": self._incarnation,
            "links": [],
            "containers": [own],
            "shards": [],
        }
