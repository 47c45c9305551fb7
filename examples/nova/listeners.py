"""Listeners: they take the notifications, as a meter of the cloud would."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from plan import NOTIFICATIONS, Plan
from role import Notes, closing, keeping_on

import cogwork

CLOSE_S = 10.0


async def listen(plan: Plan, notes: Notes, stop: asyncio.Event) -> None:
    """Take notifications until all is to stop."""
    tasks = [asyncio.create_task(_listener(plan, n, notes, stop)) for n in range(plan.listeners)]
    await stop.wait()
    await closing(tasks, CLOSE_S)


async def _listener(plan: Plan, number: int, notes: Notes, stop: asyncio.Event) -> None:
    async def attempt() -> None:
        async with (
            cogwork.connect(plan.urls_of(number)) as client,
            client.consume(NOTIFICATIONS) as items,
        ):
            taking = asyncio.create_task(_take(items, notes))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if taking.done():
                taking.result()
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    await keeping_on(attempt, notes, stop)


async def _take(items: AsyncIterator[cogwork.Item], notes: Notes) -> None:
    async for item in items:
        notes.note("notifications taken", item.message_id)
        item.accept_nowait()


def file_of(plan: Plan) -> Path:
    """Name the file that takes the notes."""
    return Path(plan.folder) / "listeners.json"
