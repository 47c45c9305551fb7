"""Ends batches that no read ends: what an application wrote is sent once, when its turn is over."""

from __future__ import annotations

import cython  # noqa: TC002  # the compiler reads annotations
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH

__all__ = ("SOURCE_HASH", "Flusher")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Flusher:
    """Flushes a core at the end of the event loop's turn. One a loop.

    Attributes:
        passes: Counts those ends: whoever sees another number than before has let the loop go on.
    """

    def __init__(self, core: Core, call_soon: object) -> None:
        """Start with nothing to flush.

        Args:
            core: What it flushes.
            call_soon: The event loop's method.
        """
        self.core = core
        self.call_soon = call_soon

    def later(self) -> cython.int:
        # While the core flushes it goes on until nothing is left: what this adds is sent, too.
        if not self.due and not self.core.flushing:
            self.due = True
            self.call_soon(self.run)
        return 0

    def now(self) -> cython.int:
        return self.core.flush_all()

    def request(self) -> None:
        """Have the core flushed before the loop waits for input again."""
        self.later()

    def run(self) -> None:
        """Flush."""
        self.due = False
        self.passes += 1
        self.core.flush_all()
