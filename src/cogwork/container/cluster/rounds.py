"""Who is visited at a tick: whoever is awake, and now and then everybody else.

Theory of operation. Whatever may give somebody something to do wakes it. It is visited at the next
tick, and rests from then on, unless the visit, or anything else, wakes it again. So that news which
nobody was told of is found all the same, each tick also visits a share of all: at rest or not,
everybody has its turn once a round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ROUND_TICKS", "Rounds")

ROUND_TICKS = 20
"""So many ticks are a round."""

T = TypeVar("T")


class Rounds(Generic[T]):
    """Who is to be visited."""

    def __init__(self) -> None:
        """Initialize it; it knows nobody yet."""
        self._awake: set[T] = set()
        self._shares: list[set[T]] = [set() for _ in range(ROUND_TICKS)]
        self._share_of: dict[T, set[T]] = {}
        self._ticks = 0

    def add(self, each: T) -> None:
        """Have somebody visited from now on; it is awake."""
        share = self._share_of[each] = min(self._shares, key=len)
        share.add(each)
        self._awake.add(each)

    def remove(self, each: T) -> None:
        """Have somebody visited no more."""
        self._share_of.pop(each, set()).discard(each)
        self._awake.discard(each)

    def wake(self, each: T) -> None:
        """Have somebody visited at the next tick; one that is not known stays so."""
        if each in self._share_of:
            self._awake.add(each)

    def wake_all(self) -> None:
        """Have everybody visited at the next tick."""
        self._awake.update(self._share_of)

    def due(self) -> Iterator[T]:
        """Yield who is to be visited at this tick; each rests from then on."""
        share = self._shares[self._ticks % ROUND_TICKS]
        self._ticks += 1
        for each in self._awake | share:
            self._awake.discard(each)
            yield each
