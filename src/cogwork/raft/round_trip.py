"""How long an answer takes, of what was measured."""

from __future__ import annotations

__all__ = ("RoundTrip",)

GAIN = 1 / 8
DEVIATION_GAIN = 1 / 4
"""How much one sample counts (RFC 6298 §2)."""

RTT_MAX_S = 60.0


class RoundTrip:
    """A smoothed round trip (RFC 6298 §2)."""

    __slots__ = ("_deviation_s", "_mean_s")

    def __init__(self) -> None:
        self._mean_s: float | None = None
        self._deviation_s = 0.0

    def note(self, sample_s: float) -> None:
        """Take a sample; one that cannot be is none."""
        if not 0 <= sample_s <= RTT_MAX_S:
            return
        if self._mean_s is None:
            self._mean_s, self._deviation_s = sample_s, sample_s / 2
            return
        error_s = sample_s - self._mean_s
        self._deviation_s += DEVIATION_GAIN * (abs(error_s) - self._deviation_s)
        self._mean_s += GAIN * error_s

    @property
    def bound_s(self) -> float:
        """What a round trip rarely takes longer than; 0 where nothing is known."""
        return 0.0 if self._mean_s is None else self._mean_s + 4 * self._deviation_s
