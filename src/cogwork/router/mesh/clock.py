"""Time as the mesh lives it: it never goes back, and does not leap.

A clock that is set, or a container that was stopped and goes on, would otherwise take all its
neighbours for dead and what they advertise for old, though nobody but itself was silent.
"""

from __future__ import annotations

__all__ = ("SteadyClock",)


class SteadyClock:
    """The container's clock, without its jumps."""

    __slots__ = ("_late_max_s", "_shift_s", "_steady_s")

    def __init__(self, now_s: float, late_max_s: float) -> None:
        """Start.

        Args:
            now_s: The container's clock.
            late_max_s: By how much an event may come after it was due; what is more never was.
        """
        self._steady_s = now_s
        self._shift_s = 0.0
        self._late_max_s = late_max_s

    def read(self, now_s: float, due_s: float) -> float:
        """Return the steady time of an event.

        Args:
            now_s: The container's clock.
            due_s: The steady time at which some event was due at the latest.
        """
        at_s = now_s + self._shift_s
        is_due = now_s >= due_s - self._shift_s
        if not is_due and at_s >= self._steady_s:
            self._steady_s = at_s
            return at_s
        if is_due:
            # However the sum is rounded: what is asked for at its time would be asked for again.
            at_s = max(at_s, due_s)
        latest_s = max(self._steady_s, due_s) + self._late_max_s
        steady_s = min(max(at_s, self._steady_s), latest_s)
        if steady_s != at_s:
            self._shift_s = steady_s - now_s
        self._steady_s = steady_s
        return steady_s

    def peek(self, now_s: float) -> float:
        """Return the steady time; nothing happens."""
        return max(now_s + self._shift_s, self._steady_s)

    def to_container(self, steady_s: float) -> float:
        """Return what the container's clock shows at a steady time."""
        return steady_s - self._shift_s
