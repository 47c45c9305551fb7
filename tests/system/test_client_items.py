"""Items of a queue and their consumers: claims, doubts, and what a reconnection keeps."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

import cogwork

from .proxy import FaultyProxy
from .stories import QUICKLY, eventually, filled, has_told, reconnected, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork.client import Consumer

CONFIGURATION = """
[[address]]
prefix = "queue/"
in_doubt = "redeliver"
in_doubt_timeout_s = 0.2

[[address]]
prefix = "work/"
in_doubt = "park"
in_doubt_timeout_s = 20.0
"""

NO_MESSAGE = b"\x00\x53\x77\x99"
"""A body of a type that AMQP does not have."""


async def depth(client: cogwork.Client, address: str) -> int:
    """Ask the container how many items a queue has."""
    reply = await client.manage("READ", {"type": "queue", "name": address})
    assert isinstance(reply.body, dict)
    return int(reply.body["depth"])


@asynccontextmanager
async def consuming(
    url: str, address: str, *, credit: int
) -> AsyncIterator[tuple[FaultyProxy, cogwork.Client, cogwork.Client, Consumer]]:
    """Consume items of an address by way of a proxy that breaks connections.

    Yields:
        The proxy, the client that has its connection there, one without it, and the consumer.
    """
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.consume(address, credit=credit) as items,
    ):
        yield proxy, client, other, items


@story
async def test_competing_consumers_share_a_queue(url: str) -> None:
    count, seen = 1_000, list[object]()
    async with cogwork.connect(url) as client:
        await filled(client, "work/shared", count)

        async def work(pause_s: float) -> None:
            async with client.consume("work/shared", credit=10) as items:
                async for item in items:
                    await item.accept()
                    seen.append(item.body)
                    await asyncio.sleep(pause_s)

        workers = [asyncio.create_task(work(pause_s)) for pause_s in (0, 0.001, 0.01)]
        await eventually(lambda: len(seen) == count, "all are done")
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert await depth(client, "work/shared") == 0
    assert sorted(seen, key=str) == sorted(range(count), key=str)


@story
async def test_an_item_in_hand_can_be_accepted_after_a_cut(url: str) -> None:
    async with consuming(url, "work/kept", credit=1) as (proxy, client, other, items):
        await filled(other, "work/kept", 1)
        item = await anext(items)
        await has_told(client)
        proxy.cut()
        await reconnected(client)
        await item.accept()
        assert await depth(other, "work/kept") == 0


@pytest.mark.parametrize("size_bytes", [10, 100, 300_000])
@story
async def test_items_of_any_size_are_kept(url: str, size_bytes: int) -> None:
    """Small ones come in runs, large ones in several frames: each has a tag of its own."""
    address = f"work/sized.{size_bytes}"
    async with consuming(url, address, credit=20) as (proxy, client, other, items):
        async with other.publisher(address) as out:
            await out.send_batch([bytes(size_bytes)] * 20)
        held = [await anext(items) for _ in range(20)]
        assert len({item.delivery_tag for item in held}) == 20
        await has_told(client)
        proxy.cut()
        await items.accept(held)
        assert await depth(other, address) == 0


@story
async def test_a_claim_that_was_on_its_way_still_counts(url: str) -> None:
    async with consuming(url, "work/claimed", credit=10) as (proxy, client, other, items):
        await filled(other, "work/claimed", 10)
        held = [await anext(items) for _ in range(10)]
        await has_told(client)
        proxy.hold_replies()
        claims = [item.accept() for item in held[:5]]
        for item in held[5:]:
            item.accept_nowait()
        await asyncio.sleep(0.05)
        proxy.cut()
        for claim in claims:
            await claim
        await items.flush()
        assert await depth(other, "work/claimed") == 0


@story
async def test_what_was_decided_while_disconnected_is_said_later(url: str) -> None:
    async with consuming(url, "work/decided", credit=2) as (proxy, client, other, items):
        await filled(other, "work/decided", 2)
        first, second = await anext(items), await anext(items)
        await has_told(client)
        proxy.refuse(refuses=True)
        proxy.cut()
        await eventually(lambda: not client.is_connected, "the loss is noticed")
        claim = first.accept()
        second.release()
        proxy.refuse(refuses=False)
        await claim
        again = await anext(items)
        assert again.body == second.body
        await again.accept()


@story
async def test_an_item_that_was_given_away_is_stale(url: str) -> None:
    async with consuming(url, "queue/stale", credit=3) as (proxy, client, other, items):
        await filled(other, "queue/stale", 3)
        mine = [await anext(items) for _ in range(3)]
        await has_told(client)
        proxy.refuse(refuses=True)
        proxy.cut()
        async with other.consume("queue/stale") as others:
            theirs = [await anext(others) for _ in range(3)]
            assert [item.body for item in theirs] == [0, 1, 2]
            proxy.refuse(refuses=False)
            await reconnected(client)
            with pytest.raises(cogwork.StaleAttempt, match="queue/stale"):
                await mine[0].accept()
            mine[1].accept_nowait()
            with pytest.raises(cogwork.StaleAttempt) as caught:
                await items.flush()
            assert caught.value.items == [mine[1]]
            with pytest.raises(cogwork.StaleAttempt):
                await items.accept(mine[2:])
            await others.accept(theirs)


@story
async def test_what_was_not_handed_over_goes_to_others_at_once(url: str) -> None:
    async with consuming(url, "work/ahead", credit=10) as (proxy, client, other, items):
        await filled(other, "work/ahead", 10)
        held = await anext(items)
        await eventually(lambda: items.waiting == 9, "the others have arrived")
        await has_told(client)
        proxy.refuse(refuses=True)
        proxy.cut()
        async with other.consume("work/ahead") as others:
            bodies = set[object]()
            for _ in range(9):
                item = await anext(others)
                bodies.add(item.body)
                await item.accept()
            assert bodies == set(range(1, 10))
        proxy.refuse(refuses=False)
        await held.accept()
        assert await depth(other, "work/ahead") == 0


@story
async def test_leaving_waits_for_claims(url: str) -> None:
    async with cogwork.connect(url) as client:
        await filled(client, "work/leaving", 500)
        async with client.consume("work/leaving", credit=500) as items:
            done = 0
            async for item in items:
                item.accept_nowait()
                done += 1
                if done == 300:
                    break
        assert await depth(client, "work/leaving") == 200


@story
async def test_many_cuts_lose_and_repeat_nothing(url: str) -> None:
    count, done = 3_000, dict[object, int]()
    async with consuming(url, "work/many", credit=50) as (proxy, _, other, items):
        await filled(other, "work/many", count)

        while len(done) < count:
            if len(done) // 100 == proxy.connections:
                proxy.cut()
            item = await anext(items)
            await asyncio.sleep(0)
            try:
                await item.accept()
            except cogwork.StaleAttempt:
                continue
            done[item.body] = done.get(item.body, 0) + 1
        assert proxy.connections > count // 200
        assert await depth(other, "work/many") == 0
    assert set(done.values()) == {1}


@story
async def test_what_is_no_message_is_rejected_and_counted(url: str) -> None:
    async with cogwork.connect(url) as client, client.publisher("work/strange") as out:
        (outcome,) = await out.post_encoded([NO_MESSAGE])
        assert outcome.is_accepted, "the container reads no bodies"
        await out.send("a message")
        async with client.consume("work/strange") as items:
            item = await anext(items)
            assert (item.body, items.undecodable) == ("a message", 1)
            await item.accept()
        assert await depth(client, "work/strange") == 0
