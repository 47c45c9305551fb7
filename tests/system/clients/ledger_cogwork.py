"""A ledger worker on Cogwork's client: it takes items in batches."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import cogwork

if TYPE_CHECKING:
    from ledger import Ledger

    from cogwork.client import Consumer

CREDIT = 100


def work(url: str, queue: str, ledger: Ledger) -> None:
    """Work until SIGTERM."""
    asyncio.run(_work(url, queue, ledger))


async def _work(url: str, queue: str, ledger: Ledger) -> None:
    async with cogwork.connect(url) as client, client.consume(queue, credit=CREDIT) as items:
        ending = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        end = asyncio.ensure_future(ending.wait())
        while not ending.is_set():
            batch = await _next_batch(items, end)
            if batch:
                ledger.take((item.body, item.delivery_count) for item in batch)
                ledger.confirm(item.body for item in await _accepted(items, batch))


async def _accepted(items: Consumer, batch: list[cogwork.Item]) -> list[cogwork.Item]:
    """Accept items; return those that are confirmed."""
    try:
        await items.accept(batch)
    except (cogwork.StaleAttempt, cogwork.InDoubt) as late:
        stale = late.stale if isinstance(late, cogwork.InDoubt) else []
        others = {id(item) for item in (*late.items, *stale)}
        return [item for item in batch if id(item) not in others]
    return batch


async def _next_batch(items: Consumer, end: asyncio.Future[Any]) -> list[cogwork.Item]:
    """Return what came; nothing where the end came first."""
    taking: asyncio.Future[Any] = asyncio.ensure_future(items.take())
    await asyncio.wait({taking, end}, return_when=asyncio.FIRST_COMPLETED)
    if taking.done():
        found: list[cogwork.Item] = taking.result()
        return found
    taking.cancel()
    await asyncio.wait({taking})
    return []
