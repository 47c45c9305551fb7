"""The fifth act: every flight is an item of a replicated queue, whose owner is killed for good.

All three hold the queue on disk, and one of them owns it. Publishers and workers know all three;
whoever was connected to the dead one goes on at another. What a publisher is in doubt about it
sends again, under the same message-id: the queue takes it once.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flights import REPLICATED

from cogwork import Message
from cogwork.client import InDoubt, Released, StaleAttempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flights import Flights
    from triangle import Triangle

    from cogwork import Client
    from cogwork.client.receiving.consumer import Consumer

    Advance = Callable[[str, int], None]

__all__ = ("Outlived", "outlive_the_owner")

BATCH = 500
WORKERS = ("a", "b", "c")
"""Where each worker goes first."""

OPTIONS = {
    "durability": "replicated",
    "in_doubt": "redeliver",
    "in_doubt_timeout_s": 5.0,
    "deduplication_window_s": 3600.0,
    "deduplication_count": 1_000_000,
}


@dataclass
class Outlived:
    """What came of the act.

    Attributes:
        confirmed: For each flight, how often an attempt at it was confirmed.
        count: How many were confirmed in all.
        killed: The container that owned the queue and was killed.
        followed: The one that owned it after that.
        before: How many were confirmed by then.
        resent: How many were sent again, as it was in doubt whether they had arrived.
        left: What the queue has at the end.
        gap_s: How long at most nothing was confirmed, until the next owner had something confirmed:
            what was in doubt at the end waits for longer, as it has been told to.
        took_s: Seconds until every flight was confirmed.
    """

    confirmed: bytearray
    count: int = 0
    killed: str = ""
    followed: str = ""
    before: int = 0
    resent: int = 0
    left: int = -1
    gap_s: float = 0.0
    took_s: float = 0.0
    _confirmed_s: float = 0.0
    _is_outlived: bool = False

    def confirm(self, rows: Iterable[int]) -> int:
        """Take note of attempts that were confirmed; return how many."""
        now_s = time.perf_counter()
        if self._confirmed_s and not self._is_outlived:
            self.gap_s = max(self.gap_s, now_s - self._confirmed_s)
        self._confirmed_s = now_s
        self._is_outlived = bool(self.followed)
        before = self.count
        for row in rows:
            self.confirmed[row] += 1
            self.count += 1
        return self.count - before


async def outlive_the_owner(triangle: Triangle, flights: Flights, advance: Advance) -> Outlived:
    """Post every flight, and has workers take them while the queue's owner is killed."""
    outlived = Outlived(bytearray(len(flights)))
    queue = {"type": "queue", "name": REPLICATED}
    await triangle.clients["a"].manage("CREATE", queue, dict(OPTIONS))
    await triangle.owner_of(REPLICATED)
    async with AsyncExitStack() as stack:
        meshes = [await stack.enter_async_context(triangle.roam(each)) for each in WORKERS]
        tasks = []
        for client in meshes:
            items = await stack.enter_async_context(client.consume(REPLICATED, credit=2 * BATCH))
            tasks.append(asyncio.create_task(_work(items, outlived, advance)))
        killing = asyncio.create_task(_kill_the_owner(triangle, outlived))
        started_s = time.perf_counter()
        await _post(meshes[0], flights, outlived, advance)
        while outlived.count < len(flights) and not any(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        outlived.took_s = time.perf_counter() - started_s
        await killing
        outlived.left = await triangle.depth_of(REPLICATED, outlived.followed)
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
    return outlived


async def _post(client: Client, flights: Flights, outlived: Outlived, advance: Advance) -> None:
    """Post the flights, some batches at once; each until it is accepted."""
    under_way: set[asyncio.Task[None]] = set()
    async with client.publisher(REPLICATED) as out:

        async def post(rows: list[int]) -> None:
            while rows:
                outcomes = await out.post_batch(_message(flights, row) for row in rows)
                errors = [outcome.error() for outcome in outcomes]
                again = [row for row, error in zip(rows, errors, strict=True) if error is not None]
                for error in errors:
                    if error is not None and not isinstance(error, (InDoubt, Released)):
                        raise error
                advance("replicated: sent", len(rows) - len(again))
                outlived.resent += len(again)
                rows = again

        for at in range(0, len(flights), BATCH):
            await out.ready()
            rows = list(range(at, min(at + BATCH, len(flights))))
            under_way.add(asyncio.create_task(post(rows)))
            if len(under_way) > 10:
                done, under_way = await asyncio.wait(under_way, return_when="FIRST_COMPLETED")
                for each in done:
                    each.result()
        await asyncio.gather(*under_way)


def _message(flights: Flights, row: int) -> Message:
    return Message(flights.flight(row), message_id=str(row), properties={"row": row})


async def _work(items: Consumer, outlived: Outlived, advance: Advance) -> None:
    while True:
        batch = await items.take(BATCH)
        try:
            await items.accept(batch)
        except StaleAttempt as error:  # another worker has these, and confirms them
            batch = [item for item in batch if not any(item is each for each in error.items)]
        advance("replicated: done", outlived.confirm(item.properties["row"] for item in batch))


async def _kill_the_owner(triangle: Triangle, outlived: Outlived) -> None:
    """Kill the owner when half of the flights are done."""
    while 2 * outlived.count < len(outlived.confirmed):
        await asyncio.sleep(0.005)
    outlived.killed = await triangle.owner_of(REPLICATED)
    outlived.before = outlived.count
    triangle.kill(outlived.killed)
    outlived.followed = await triangle.owner_of(REPLICATED, other_than=outlived.killed)
