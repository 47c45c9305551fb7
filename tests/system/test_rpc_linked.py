"""Calls on a mesh of three containers in a line."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from call_ends import server_of

import cogwork

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def serve(mesh: Linked, at: str, seen: Counter[str]) -> cogwork.rpc.Service:
    """Serve the same topic at a container."""
    service = server_of((await mesh.client(at)).service("line", server=f"host-{at}", grace_s=0.1))

    @service.method
    async def name() -> str:
        return at

    @service.method
    def note() -> None:
        seen[at] += 1

    @service.method
    async def count(to: int) -> AsyncIterator[int]:
        for n in range(to):
            yield n

    @service.method
    async def sleep() -> None:
        await asyncio.sleep(30)

    return await mesh.enter(service)


@story
async def test_calls_cross_containers() -> None:
    seen: Counter[str] = Counter()
    async with linked("a-b", "b-c") as mesh:
        far = await serve(mesh, "c", seen)
        await serve(mesh, "b", seen)
        caller = await mesh.client("a", is_new=True)
        for at in ("b", "c"):
            assert await caller.call("line", "name", server=f"host-{at}") == at
        # Unicast is for the closest server that there is.
        assert {await caller.call("line", "name") for _ in range(5)} == {"b"}
        await caller.fanout("line", "note")
        await eventually(lambda: seen == {"b": 1, "c": 1}, "everybody has it, once")
        parts = caller.call_stream("line", "count", server="host-c", to=500)
        assert [n async for n in parts] == list(range(500))
        found = await asyncio.gather(
            *(caller.call("line", "name", server="host-c") for _ in range(200))
        )
        assert set(found) == {"c"}
        call = asyncio.create_task(caller.call("line", "sleep", server="host-c"))
        await eventually(lambda: far.running == 1, "it is under work")
        call.cancel()
        await eventually(lambda: far.running == 0, "leaving ends it, far away")
        with pytest.raises(cogwork.Unreachable):
            await caller.call("line", "name", server="host-x", timeout_s=0.2)


@story
async def test_a_container_that_dies_hangs_no_call() -> None:
    seen: Counter[str] = Counter()
    async with linked("a-b", "b-c") as mesh:
        far = await serve(mesh, "c", seen)
        caller = await mesh.client("a", is_new=True)
        calls = [
            asyncio.create_task(caller.call("line", "sleep", timeout_s=20, heartbeat_s=0.6))
            for _ in range(5)
        ]
        await eventually(lambda: far.running == 5, "they are under work")
        mesh.cut_off("b")
        for call in calls:
            with pytest.raises(cogwork.InDoubt):
                await call
        with pytest.raises((cogwork.Released, cogwork.CallTimeout)):
            await caller.call("line", "name", timeout_s=0.3)
        mesh.join_again("b")
        await eventually(mesh.is_settled, "they know each other again")
        assert await caller.call("line", "name", timeout_s=10) == "c"
