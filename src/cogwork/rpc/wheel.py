"""Deadlines by the thousand: a coarse wheel in the place of a timer for each.

Theory of operation. Time is cut into slots. Whatever is due within a slot is told so when the slot
is over, never before its time and at most a slot late. What is done before is taken out, which
costs no more than a set does; so calls that are answered leave nothing behind. The loop has one
timer at most: that of the first slot that holds anything.
"""

from __future__ import annotations

import logging
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ("SLOT_S", "Dated", "Wheel")

SLOT_S = 0.01
"""How late a deadline may be told: less than what a network makes of it."""

log = logging.getLogger("cogwork.client.rpc")


class Dated(Protocol):
    """Something with a deadline."""

    def on_due(self) -> object:
        """Its time is over."""


class Wheel:
    """The deadlines of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start with nothing.

        Args:
            loop: Whose clock and timer it uses.
        """
        self._loop = loop
        self._slots: dict[int, set[Dated]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_slot = 0

    def add(self, due_s: float, dated: Dated) -> int:
        """Tell `dated` when its time is over.

        Args:
            due_s: When that is, on the loop's clock.
            dated: Whom to tell.

        Returns:
            The slot, by which it is taken out again.
        """
        slot = int(due_s / SLOT_S) + 1
        dues = self._slots.get(slot)
        if dues is None:
            self._slots[slot] = {dated}
            heappush(self._order, slot)
            if self._timer is None or slot < self._timer_slot:
                self._arm()
        else:
            dues.add(dated)
        return slot

    def remove(self, slot: int, dated: Dated) -> None:
        """Take out what does not wait any more."""
        dues = self._slots.get(slot)
        if dues is not None:
            dues.discard(dated)

    def close(self) -> None:
        """Tell nobody anything any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._slots.clear()
        self._order.clear()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._order:
            self._timer_slot = self._order[0]
            self._timer = self._loop.call_at(self._timer_slot * SLOT_S, self._turn)

    def _turn(self) -> None:
        """Tell all whose slot is over; drop slots that have become empty on the way."""
        self._timer = None
        now = int(self._loop.time() / SLOT_S + 1e-6)
        due: list[Dated] = []
        while self._order and (self._order[0] <= now or not self._slots[self._order[0]]):
            due += self._slots.pop(heappop(self._order))
        self._arm()
        for dated in due:
            try:
                dated.on_due()
            except Exception:  # one must not keep back the others
                log.exception("%r: the handler of its deadline failed", dated)
