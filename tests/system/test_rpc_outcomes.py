"""What unsettled calls and casts are told: released, modified, rejected, each at once."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

import cogwork

from .stories import story

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS = "unicast/rpc/moody"


async def moody(client: cogwork.Client, *moods: Callable[[cogwork.Item], object]) -> list[object]:
    """Settle requests as it is told, one after the other; return the bodies that came."""
    came: list[object] = []
    async with client.consume(ADDRESS, confirms=False) as items:
        for mood in moods:
            item = await anext(items)
            came.append(item.body)
            mood(item)
        await asyncio.sleep(0.05)  # the last outcome leaves
    return came


def release(item: cogwork.Item) -> None:
    item.release()


def fail(item: cogwork.Item) -> None:
    item.modify(failed=True)


def accept(item: cogwork.Item) -> None:
    item.accept_nowait()


def reject(item: cogwork.Item) -> None:
    item.reject("not like this")


@story
async def test_an_unsettled_call_hears_its_outcome_before_its_deadline(url: str) -> None:
    async with cogwork.connect(url) as server, cogwork.connect(url) as client:
        for mood, kind in ((fail, cogwork.InDoubt), (reject, cogwork.Rejected)):
            serving = asyncio.create_task(moody(server, mood))
            began_s = time.monotonic()
            with pytest.raises(kind):
                await client.call("moody", "x", timeout_s=20, settled=False)
            assert time.monotonic() - began_s < 10
            assert await serving == [{}]


@story
async def test_a_call_that_is_released_is_tried_again_until_its_deadline(url: str) -> None:
    async with cogwork.connect(url) as server, cogwork.connect(url) as client:
        serving = asyncio.create_task(moody(server, release, release, reject))
        with pytest.raises(cogwork.Rejected):
            await client.call("moody", "x", timeout_s=20)
        assert await serving == [{}] * 3
        serving = asyncio.create_task(moody(server, *[release] * 100))
        with pytest.raises(cogwork.CogworkError) as told:  # it may be out just then
            await client.call("moody", "x", timeout_s=0.5)
        assert isinstance(told.value, cogwork.Released | cogwork.CallTimeout)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@story
async def test_a_cast_that_is_released_is_tried_again_and_never_pretends(url: str) -> None:
    async with cogwork.connect(url) as server, cogwork.connect(url) as client:
        serving = asyncio.create_task(moody(server, release, release, accept))
        await client.cast("moody", "x", settled=False, n=1)
        assert await serving == [{"n": 1}] * 3
        serving = asyncio.create_task(moody(server, *[release] * 30))
        with pytest.raises((cogwork.Released, cogwork.InDoubt)):  # it may be out just then
            await client.cast("moody", "x", settled=False, timeout_s=0.5, n=1)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for mood, kind in ((fail, cogwork.InDoubt), (reject, cogwork.Rejected)):
            serving = asyncio.create_task(moody(server, mood))
            with pytest.raises(kind):
                await client.cast("moody", "x", settled=False, n=1)
            await serving


@story
async def test_a_cast_that_nobody_settles_is_in_doubt(url: str) -> None:
    async with (
        cogwork.connect(url) as server,
        cogwork.connect(url) as client,
        server.consume(ADDRESS, confirms=False) as items,
    ):
        casting = asyncio.create_task(client.cast("moody", "x", settled=False, timeout_s=1.5))
        await anext(items)
        with pytest.raises(cogwork.InDoubt, match="no outcome"):
            await casting
