"""One timer of the event loop for everything that waits for a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Alarm",)


class Alarm:
    """Calls once at a time; one that comes too early is left as it is, and asked for again.

    Attributes:
        due_s: For when it is set, or was last.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        """Is not set.

        Args:
            ring: What is called.
        """
        self._ring_it = ring
        self._timer: asyncio.TimerHandle | None = None
        self.due_s = 0.0

    @property
    def is_set(self) -> bool:
        """Whether it will ring."""
        return self._timer is not None

    def set(self, due_s: float, now_s: float) -> None:
        """Has it ring at a time, or earlier where it was set so."""
        if self._timer is not None:
            if self.due_s <= due_s:
                return
            self._timer.cancel()
        self.due_s = due_s
        delay_s = max(0.0, due_s - now_s)
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._ring_it()

    def cancel(self) -> None:
        """Has it not ring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
