"""Heartbeats between containers: one for each neighbour, whatever groups they share.

They tell that a container is there, for all its sleeping groups at once, and they measure the round
trip: each carries a time of its sender, and brings the last one of the other end back, with how
long it lay there.
"""

from __future__ import annotations

import msgspec

__all__ = ("Beat", "RoundTrip")

GAIN = 1 / 8
DEVIATION_GAIN = 1 / 4
"""How much one sample counts (RFC 6298 §2)."""

RTT_MAX_S = 60.0


class Beat(msgspec.Struct, gc=False):
    """A heartbeat of a container.

    Attributes:
        term: Its incarnation, which is higher after each start.
        stamp_us: The sender's time; 0 in the answer of one that knows of no group that they share:
            it is not answered.
        echo_us: The last `stamp_us` that came from the receiver; 0 for none.
        held_us: How long ago that came.
        election_ms: What the sender's round trips demand of election times.
    """

    term: int
    stamp_us: int
    echo_us: int = 0
    held_us: int = 0
    election_ms: int = 0


class RoundTrip:
    """A smoothed round trip (RFC 6298 §2)."""

    __slots__ = ("_deviation_s", "_mean_s")

    def __init__(self) -> None:
        self._mean_s: float | None = None
        self._deviation_s = 0.0

    def note(self, sample_s: float) -> None:
        """Takes a sample; one that cannot be is none."""
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
