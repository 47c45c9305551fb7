"""One wheel for the timers of all groups.

A group has one place on the wheel. When it is due the group looks whether it really is: a time-out
that was put off costs nothing until then.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import ceil, inf

__all__ = ("Wheel",)


class Wheel:
    """Groups by the time when they are to be looked at, in slots."""

    __slots__ = ("_groups", "_slot_of", "_slots", "_width_s")

    def __init__(self, width_s: float) -> None:
        self._width_s = width_s
        self._slots: list[int] = []
        self._groups: dict[int, list[int]] = {}
        self._slot_of: dict[int, int] = {}

    @property
    def wake_s(self) -> float:
        """When somebody is due."""
        return self._slots[0] * self._width_s if self._slots else inf

    def put(self, group: int, at_s: float) -> bool:
        """Have a group looked at, at this time or earlier; tell whether it was not before."""
        if at_s == inf:
            return False
        slot = ceil(at_s / self._width_s)
        if self._slot_of.get(group, slot + 1) <= slot:
            return False
        self._slot_of[group] = slot
        if slot not in self._groups:
            heappush(self._slots, slot)
            self._groups[slot] = []
        self._groups[slot].append(group)
        return True

    def remove(self, group: int) -> None:
        """Forget a group."""
        self._slot_of.pop(group, None)

    def due(self, now_s: float) -> list[int]:
        """Return the groups that are due, and take them off."""
        due: list[int] = []
        while self._slots and self._slots[0] * self._width_s <= now_s:
            slot = heappop(self._slots)
            for group in self._groups.pop(slot):
                if self._slot_of.get(group) == slot:
                    del self._slot_of[group]
                    due.append(group)
        return due
