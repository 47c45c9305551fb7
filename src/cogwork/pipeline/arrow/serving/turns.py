"""Clients of a reader take turns: each batch waits until the reader's pace lets it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.io.idle import IdleClock
    from cogwork.pipeline.arrow.serving.pace import Pace

__all__ = ("Turns",)


class Turns:
    """Owned by the links of one reader."""

    def __init__(self, pace: Pace, idle: IdleClock) -> None:
        """Let everybody go.

        Args:
            pace: Decides.
            idle: Tells how idle the processors are.
        """
        self._pace = pace
        self._idle = idle
        self._turn = asyncio.Lock()

    async def wait(self, clients: int) -> None:
        """Wait until the next batch may be made; who came first goes first.

        Args:
            clients: How many want batches.
        """
        async with self._turn:
            now_s = time.monotonic()
            if self._pace.wants_look(now_s):
                self._pace.look(now_s, self._idle.read())
            pause_s = self._pace.pause_s(now_s, time.thread_time(), clients)
            if pause_s > 0:
                await asyncio.sleep(pause_s)
