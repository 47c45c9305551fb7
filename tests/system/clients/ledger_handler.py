"""A ledger worker on Cogwork's client as the README has it: a handler that blocks."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING

import cogwork

if TYPE_CHECKING:
    from ledger import Ledger

CREDIT = 100
HANDLER_S = 0.001


def work(url: str, queue: str, ledger: Ledger) -> None:
    """Work until SIGTERM."""
    asyncio.run(_work(url, queue, ledger))


async def _work(url: str, queue: str, ledger: Ledger) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        async with cogwork.connect(url) as client, client.consume(queue, credit=CREDIT) as items:
            async for item in items:
                ledger.take([(item.body, item.delivery_count)])
                time.sleep(HANDLER_S)  # it is a handler that blocks
                try:
                    await item.accept()
                except (cogwork.StaleAttempt, cogwork.InDoubt):
                    continue
                ledger.confirm([item.body])
    except asyncio.CancelledError:
        task.uncancel()
