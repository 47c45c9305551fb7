"""Who has to know all that the cluster has declared by now waits here until this container does.

Theory of operation. A container hears of a declaration soon after whoever made it. So that what is
declared at one can be used at another at once, one that lacks a stream asks a majority how far the
declarations go, and applies that much before it says so: a linearizable read (Raft §6.4). All who
ask while a question is under way share the next one.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.cluster.cluster import Cluster

__all__ = ("CatchUp",)

TIMEOUT_S = 4.0
"""So long an answer is waited for: several elections."""


class CatchUp:
    """Calls back once what was declared before the call is known here."""

    def __init__(self, cluster: Cluster) -> None:
        """Wait for nothing yet.

        Args:
            cluster: Knows the declarations.
        """
        self._cluster = cluster
        self._calls: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    def when_known(self, call: Callable[[], None]) -> None:
        """Call once that is so.

        One that has never known what is declared waits for as long as that takes; any other goes by
        what it knows where no majority answers for a while.
        """
        self._calls.append(call)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._calls:
            calls, self._calls = self._calls, []
            await self._cluster.when_current()
            with suppress(TimeoutError, CogworkError, OSError):
                async with asyncio.timeout(TIMEOUT_S):
                    await self._cluster.know_all()
            for call in calls:
                loop.call_soon(call)
        self._task = None

    async def close(self) -> None:
        """Call nobody any more."""
        self._calls.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
