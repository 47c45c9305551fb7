"""Time between two ticks: items that live for milliseconds do not wait for the next one."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.core import Core

__all__ = ("EarlyTicks",)

PAUSE_S = 0.005
"""Between two of them, at least."""

SHARE = 20
"""They take no more than one part of so many of the time: there may be thousands of queues."""


class EarlyTicks:
    """Lets time pass at nodes when an item is due before the next tick."""

    def __init__(self, core: Core, pass_time: Callable[[], None]) -> None:
        """Start without any.

        Args:
            core: Says when something is due.
            pass_time: Lets time pass at all nodes.
        """
        self._core = core
        self._pass_time = pass_time
        self._timer: asyncio.TimerHandle | None = None
        self._next_tick_s = 0.0
        self._rested_s = 0.0
        core.on_due = self._plan

    def begin(self, tick_s: float) -> None:
        """Take up what is due before the next tick.

        Args:
            tick_s: How long that will be.
        """
        self._cancel()
        self._next_tick_s = self._core.next_tick_s = self._core.now + tick_s

    def stop(self) -> None:
        """Let no more time pass."""
        self._core.on_due = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _plan(self, due_s: float) -> None:
        self._cancel()
        wait_s = max(due_s - self._core.now, self._rested_s - time.monotonic(), PAUSE_S)
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._run)

    def _run(self) -> None:
        self._timer = None
        began_s = time.monotonic()
        self._core.tick()
        self._core.next_tick_s = self._next_tick_s
        self._pass_time()
        self._core.flush()
        ended_s = time.monotonic()
        self._rested_s = ended_s + SHARE * (ended_s - began_s)
