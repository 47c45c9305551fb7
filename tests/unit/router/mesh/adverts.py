"""Advertisements to be told, and what a container has sent of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cogwork.router.mesh.effects import Send
from cogwork.router.mesh.messages import Advertisement
from cogwork.router.mesh.wire import decode

if TYPE_CHECKING:
    from meshes import Lab

__all__ = ("advert", "never", "sent")

T = TypeVar("T")


def advert(origin: str, sequence: int = 1, *neighbours: str, **changes: int) -> Advertisement:
    """Return an advertisement with links of cost 1."""
    fields = {"incarnation": 1, "sequence": sequence, "age_s": 0, **changes}
    links = tuple((each, 1) for each in sorted(neighbours))
    return Advertisement(origin=origin, neighbours=links, **fields)


def sent(lab: Lab, name: str, kind: type[T]) -> list[tuple[int, T]]:
    """Return what a container has sent of one kind, with the links."""
    found = ((each.link, decode(each.data)) for each in lab.stations[name].of(Send))
    return [(link, message) for link, message in found if isinstance(message, kind)]


def never(_container: str) -> bool:
    """Return that a container cannot be reached."""
    return False
