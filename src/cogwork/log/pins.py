"""Which files of the write-ahead log the groups still need."""

from __future__ import annotations

from collections import Counter

from cogwork.log.position import number_of

__all__ = ("Pins",)


class Pins:
    """Each group's oldest record that it needs, and how many groups pin each file by theirs."""

    def __init__(self) -> None:
        """Start without groups."""
        self._low: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._counts: Counter[int] = Counter()
        self._oldest: int | None = None

    def note(self, group: int, lsn: int) -> None:
        """Take notice of a record, later than all before."""
        self._last[group] = lsn
        if group not in self._low:
            self._low[group] = lsn
            self._pin(number_of(lsn))

    def release(self, group: int, lsn: int) -> None:
        """Let a group's records below an LSN go, and a group that has none left."""
        low = self._low.get(group)
        if low is None or lsn <= low:
            return
        self._unpin(number_of(low))
        if lsn > self._last[group]:
            del self._low[group], self._last[group]
            return
        self._low[group] = lsn
        self._pin(number_of(lsn))

    def oldest_number(self, otherwise: int) -> int:
        """Return the number of the oldest file that a group needs.

        Args:
            otherwise: The answer where no group needs any.
        """
        return otherwise if self._oldest is None else self._oldest

    def groups_at(self, number: int) -> list[int]:
        """List the groups that pin a file."""
        return [group for group, low in self._low.items() if number_of(low) == number]

    def holds_oldest(self, group: int) -> bool:
        """Return whether a group pins the oldest file that any group needs."""
        low = self._low.get(group)
        return low is not None and number_of(low) == self._oldest

    def _pin(self, number: int) -> None:
        self._counts[number] += 1
        if self._oldest is None or number < self._oldest:
            self._oldest = number

    def _unpin(self, number: int) -> None:
        self._counts[number] -= 1
        if not self._counts[number]:
            del self._counts[number]
            self._oldest = min(self._counts, default=None)
