"""The second act: every flight is an item of work, posted at a and at c, and done at a and at c."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flights import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flights import Flights
    from triangle import Strike, Triangle

    from cogwork import Client
    from cogwork.client.receiving.consumer import Consumer

    Advance = Callable[[str, int], None]

__all__ = ("WORKERS", "Shift", "do_the_work")

BATCH = 500

WORKERS = (("a", 0.004), ("a", 0.002), ("c", 0.001), ("c", 0.0))
"""Where each worker is, and what it waits after a batch, in seconds: they are of unequal speed."""

POSTED_AT_C = 4
"""Every fourth flight is posted at c, the others at a: so c has more hands, and a more work."""


@dataclass
class Shift:
    """What the workers have done.

    Attributes:
        confirmed: For each flight, how often an attempt at it was confirmed.
        by_worker: How many each worker got.
        count: How many were confirmed in all.
        took_s: Seconds from the first item posted to the last one confirmed.
        strike: How b was killed.
        direct: Messages that went over the direct link.
        shards: What the queue says of itself at a and at c.
    """

    confirmed: bytearray
    by_worker: list[int]
    count: int = 0
    took_s: float = 0.0
    strike: Strike = field(init=False)
    direct: int = 0
    shards: list[dict[str, Any]] = field(default_factory=list)


async def do_the_work(triangle: Triangle, flights: Flights, advance: Advance) -> Shift:
    """Post every flight as a work item, and has workers take them while b is killed."""
    clients = triangle.clients
    shift = Shift(bytearray(len(flights)), [0] * len(WORKERS))
    rows = range(len(flights))
    async with AsyncExitStack() as stack:
        tasks = []
        for number, (place, pause_s) in enumerate(WORKERS):
            consumer = clients[place].consume(WORK, credit=2 * BATCH)
            items = await stack.enter_async_context(consumer)
            tasks.append(asyncio.create_task(_work(items, shift, number, pause_s, advance)))
        killing = asyncio.create_task(triangle.kill_b(lambda: 2 * shift.count > len(rows)))
        started_s = time.perf_counter()
        await asyncio.gather(
            _post(clients["a"], flights, [row for row in rows if row % POSTED_AT_C], advance),
            _post(clients["c"], flights, rows[::POSTED_AT_C], advance),
        )
        while shift.count < len(rows) and not any(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        shift.took_s = time.perf_counter() - started_s
        shift.direct = await triangle.messages_over("c")
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        shift.strike = await killing
    for client in clients.values():
        reply = await client.manage("READ", {"type": "queue", "name": WORK})
        shift.shards.append(reply.body)
    return shift


async def _post(client: Client, flights: Flights, rows: Sequence[int], advance: Advance) -> None:
    async with client.publisher(WORK) as out:
        for at in range(0, len(rows), BATCH):
            some = rows[at : at + BATCH]
            await out.ready()
            out.post_batch(flights.message(WORK, row) for row in some)
            advance("items sent", len(some))
        await out.flush()


async def _work(
    items: Consumer, shift: Shift, number: int, pause_s: float, advance: Advance
) -> None:
    while True:
        batch = await items.take(BATCH)
        await items.accept(batch)
        for item in batch:
            shift.confirmed[item.properties["row"]] += 1
        shift.count += len(batch)
        shift.by_worker[number] += len(batch)
        advance("items confirmed", len(batch))
        await asyncio.sleep(pause_s)
