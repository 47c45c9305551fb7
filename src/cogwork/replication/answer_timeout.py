"""How long an answer is waited for: as long as answers take, and longer where none comes.

Whoever is slow gets nothing twice by that: on a slow line or disk what is sent again is in the way
of what was sent before.
"""

from __future__ import annotations

from cogwork.raft.round_trip import RoundTrip

__all__ = ("AnswerTimeout",)


class AnswerTimeout:
    """Of one who asks."""

    def __init__(self, least_s: float, most_s: float) -> None:
        """Initialize it; it knows nothing yet: it is the least.

        Args:
            least_s: So long is always waited.
            most_s: So long at most.
        """
        self._least_s = least_s
        self._most_s = max(least_s, most_s)
        self._round_trip = RoundTrip()
        self._factor = 1

    @property
    def timeout_s(self) -> float:
        """How long an answer is waited for (RFC 6298 §2, §5.5)."""
        wait_s = max(self._least_s, self._round_trip.bound_s) * self._factor
        return min(wait_s, self._most_s)

    def answered(self, took_s: float | None = None) -> None:
        """Somebody is there; `took_s` is how long it took, unless that says nothing."""
        self._factor = 1
        if took_s is not None:
            self._round_trip.note(took_s)

    def lapsed(self) -> None:
        """No answer has come in time."""
        if self.timeout_s < self._most_s:
            self._factor *= 2
