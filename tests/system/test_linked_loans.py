"""Loans of queues that end with something on its way: at rest, and where a link breaks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from cogwork.nodes.queue.node import QueueNode

from .linked import linked
from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .linked import Linked


@asynccontextmanager
async def line() -> AsyncIterator[tuple[Linked, FaultyProxy]]:
    """Runs `a` and `b`, which is linked with it through a proxy."""
    async with linked("a-z") as mesh, FaultyProxy(f"amqp://{mesh.address('a')}") as proxy:
        await mesh.start("b", configuration=f'[[link]]\nurl = "{proxy.url}"\n')
        await mesh.settle()
        yield mesh, proxy
        await mesh.stop("b")


@pytest.mark.parametrize("kind", ["queue", "work"])
def test_an_item_on_its_way_when_a_link_breaks_comes_once_it_is_back(kind: str) -> None:
    @story
    async def told() -> None:
        async with line() as (mesh, proxy):
            here, there = await mesh.client("a"), await mesh.client("b")
            items = await mesh.enter(there.consume(f"{kind}/x", credit=10))
            await here.publish(f"{kind}/x", "first")
            (first,) = await items.take(1)
            await first.accept()
            shards = mesh.containers["b"].mesh.reaches[""].lending._shards
            await eventually(lambda: not shards.at(f"{kind}/x"), "no backlog is told any more")
            proxy.hold_replies()
            await here.publish(f"{kind}/x", "second")
            proxy.cut()
            async with asyncio.timeout(8):
                (second,) = await items.take(1)
            await second.accept()
            queue = mesh.containers["a"].vhosts[""].nodes.get(f"{kind}/x")
            assert isinstance(queue, QueueNode)
            store = queue.store
            await eventually(lambda: store.counts()["in-doubt"] == store.depth == 0, "it is over")

    told()


@pytest.mark.parametrize("settled", [True, False])
def test_what_is_on_its_way_when_a_loan_comes_to_rest_arrives(
    monkeypatch: pytest.MonkeyPatch, *, settled: bool
) -> None:
    idle_s, queues, count = 0.3, 12, 10
    monkeypatch.setattr("cogwork.container.mesh.lending.IDLE_S", idle_s)

    @story
    async def told() -> None:
        async with line() as (mesh, proxy):
            proxy.lengthen(0.02)
            here, there = await mesh.client("a"), await mesh.client("b")
            taken = [
                await mesh.enter(there.subscribe(f"work/{at}", credit=50, settled=settled))
                for at in range(queues)
            ]
            for number in range(count):
                for at in range(queues):
                    await here.publish(f"work/{at}", number)
                    await asyncio.sleep(idle_s / queues)
                await asyncio.sleep(number * 0.035)
            for each in taken:
                found = [message.body for message in await each.take(count)]
                assert set(found) == set(range(count))

    told()
