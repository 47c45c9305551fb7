"""Connections that have not opened yet: few together, and each source address has a share of them.

Theory of operation. Who has not logged in can be anybody, so what such connections take is bounded
apart from what clients have. A source address that has its share is refused more. Where all have
too many together, the address that has most gives up its oldest, so that a newcomer from elsewhere
gets in; a newcomer from that very address is refused.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from cogwork.container.connections.shares import ALL, Bound, Excess, Holder

__all__ = ("Newcomers",)

T = TypeVar("T")

WHAT = "connections that have not opened"


class Newcomers(Generic[T]):
    """Those of one container.

    Attributes:
        most: How many there may be.
        most_of_source: How many of one source address.
    """

    def __init__(self) -> None:
        """There are none, and there may be none."""
        self.most = 0
        self.most_of_source = 0
        self._by_source: dict[Holder, dict[T, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Count them."""
        return self._count

    def excess(self, source: Holder) -> Excess | None:
        """Tell why there may be no more from a source address; None where there may."""
        count = len(self._by_source.get(source, ()))
        if count >= self.most_of_source:
            return Excess(
                source, WHAT, count, Bound(self.most_of_source, "unauthenticated_per_source")
            )
        largest = max(map(len, self._by_source.values()), default=0)
        if self._count >= self.most and count >= largest:
            return Excess(ALL, WHAT, self._count, Bound(self.most, "unauthenticated"))
        return None

    def enter(self, source: Holder, newcomer: T) -> T | None:
        """Take one in; return the one that has to go for it, if any has."""
        goes = None
        if self._count >= self.most and self._by_source:
            largest = max(self._by_source, key=lambda each: len(self._by_source[each]))
            goes = next(iter(self._by_source[largest]))
            self.leave(largest, goes)
        self._by_source.setdefault(source, {})[newcomer] = None
        self._count += 1
        return goes

    def leave(self, source: Holder, newcomer: T) -> None:
        """Forget one that has opened or gone; without effect on one that is not there."""
        theirs = self._by_source.get(source)
        if theirs is None or newcomer not in theirs:
            return
        del theirs[newcomer]
        self._count -= 1
        if not theirs:
            del self._by_source[source]
