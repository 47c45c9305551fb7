"""Loans of queues that end with something on its way: at rest, and where a link breaks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.nodes.queue.node import QueueNode

from .linked import linked
from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork import Message
    from cogwork.client import Subscription

    from .linked import Linked


@asynccontextmanager
async def line() -> AsyncIterator[tuple[Linked, FaultyProxy]]:
    """Run `a` and `b`, which is linked with it through a proxy."""
    async with linked("a-z") as mesh, FaultyProxy(f"amqp://{mesh.address('a')}") as proxy:
        await mesh.start("b", configuration=f'[[link]]\nurl = "{proxy.url}"\n')
        await mesh.settle()
        yield mesh, proxy
        await mesh.stop("b")


async def taken(messages: Subscription, count: int) -> list[Message]:
    """Take messages, however many come together."""
    found: list[Message] = []
    while len(found) < count:
        found += await messages.take(count - len(found))
    return found


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
            shards = mesh.containers["b"].mesh.reaches[""].queue_federation._shards
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
def test_what_is_on_its_way_when_a_upstream_comes_to_rest_arrives(
    monkeypatch: pytest.MonkeyPatch, *, settled: bool
) -> None:
    idle_s, queues, count = 0.3, 12, 10
    monkeypatch.setattr("cogwork.container.federation.queue_federation.IDLE_S", idle_s)

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


@pytest.mark.parametrize("federated_queues", ["a", "ac"])
@story
async def test_who_wants_items_settled_loses_none_for_want_of_credit(federated_queues: str) -> None:
    count = 300
    async with linked("a-b", "c-b") as mesh:
        items = await mesh.enter(
            (await mesh.client("b")).subscribe("queue/x", credit=10, settled=True)
        )
        for number in range(count):
            for name in federated_queues:
                await (await mesh.client(name)).publish("queue/x", f"{name}{number}")
            await (await mesh.client("b")).publish("queue/x", f"b{number}")
        expected = {f"{name}{number}" for name in f"{federated_queues}b" for number in range(count)}
        async with asyncio.timeout(20):
            found = [item.body for item in await taken(items, len(expected))]
        assert len(found) == len(set(found))
        assert set(found) == expected


@pytest.mark.parametrize("kind", ["queue", "work"])
def test_who_wants_items_settled_gets_none_twice_where_a_shard_did_not_hear(kind: str) -> None:
    @story
    async def told() -> None:
        hasty = f'[[queue]]\naddress = "{kind}/x"\nin_doubt_timeout_s = 1.0\n'
        async with (
            linked("b-z", configuration=hasty) as mesh,
            FaultyProxy(f"amqp://{mesh.address('b')}") as proxy,
        ):
            await mesh.start("a", configuration=f'[[link]]\nurl = "{proxy.url}"\n')
            await mesh.settle()
            here, there = await mesh.client("a"), await mesh.client("b")
            items = await mesh.enter(there.subscribe(f"{kind}/x", credit=10, settled=True))
            await here.publish(f"{kind}/x", "first")
            await taken(items, 1)
            proxy.hold_replies()  # nothing comes from b to a
            for number in range(3):
                await here.publish(f"{kind}/x", number)
            assert [item.body for item in await taken(items, 3)] == [0, 1, 2]
            proxy.cut()
            shard: Any = mesh.containers["a"].vhosts[""].nodes.get(f"{kind}/x")
            await eventually(lambda: shard.store.depth == 0, "the shard has heard it")
            await asyncio.sleep(1.5)
            await here.publish(f"{kind}/x", "last")
            assert [item.body for item in await taken(items, 1)] == ["last"]
            await mesh.stop("a")

    told()


@story
async def test_who_wants_items_settled_has_none_of_them_when_a_link_breaks() -> None:
    async with line() as (mesh, proxy):
        here, there = await mesh.client("a"), await mesh.client("b")
        items = await mesh.enter(there.subscribe("queue/x", credit=10, settled=True))
        for number in range(50):
            await here.publish("queue/x", number)
        await taken(items, 50)
        (consumers,) = mesh.containers["b"].mesh.reaches[""].queue_federation._consumers.values()
        (consumer,) = consumers
        await eventually(lambda: not consumers[consumer].federated.tags_of("a"), "it has no items")
        assert consumer.link.unsettled == 0
        proxy.cut()
        await here.publish("queue/x", "after it")
        async with asyncio.timeout(8):
            (last,) = await items.take(1)
        assert last.body == "after it"
