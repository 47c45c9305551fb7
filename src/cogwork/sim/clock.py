"""Time that goes on from event to event."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Clock", "Stuck")

EVENTS_AT_ONCE_MAX = 1_000_000
"""Where so many things happen in one moment, something wakes itself without end."""


class Stuck(AssertionError):
    """Time does not go on."""


class Clock:
    """Events in the order of their time; those of one time in the order they were made.

    Attributes:
        now_s: The time.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._made = 0

    def at(self, time_s: float, action: Callable[[], object]) -> None:
        """Have something done at a time, now if that is past."""
        self._made += 1
        heappush(self._events, (max(time_s, self.now_s), self._made, action))

    def run_until(self, time_s: float) -> None:
        """Let time pass."""
        done = 0
        while self._events and self._events[0][0] <= time_s:
            at_s, _, action = heappop(self._events)
            done = done + 1 if at_s == self.now_s else 0
            if done > EVENTS_AT_ONCE_MAX:
                raise Stuck(f"{done} things happen at {at_s:.6f} s, and there is no end")
            self.now_s = at_s
            action()
        self.now_s = time_s
