"""One timer of the event loop for everything that waits for a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Timer",)


class Timer:
    """Calls once at a time; one that comes too early is left as it is, and asked for again.

    Attributes:
        due_s: For when it is set, or was last.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        """Is not set.

        Args:
            callback: What is called.
        """
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        self.due_s = 0.0

    @property
    def is_set(self) -> bool:
        """Whether it will fire."""
        return self._handle is not None

    def set(self, due_s: float, now_s: float) -> None:
        """Have it fire at a time, or earlier where it was set so."""
        if self._handle is not None:
            if self.due_s <= due_s:
                return
            self._handle.cancel()
        self.due_s = due_s
        delay_s = max(0.0, due_s - now_s)
        self._handle = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._handle = None
        self._callback()

    def cancel(self) -> None:
        """Have it not fire."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
