"""How fast a reader goes: live traffic goes before bulk reads.

Theory of operation. A reader takes a processor, and so do those who read from it, often on the same
machine. Who routes a message then waits until one of them has had its turn: a scheduler ranks
programs over a while, and not at each moment. So processors have to be free when messages come.
While its container has live traffic, a reader looks a few times a second how many were idle. Are
they fewer than wanted, it goes down to a small share of a processor at once; are they more, it goes
up again step by step. Without live traffic, and where the machine has processors left, it is never
held back. Time is an argument, and what was worked is processor time: nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.io.idle import Idleness

__all__ = ("Pace",)

HOLD_S = 0.5
"""So long traffic counts as live after the container has said so."""

LOOK_S = 0.2
"""How often is looked at the processors: the kernel counts in hundredths of a second."""

STALE_S = 1.0
"""What was idle over a longer time says nothing about now."""

SHARE_MIN = 0.1
"""Of a processor, for all readers together: bulk reads go on, whatever else goes on."""

GROWTH = 1.05
SPARE_MARGIN = 0.1
"""So much more has to be idle than is wanted before a reader goes faster."""

ROUND_S = 2.0
"""Within it each client gets a batch, however many they are; they do not wait for ever."""


class Pace:
    """One reader's. Owned by its links.

    Attributes:
        share: Of a processor, what it may take: 1 is all of one.
    """

    def __init__(self, spare: float, readers: int) -> None:
        """Go at full speed.

        Args:
            spare: How many processors are to be idle while traffic is live; 0 holds nobody back.
            readers: How many there are; they see the same processors, and share what is least.
        """
        self.share = 1.0
        self._spare = spare
        self._least = SHARE_MIN / readers
        self._live_until_s = float("-inf")
        self._seen: Idleness | None = None
        self._looked_s = float("-inf")
        self._worked_s = 0.0
        self._began_s = float("-inf")

    def tell_live(self, now_s: float) -> None:
        """Note that the container has traffic."""
        self._live_until_s = now_s + HOLD_S

    def wants_look(self, now_s: float) -> bool:
        """Return whether it is time to look at the processors."""
        return self._is_live(now_s) and now_s - self._looked_s >= LOOK_S

    def _is_live(self, now_s: float) -> bool:
        return self._spare > 0 and now_s < self._live_until_s

    def look(self, now_s: float, seen: Idleness | None) -> None:
        """Learn how idle the processors have been.

        Args:
            now_s: The time.
            seen: What was counted; None where nobody knows, which holds nobody back.
        """
        before, self._seen, self._looked_s = self._seen, seen, now_s
        if seen is None or before is None or not 0 < seen.up_s - before.up_s <= STALE_S:
            return
        idle = (seen.idle_s - before.idle_s) / (seen.up_s - before.up_s)
        if idle < self._spare:
            self.share = self._least
        elif idle > self._spare + SPARE_MARGIN:
            self.share = min(1.0, self.share * GROWTH)

    def pause_s(self, now_s: float, worked_s: float, clients: int) -> float:
        """Return how long to do nothing before the next batch, which begins then.

        Args:
            now_s: The time.
            worked_s: How much processor time the reader has had so far.
            clients: How many want batches.
        """
        worked_s, self._worked_s = worked_s - self._worked_s, worked_s
        if not self._is_live(now_s):
            self.share = 1.0
        begins_s = now_s
        if self.share < 1:
            room_s = min(worked_s / self.share, ROUND_S / max(clients, 1))
            begins_s = max(now_s, self._began_s + room_s)
        self._began_s = begins_s
        return begins_s - now_s
