"""Consumers that take what is there and no more, browsers that take nothing, leaving in order."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork import sync

from .proxy import FaultyProxy
from .stories import eventually, filled, story

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIGURATION = """
[[address]]
prefix = "queue/"
in_doubt_timeout_s = 30
"""
"""Whatever comes back within a test was never in doubt."""


def bodies(messages: Sequence[cogwork.Message]) -> list[object]:
    return [message.body for message in messages]


@story
async def test_a_drain_takes_what_is_there(url: str) -> None:
    async with cogwork.connect(url) as client, client.consume("queue/drain.all") as items:
        assert await items.drain() == []
        await filled(client, "queue/drain.all", 3)
        taken = await items.drain()
        assert bodies(taken) == [0, 1, 2]
        await items.accept(taken)
        assert await items.drain() == []


@story
async def test_a_drain_takes_as_much_as_there_is_credit(url: str) -> None:
    async with cogwork.connect(url) as client:
        await filled(client, "queue/drain.turns", 25)
        async with client.consume("queue/drain.turns", credit=10) as items:
            taken: list[cogwork.Item] = []
            while batch := await items.drain():
                assert len(batch) <= 10
                taken += batch
                await items.accept(batch)
        assert bodies(taken) == list(range(25))


@story
async def test_who_holds_all_the_credit_drains_nothing(url: str) -> None:
    async with cogwork.connect(url) as client:
        await filled(client, "queue/drain.held", 3)
        async with client.consume("queue/drain.held", credit=2) as items:
            held = await items.drain()
            assert bodies(held) == [0, 1]
            assert await items.drain() == []
            await items.accept(held)
            assert bodies(await items.drain()) == [2]


@story
async def test_items_come_again_after_a_drain(url: str) -> None:
    async with cogwork.connect(url) as client, client.consume("queue/drain.on") as items:
        assert await items.drain() == []
        await filled(client, "queue/drain.on", 1)
        item = await anext(items)
        assert item.body == 0
        await item.accept()


@story
async def test_a_queue_is_worked_off_however_often_the_connection_breaks(url: str) -> None:
    retry = cogwork.Retry(first_s=0.01, longest_s=0.05)
    async with (
        cogwork.connect(url) as other,
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=retry) as client,
        client.consume("queue/drain.worked-off", credit=5) as items,
    ):
        await filled(other, "queue/drain.worked-off", 40)
        done: list[object] = []
        while batch := await items.drain():
            done += bodies(batch)
            await items.accept(batch)
            if len(done) % 10 == 0:
                proxy.cut()
                lost = partial(has_lost, client, client.connections)
                await eventually(lost, "the loss is noticed")
        assert done == list(range(40))


def has_lost(client: cogwork.Client, connections: int) -> bool:
    """Return whether a mesh has noticed a loss; the next connection may stand by then."""
    return not client.is_connected or client.connections > connections


@story
async def test_a_drain_goes_on_with_the_next_connection(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url) as client,
        client.consume("queue/drain.cut") as items,
    ):
        proxy.hold_replies()
        drain = asyncio.create_task(items.drain())
        await asyncio.sleep(0.05)
        assert not drain.done()
        proxy.cut()
        assert await drain == []
        await filled(client, "queue/drain.cut", 1)
        assert bodies([await anext(items)]) == [0]


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20])
@story
async def test_items_come_after_a_drain_that_was_left(url: str, turns: int) -> None:
    queue = f"queue/drain.left-off.{turns}"
    async with cogwork.connect(url) as client, client.consume(queue) as items:
        drain = asyncio.create_task(items.drain())
        for _ in range(turns):
            await asyncio.sleep(0)
        drain.cancel()
        await asyncio.gather(drain, return_exceptions=True)
        await client.publish(queue, 0)
        async with asyncio.timeout(30):
            item = await anext(items)
        assert item.body == 0
        await item.accept()
        assert await items.drain() == []


@story
async def test_a_browser_leaves_everything_where_it_is(url: str) -> None:
    async with cogwork.connect(url) as client:
        await filled(client, "queue/drain.seen", 3)
        async with client.browse("queue/drain.seen") as browser:
            assert bodies(await browser.drain()) == [0, 1, 2]
            assert await browser.drain() == []
        async with client.consume("queue/drain.seen") as items:
            assert bodies(await items.drain()) == [0, 1, 2]


@story
@pytest.mark.parametrize("confirms", [True, False])
async def test_who_leaves_in_order_leaves_no_doubt(url: str, confirms: bool) -> None:
    """Items are on their way all the time: each settlement makes room for another one."""
    queue = f"queue/drain.left.{confirms}"
    async with cogwork.connect(url) as client:
        await filled(client, queue, 60)
        for number in range(20):
            async with client.consume(queue, credit=2, confirms=confirms) as items:
                item = await anext(items)
                assert item.body == number
                item.accept_nowait()
        async with client.consume(queue) as items:
            assert bodies(await items.drain()) == list(range(20, 60))


def test_a_program_without_a_loop_drains_too(url: str) -> None:
    with sync.connect(url) as client:
        for number in range(3):
            client.publish("queue/drain.sync", number)
        with client.browse("queue/drain.sync") as browser:
            assert bodies(browser.drain()) == [0, 1, 2]
        with client.consume("queue/drain.sync") as items:
            assert bodies(items.drain()) == [0, 1, 2]


@story
async def test_the_container_says_what_it_is(url: str) -> None:
    async with cogwork.connect(url) as client:
        assert client.container.container_id == "test"
        assert "ANONYMOUS-RELAY" in client.container.offered_capabilities
    with pytest.raises(cogwork.Disconnected):
        _ = client.container


@story
async def test_bytes_as_a_value_stay_one(url: str) -> None:
    async with cogwork.connect(url) as client, client.subscribe("topic/value") as messages:
        await client.publish("topic/value", cogwork.Message.value(b"cog", subject="s"))
        message = await anext(messages)
        assert (message.body_type, message.body, message.subject) == ("value", b"cog", "s")


@story
async def test_who_sent_hears_that_an_item_is_not_wanted_here(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/unwanted", credit=1) as items,
        client.publisher("unicast/unwanted") as out,
    ):
        sent = out.post_batch(["one"])
        (await anext(items)).modify(undeliverable_here=True, annotations={"x-opt-why": "slipped"})
        (outcome,) = await sent
        assert outcome.undeliverable_here
        assert not outcome.delivery_failed
        assert outcome.annotations == {"x-opt-why": "slipped"}
