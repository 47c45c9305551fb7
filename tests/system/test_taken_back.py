"""Messages that a container holds for a full queue: taken back, and in nobody else's way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.client.publishing.withdrawal import ranges

from .linked import linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOM = 5
CONFIGURATION = f"""
[[queue]]
address = "work/short"
maximum_length = {ROOM}

[[queue]]
address = "work/whole"
maximum_length = {ROOM}
ordering = "group-id"
partitions = 1

[[queue]]
address = "work/parted"
maximum_length = {ROOM}
deduplication_window_s = 60
partitions = 2
"""
QUEUES = ["work/short", "work/whole", "work/parted"]
TAKEN_BACK = "no credit"
MANY = 200


def message(number: int) -> cogwork.Message:
    return cogwork.Message(number, group_id=f"g{number}", message_id=f"m{number}")


async def credits_at(mesh: cogwork.Client, address: str) -> int:
    """Return how much credit the publishers of an address have, all together."""
    reply = await mesh.manage("QUERY", {"type": "link"})
    found: Any = reply.body
    rows = [dict(zip(found["attributeNames"], each, strict=True)) for each in found["results"]]
    return sum(int(row["credit"]) for row in rows if row["address"] == address)


async def taken(mesh: cogwork.Client, address: str, count: int) -> AsyncIterator[int]:
    """Take so many items."""
    async with mesh.consume(address) as items:
        for _ in range(count):
            item = await anext(items)
            assert isinstance(item.body, int)
            yield item.body
            await item.accept()


async def filled(mesh: cogwork.Client, address: str) -> list[int]:
    """Fill a queue by the relay; return what was accepted, all else having been released."""
    sent = [
        mesh.publish(address, message(number), timeout_s=1 + number / MANY)
        for number in range(MANY)
    ]
    found = await asyncio.gather(*sent, return_exceptions=True)
    for each in found:
        assert each is None or (isinstance(each, cogwork.Released) and TAKEN_BACK in str(each))
    return [number for number, each in enumerate(found) if each is None]


@pytest.mark.parametrize("address", QUEUES)
@pytest.mark.parametrize("at", ["a", "b"])
@story
async def test_what_the_relay_holds_is_taken_back(at: str, address: str) -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        client = await mesh.client(at)
        accepted = await filled(client, address)
        assert ROOM <= len(accepted) <= 2 * ROOM
        later = asyncio.create_task(client.publish(address, message(MANY), timeout_s=30))
        found = [number async for number in taken(client, address, len(accepted) + 1)]
        await later
        assert sorted(found) == sorted([*accepted, MANY]), "what was taken back is nowhere"


@pytest.mark.parametrize("address", QUEUES)
@pytest.mark.parametrize("at", ["a", "b"])
@story
async def test_full_queues_elsewhere_give_no_credit(at: str, address: str) -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        client = await mesh.client(at)
        async with client.publisher(address) as first:
            batch = [message(number) for number in range(MANY)]
            outcomes = await first.send_batch(batch, timeout_s=1)
            states = [each.state.value for each in outcomes]
            assert set(states) == {"accepted", "released"}
            assert ROOM <= states.count("accepted") <= 2 * ROOM
        async with client.publisher(address), client.publisher(address):
            await asyncio.sleep(0.3)
            assert await credits_at(client, address) <= ROOM, "each owner may have some room left"
        async with client.consume("queue/other") as items:
            for number in range(MANY):
                await client.publish("queue/other", number, timeout_s=10)
                item = await anext(items)
                assert item.body == number, "others are not held up"
                await item.accept()


@story
async def test_who_leaves_takes_back_what_is_held() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        client = await mesh.client("a")
        accepted = await filled(client, "work/short")
        leaving = asyncio.create_task(client.publish("work/short", message(MANY)))
        await asyncio.sleep(0.2)
        leaving.cancel()
        await asyncio.wait({leaving})
        entry = mesh.containers["a"].vhosts[""].entry_of("work/short")
        await eventually(lambda: entry.held == 0, "the container has let it go")
        found = [number async for number in taken(client, "work/short", len(accepted))]
        assert sorted(found) == accepted


@story
async def test_what_a_consumer_has_had_is_in_doubt() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        client, other = await mesh.client("a"), await mesh.client("b")
        async with other.consume("anycast/x", confirms=False) as items:
            sending = asyncio.create_task(client.publish("anycast/x", 1, timeout_s=1))
            item = await anext(items)
            with pytest.raises(cogwork.InDoubt):
                await sending
            await item.accept()


def test_ids_are_asked_for_in_runs() -> None:
    assert list(ranges([])) == []
    assert list(ranges([0])) == [(0, 0)]
    assert list(ranges([1, 2, 3, 7, 9, 10])) == [(1, 3), (7, 7), (9, 10)]
