"""Which numbers the versions of addresses had that have no schema any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.schema.pattern_index import PatternIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Numbers",)

GONE_MAX = 4_000
"""Of so many addresses that were unregistered, the latest ones, the last version is remembered."""


class Numbers:
    """The last version by address; the one that was added first goes first."""

    def __init__(self) -> None:
        """Initialize it; it knows none."""
        self._last: dict[str, int] = {}
        self._patterns = PatternIndex()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield addresses with their last version, in the order in which they go."""
        return iter(self._last.items())

    def of(self, address: str) -> int:
        """Return the last version of an address; 0 where none is known."""
        return self._last.get(address, 0)

    def add(self, address: str, version: int) -> None:
        """Remember a version, where none that is later is known."""
        before = self._last.pop(address, 0)
        if not before:
            self._patterns.add(address)
        self._last[address] = max(before, version)
        if len(self._last) > GONE_MAX:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._patterns.remove(oldest)

    def taking(self, address: str) -> set[str]:
        """Return those that are an address, or a pattern that takes it."""
        found = self._patterns.taking(address)
        if address in self._last:
            found.add(address)
        return found
