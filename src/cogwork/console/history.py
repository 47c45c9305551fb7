"""Figures of the last minutes, as a session has seen them, for charts."""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("History", "Point")

Point = tuple[float, float]
"""When, in seconds before now (0 or less), and how much."""

SPAN_S = 300.0
SAMPLES_MAX = 400
GAP_S = 15.0
"""Without a sample for so long nobody looked: no rate is known of that time."""

SUBJECTS_MAX = 50
APART_S = 0.5


class History:
    """What was sampled of some subjects: the container, a queue, a stream."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with nothing.

        Args:
            clock: Tells the time.
        """
        self._clock = clock
        self._samples: OrderedDict[str, deque[tuple[float, dict[str, float]]]] = OrderedDict()

    def note(self, subject: str, figures: Mapping[str, float]) -> None:
        """Keep a sample, unless there has just been one.

        Args:
            subject: Of what.
            figures: Its figures.
        """
        now_s = self._clock()
        samples = self._samples.setdefault(subject, deque(maxlen=SAMPLES_MAX))
        self._samples.move_to_end(subject)
        if len(self._samples) > SUBJECTS_MAX:
            self._samples.popitem(last=False)
        if not samples or now_s - samples[-1][0] >= APART_S:
            samples.append((now_s, dict(figures)))

    def levels(self, subject: str, figure: str) -> list[Point]:
        """List what a figure was."""
        now_s = self._clock()
        return [
            (at_s - now_s, figures[figure])
            for at_s, figures in self._samples.get(subject, ())
            if now_s - at_s <= SPAN_S
        ]

    def rates(self, subject: str, figure: str) -> list[Point]:
        """List by how much a count grew each second; one that began anew grew by nothing."""
        return [
            (at_s, max(0.0, (count - before) / (at_s - before_s)))
            for (before_s, before), (at_s, count) in pairwise(self.levels(subject, figure))
            if 0 < at_s - before_s <= GAP_S
        ]
