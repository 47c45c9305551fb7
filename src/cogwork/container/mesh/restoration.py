"""When lost links are opened again: at once where there is a new way, else after a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.replication.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Restoration",)

PAUSE_S = 0.005
PAUSE_MAX_S = 0.5
"""How soon a link that was lost while there is a way is opened again: at first, and at last."""


class Restoration:
    """Owned by the mesh."""

    def __init__(self, restore: Callable[[], None]) -> None:
        """Start with nothing to do.

        Args:
            restore: Opens what should be open and is not.
        """
        self._restore = restore
        self._timer = Timer(self.now)
        self._done_s = 0.0
        self._pause_s = PAUSE_S
        self._is_stopped = False

    def now(self) -> None:
        """Open what was lost."""
        self._timer.cancel()
        self._done_s = time.monotonic()
        self._restore()

    def soon(self) -> None:
        """Do so when what happens now is over."""
        self._after(0.0)

    def later(self) -> None:
        """Do so after a moment; later and later where that fails."""
        if time.monotonic() - self._done_s > PAUSE_MAX_S:
            self._pause_s = PAUSE_S
        if not self._timer.is_set:
            self._after(self._pause_s)
            self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)

    def _after(self, delay_s: float) -> None:
        if not self._is_stopped:
            now_s = time.monotonic()
            self._timer.set(now_s + delay_s, now_s)

    def stop(self) -> None:
        """Open nothing any more."""
        self._is_stopped = True
        self._timer.cancel()
