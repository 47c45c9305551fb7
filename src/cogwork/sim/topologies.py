"""Shapes of meshes, as pairs of containers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

__all__ = ("Edges", "chords", "full", "line", "ring", "star")

Edges = list[tuple[str, str]]


def line(names: Sequence[str]) -> Edges:
    """Each with the next."""
    return list(pairwise(names))


def ring(names: Sequence[str]) -> Edges:
    """A line whose ends are joined."""
    return [*line(names), (names[-1], names[0])]


def star(names: Sequence[str]) -> Edges:
    """All with the first."""
    return [(name, names[0]) for name in names[1:]]


def full(names: Sequence[str]) -> Edges:
    """Each with each."""
    return [(one, other) for at, one in enumerate(names) for other in names[:at]]


def chords(names: Sequence[str], count: int, random: Random) -> Edges:
    """A ring with so many further links, some of them parallel to others or to themselves."""
    extra = [(random.choice(names), random.choice(names)) for _ in range(count)]
    return [*ring(names), *((one, other) for one, other in extra if one != other)]
