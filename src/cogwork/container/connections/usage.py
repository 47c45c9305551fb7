"""How much a container has to do, as one number by which clients are shared out.

A client counts as one; so do ten thousand messages that wait, and a gibibyte of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.router.mesh.messages import Figures

__all__ = ("load_of", "surplus_of")

MESSAGES_OF_CLIENT = 10_000
MEMORY_BYTES_OF_CLIENT = 1 << 30


def load_of(figures: Figures) -> float:
    """Return what a container has to do besides its clients, counted in clients."""
    messages = figures.messages / MESSAGES_OF_CLIENT
    return messages + figures.memory_bytes / MEMORY_BYTES_OF_CLIENT


def surplus_of(own: float, others: Sequence[float]) -> int:
    """Return how many clients a container has beyond its share.

    Args:
        own: Its usage.
        others: That of those that clients may be sent to.
    """
    if not others:
        return 0
    mean = (own + sum(others)) / (1 + len(others))
    return max(0, int(own - mean))
