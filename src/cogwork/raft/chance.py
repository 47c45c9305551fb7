"""Where random numbers come from: `random.Random` is such a thing, seeded where runs repeat."""

from __future__ import annotations

from typing import Protocol

__all__ = ("Chance",)


class Chance(Protocol):
    """A source of random numbers."""

    def random(self) -> float:
        """Return a number from 0 on, less than 1."""

    def getrandbits(self, k: int, /) -> int:
        """Return a number of so many bits."""
