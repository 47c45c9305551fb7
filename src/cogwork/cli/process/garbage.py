"""When a container looks for garbage: cycles of objects that nobody else refers to.

Theory of operation. CPython's collector stops everything while it looks. Looking at young objects
takes less than a millisecond. Looking at all of them takes a tenth of a second where clients have
made ten thousand queues, and CPython does it whenever there are a quarter more than the last time:
a client that goes on making queues, links or addresses has everybody wait again and again. So all
objects are looked at when some have grown old since the last time, but never for more than one part
in `SHARE` of the time.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("GarbageCollection",)

YOUNG_OBJECTS = 700
"""So many new objects are looked at, those that are left then once more in `YOUNG_ROUNDS`: both as
CPython has it, but for the rounds, 10 there, which take 3 ms."""

YOUNG_ROUNDS = 4

NEVER = (1 << 31) - 1

OLD_ROUNDS = 10
"""Young objects have grown old so often before it is worth while to look at all."""

SHARE = 200
"""A pause counts for all round trips that it delays. Below one part in a hundred of the time their
99th percentile does not show it, and what is delayed comes in a burst."""

LOOK_S = 1.0


class GarbageCollection:
    """The collector of this process, as a container needs it."""

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], object],
        clock_s: Callable[[], float] = time.thread_time,
    ) -> None:
        """Change nothing yet.

        Args:
            call_later: Calls something after some seconds.
            clock_s: Tells how long a collection takes.
        """
        self._call_later = call_later
        self._clock_s = clock_s

    def start(self) -> None:
        """Leave what there is by now out of all collections; from now on they are rare."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, NEVER)
        self._call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Look at all objects, where it is worth while."""
        took_s = 0.0
        if gc.get_count()[2] >= OLD_ROUNDS:
            start_s = self._clock_s()
            gc.collect()
            took_s = self._clock_s() - start_s
        self._call_later(max(LOOK_S, SHARE * took_s), self._look)
