"""The addresses of dynamic links, for replies: they name the container they lead to."""

from __future__ import annotations

__all__ = ("REPLY_PREFIX", "container_of", "replies_to")

REPLY_PREFIX = "_reply/"
"""What such an address begins with; the life of the container that made it follows."""


def replies_to(container: str, incarnation: int) -> str:
    """Returns what the reply addresses begin with that one life of a container makes."""
    return f"{REPLY_PREFIX}{container}.{incarnation:x}"


def container_of(address: str) -> str | None:
    """Returns whose reply address this is; None where it is malformed."""
    home = address[len(REPLY_PREFIX) :].rpartition("/")[0]
    container, _, incarnation = home.rpartition(".")
    return container if container and incarnation else None
