"""Replicas that do nothing any more, and must not hold the write-ahead log's old files.

Theory of operation. What has stopped by a fault, or could not be opened, is recovered from the log
one day, and seals nothing until then. Where the log asks for it, what is kept there of it is
written once more: one replica after the other, each when all before is on the disk, as there may be
many.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.log.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.log.wal import Wal

__all__ = ("Renewals", "until_durable")

PAUSE_S = 0.005

TIMEOUT_S = 5.0
"""A disk that takes longer, or has failed, is not waited for."""


async def until_durable(wal: Wal) -> None:
    """Waits until all that was appended so far is on the disk."""
    end_lsn = wal.end_lsn
    wal.flush()
    while wal.durable_lsn < end_lsn:
        await asyncio.sleep(PAUSE_S)


class Renewals:
    """Those that were asked, in that order."""

    def __init__(self, wal: Wal | None, find: Callable[[int], Callable[[], None] | None]) -> None:
        """Has asked nobody.

        Args:
            wal: The container's write-ahead log, if any.
            find: Returns what writes once more what a group keeps; None where it does so itself.
        """
        self._wal = wal
        self._find = find
        self._asked: dict[int, None] = {}
        self._task: asyncio.Task[None] | None = None

    def ask(self, group: int) -> None:
        """Has what a group keeps written once more, where nobody else does that."""
        if self._wal is None or self._find(group) is None:
            return
        self._asked[group] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(self._wal))

    async def _run(self, wal: Wal) -> None:
        while self._asked:
            group = next(iter(self._asked))
            del self._asked[group]
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await until_durable(wal)
                renew = self._find(group)
                if renew is not None:
                    renew()
            except (LogError, OSError):  # of which a TimeoutError is one
                self._asked.clear()  # the log asks again, with its next file
        wal.flush()

    def close(self) -> None:
        """Writes no more."""
        self._wal = None
        if self._task is not None:
            self._task.cancel()
