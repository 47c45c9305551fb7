"""Subscriptions of replicated streams, on an engine that never has anything."""

from __future__ import annotations

import asyncio

import pytest

from cogwork.plugin.engine.contract import Bounds, CaughtUp, Origin
from cogwork.replication.engine import RaftSubscription


class Empty:
    """An engine without records."""

    async def bounds(self) -> Bounds:
        return Bounds(0, 0, 0)

    @staticmethod
    def read_if_here(_offset: int) -> list[object]:
        return []

    @staticmethod
    def more_here() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()


async def reading() -> tuple[RaftSubscription, asyncio.Task[object]]:
    """A subscription that waits for more, and who reads it."""
    subscription = RaftSubscription(Empty(), Origin.FIRST)  # type: ignore[arg-type]  # all that is asked
    assert isinstance(await anext(subscription), CaughtUp)

    async def read() -> object:
        return await anext(subscription, None)

    task = asyncio.get_running_loop().create_task(read())
    await asyncio.sleep(0)
    return subscription, task


async def end() -> None:
    subscription, task = await reading()
    await subscription.aclose()
    assert await task is None


async def end_and_cancel() -> None:
    subscription, task = await reading()
    await subscription.aclose()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_end_is_none_of_who_reads() -> None:
    asyncio.run(end())


def test_who_is_to_end_does_so_also_where_the_subscription_has_just_ended() -> None:
    asyncio.run(end_and_cancel())
