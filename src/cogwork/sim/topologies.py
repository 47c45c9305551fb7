"""Shapes of meshes, as pairs of containers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

__all__ = ("SHAPES", "Edges", "bridge", "chords", "full", "line", "random", "ring", "star")

Edges = list[tuple[str, str]]


def line(names: Sequence[str]) -> Edges:
    """Each with the next."""
    return list(pairwise(names))


def ring(names: Sequence[str]) -> Edges:
    """Return a line whose ends are joined."""
    return [*line(names), (names[-1], names[0])] if len(names) > 2 else line(names)


def star(names: Sequence[str]) -> Edges:
    """All with the first."""
    return [(name, names[0]) for name in names[1:]]


def full(names: Sequence[str]) -> Edges:
    """Each with each."""
    return [(one, other) for at, one in enumerate(names) for other in names[:at]]


def bridge(names: Sequence[str]) -> Edges:
    """Two rings that one link joins."""
    middle = len(names) // 2
    return [*ring(names[:middle]), *ring(names[middle:]), (names[0], names[middle])]


def chords(names: Sequence[str], count: int, chance: Random) -> Edges:
    """Return a ring with so many further links, some of them parallel to others."""
    extra = [(chance.choice(names), chance.choice(names)) for _ in range(count)]
    return [*ring(names), *((one, other) for one, other in extra if one != other)]


def random(names: Sequence[str], chance: Random) -> Edges:
    """Return a ring with half as many chords as containers."""
    return chords(names, len(names) // 2, chance)


SHAPES: dict[str, Callable[[Sequence[str], Random], Edges]] = {
    "line": lambda names, _: line(names),
    "ring": lambda names, _: ring(names),
    "star": lambda names, _: star(names),
    "mesh": lambda names, _: full(names),
    "random": random,
    "bridge": lambda names, _: bridge(names),
}
"""By name, for scenarios."""
