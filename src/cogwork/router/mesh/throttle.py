"""Pauses between repeated work: the first change is told at once, a flapping one ever more rarely.

The pause starts at `hold_s`, doubles each time that work was waiting for its end, and is back at
`hold_s` after a pause in which nothing happened.
"""

from __future__ import annotations

from math import inf

__all__ = ("Throttle",)


class Throttle:
    """When some work is due.

    Attributes:
        due_s: When; infinity while there is nothing to do.
    """

    __slots__ = ("_fired_s", "_hold_max_s", "_hold_min_s", "_hold_s", "due_s")

    def __init__(self, hold_s: float, hold_max_s: float | None = None) -> None:
        """Start with nothing to do; without `hold_max_s` the pause stays the same."""
        self.due_s = inf
        self._hold_min_s = self._hold_s = hold_s
        self._hold_max_s = hold_s if hold_max_s is None else hold_max_s
        self._fired_s = -inf

    def request(self, now_s: float) -> None:
        """Ask for the work: now, or at the end of the pause."""
        if self.due_s == inf:
            self.due_s = max(now_s, self._fired_s + self._hold_s)

    def fire(self, now_s: float) -> bool:
        """Return whether the work is to be done now; then the next pause begins."""
        if now_s < self.due_s:
            return False
        rested = now_s - self._fired_s > 2 * self._hold_s
        self._hold_s = self._hold_min_s if rested else min(2 * self._hold_s, self._hold_max_s)
        self._fired_s = now_s
        self.due_s = inf
        return True
