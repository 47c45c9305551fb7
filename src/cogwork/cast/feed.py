"""What pushes a stream to cogs that are at the same place in it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

from cogwork.cast.canonical import CanonicalBatch
from cogwork.plugin.engine.contract import CaughtUp, FromOffset
from cogwork.plugin.engine.errors import NotLeader, Unavailable
from cogwork.plugins import PLUGIN_FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.cast.cog import Cog
    from cogwork.cast.line import Line
    from cogwork.plugin.engine.contract import Snapshot, Start

__all__ = ("Feed",)

RETRY_S = 0.1

log = logging.getLogger("cogwork.cast")


class Feed:
    """One reader, and the cogs that are pushed what comes.

    Attributes:
        cogs: Who is.
        offset: What comes next; None until that is known.
        has_caught_up: Whether it has come to the live tail.
    """

    def __init__(
        self,
        cog: Cog,
        start: Start,
        fail: Callable[[Cog, BaseException], None],
        on_progress: Callable[[Feed], None],
    ) -> None:
        self.cogs: tuple[Cog, ...] = (cog,)
        self.offset: int | None = None
        self.has_caught_up = False
        self._start = start
        self._fail = fail
        self._on_progress = on_progress

    async def run(self, line: Line) -> None:
        """Push until it is cancelled or nobody is left, over losses of the stream."""
        while self.cogs:
            try:
                await self._read(line)
            except (Unavailable, NotLeader) as error:
                log.warning("lost the stream, resuming at the same offset: %s", error)
                await asyncio.sleep(RETRY_S)
            except Exception as error:
                for cog in self.cogs:
                    self._fail(cog, error)

    async def _read(self, line: Line) -> None:
        start = self._start if self.offset is None else FromOffset(self.offset)
        async with aclosing(line.read(start)) as reading:
            async for found in reading:
                self._push(found)
                self._on_progress(self)
                if not self.cogs:
                    return
        raise Unavailable("the reader has ended")

    def _push(self, found: CanonicalBatch | CaughtUp | Snapshot) -> None:
        if isinstance(found, CanonicalBatch):
            self.offset = found.next_offset
            self._each(lambda cog: cog.on_batch(found))
        elif not isinstance(found, CaughtUp):
            self.offset = found.offset
            self._each(lambda cog: cog.on_snapshot(found))
        else:
            self.offset = found.next
            if not self.has_caught_up:
                self.has_caught_up = True
                self._each(lambda cog: cog.on_caught_up())

    def _each(self, call: Callable[[Cog], None]) -> None:
        cogs = self.cogs
        for cog in cogs:
            if self.cogs is not cogs and cog not in self.cogs:
                continue
            try:
                call(cog)
            except PLUGIN_FAULTS as error:
                self._fail(cog, error)
