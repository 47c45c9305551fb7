"""How long a method takes, and from that which calls are not worth beginning under overload.

Theory of operation. Where more is asked than a service can do, calls wait until their time is
nearly over, wherever they wait. One that is begun with less time than its method takes is wasted:
nobody hears its result, and another one has waited for it. So a service that is full begins only
what it is likely to finish in time, and refuses the rest at once, which costs next to nothing and
lets younger calls come. The estimate is that of TCP's timer (RFC 6298): a smoothed mean, and four
times the smoothed deviation. It never grows to what all callers give: then nothing would begin.
"""

from __future__ import annotations

__all__ = ("LongestWait", "Pace")

ALLOWANCE_S = 0.025
"""What the reply needs on its way, and what a request has waited in sockets, uncounted."""

FORGET_S = 5.0
"""The longest time that callers gave is looked for in the last one or two of such spans."""

SHARE_MAX = 0.9
"""Of the longest time that callers give, what a method is believed to need at most."""


class Pace:
    """What is known of the time that one method takes."""

    __slots__ = ("_deviation_s", "_mean_s")

    def __init__(self) -> None:
        """Initialize it; it knows nothing."""
        self._mean_s = 0.0
        self._deviation_s = 0.0

    def note(self, taken_s: float) -> None:
        """Take in how long a run took."""
        if self._mean_s == 0.0:
            self._mean_s = taken_s
            self._deviation_s = taken_s / 4
            return
        self._deviation_s += (abs(taken_s - self._mean_s) - self._deviation_s) / 4
        self._mean_s += (taken_s - self._mean_s) / 8

    def note_cut(self, taken_s: float) -> None:
        """Take in that a run was ended before it was through: it would have taken longer."""
        if taken_s > self._mean_s:
            self.note(taken_s)

    @property
    def mean_s(self) -> float:
        """How long it takes, as a rule."""
        return self._mean_s

    @property
    def needed_s(self) -> float:
        """How much time a call needs so that its reply is likely to come in time."""
        return self._mean_s + 4 * self._deviation_s + ALLOWANCE_S


class LongestWait:
    """The longest time that callers have given lately."""

    __slots__ = ("_before_s", "_now_s", "_since_s")

    def __init__(self) -> None:
        """Initialize it; it has heard of no caller."""
        self._before_s = self._now_s = self._since_s = 0.0

    def note(self, remaining_s: float, now_s: float) -> None:
        """Take in what a caller gives."""
        if now_s - self._since_s > FORGET_S:
            self._before_s, self._now_s, self._since_s = self._now_s, 0.0, now_s
        self._now_s = max(self._now_s, remaining_s)

    @property
    def bound_s(self) -> float:
        """What a method is believed to need at most."""
        return SHARE_MAX * max(self._now_s, self._before_s)
