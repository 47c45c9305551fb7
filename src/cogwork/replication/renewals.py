"""Replicas that do nothing any more, and must not hold the write-ahead log's old files.

Theory of operation. What has stopped by a fault, or could not be opened, is recovered from the log
one day, and seals nothing until then. Where the log asks for it, what is kept there of it is
written once more: one replica after the other, and piece by piece, each when all before is on the
disk. There may be many, and the log takes only so much at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.log.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.log.wal import Wal

__all__ = ("Renewals", "until_durable", "while_kept")

PAUSE_S = 0.005

TIMEOUT_S = 5.0
"""A disk that takes longer, or has failed, is not waited for."""


async def until_durable(wal: Wal) -> None:
    """Wait until all that was appended so far is on the disk."""
    end_lsn = wal.end_lsn
    wal.flush()
    while wal.durable_lsn < end_lsn:
        await asyncio.sleep(PAUSE_S)


def while_kept(groups: Mapping[int, object], group: int, renewal: Iterator[None]) -> Iterator[None]:
    """Go on with a renewal for as long as what is kept of its group is the same.

    What has been given up meanwhile, or opened, must neither come again nor have a say in what the
    log lets go.
    """
    kept = groups[group]
    for _ in renewal:
        yield
        if groups.get(group) is not kept:
            return


class Renewals:
    """Those that were asked, in that order."""

    def __init__(self, wal: Wal | None, find: Callable[[int], Iterator[None] | None]) -> None:
        """Initialize it; it has asked nobody.

        Args:
            wal: The container's write-ahead log, if any.
            find: Returns what writes once more what a group keeps, a piece at a time; None where it
                does so itself.
        """
        self._wal = wal
        self._find = find
        self._asked: dict[int, None] = {}
        self._task: asyncio.Task[None] | None = None

    def ask(self, group: int) -> None:
        """Have what a group keeps written once more, where nobody else does that."""
        if self._wal is None or self._find(group) is None:
            return
        self._asked[group] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(self._wal))

    async def _run(self, wal: Wal) -> None:
        while self._asked:
            group = next(iter(self._asked))
            try:
                await self._until_durable(wal)
                for _ in self._find(group) or ():
                    await self._until_durable(wal)
                del self._asked[group]  # asked again meanwhile, it was for the same file
            except (LogError, OSError):  # of which a TimeoutError is one
                self._asked.clear()  # the log asks again, with its next file
        wal.flush()

    @staticmethod
    async def _until_durable(wal: Wal) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await until_durable(wal)

    def close(self) -> None:
        """Write no more."""
        self._wal = None
        if self._task is not None:
            self._task.cancel()
