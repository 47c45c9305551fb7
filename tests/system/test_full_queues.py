"""Full queues: the credit that they give, what they say of themselves, how publishers leave."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

import cogwork

from .meshes import Member, meshed
from .served import SETTLE_TIMEOUT_S, within
from .stories import story

if TYPE_CHECKING:
    from pathlib import Path

ROOM = 5
CONFIGURATION = f"""
[[queue]]
address = "queue/short"
maximum_length = {ROOM}

[[queue]]
address = "queue/small"
maximum_bytes = 500000

[[queue]]
address = "queue/refusing"
maximum_length = {ROOM}
maximum_length_policy = "reject"

[[queue]]
address = "queue/dropping"
maximum_length = {ROOM}
maximum_length_policy = "drop-oldest"
"""
BOUND_S = 10.0
"""Far less than leaving a publisher takes that still waits for something."""


def row(member: Member, address: str) -> dict[str, Any]:
    rows = json.loads(member.served.run("queue", "list", member.url, "--json"))
    found: dict[str, Any] = next(each for each in rows if each["address"] == address)
    return found


async def credits_at(client: cogwork.Client, address: str) -> int:
    """Return how much credit the publishers of an address have, all together."""
    reply = await client.manage("QUERY", {"type": "link"})
    found: Any = reply.body
    rows = [dict(zip(found["attributeNames"], each, strict=True)) for each in found["results"]]
    return sum(int(row["credit"]) for row in rows if row["address"] == address)


async def has_credit(client: cogwork.Client, address: str, least: int, most: int) -> None:
    """Wait until the publishers of an address have so much credit, and keep it for a while."""
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while not least <= await credits_at(client, address) <= most:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    assert least <= await credits_at(client, address) <= most


async def fill(client: cogwork.Client, address: str, count: int, size: int = 10) -> int:
    """Send messages with little time; return how many were accepted, none being in doubt."""
    async with client.publisher(address) as out:
        outcomes = await out.send_batch([b"x" * size] * count, timeout_s=2)
    states = [each.state.value for each in outcomes]
    assert set(states) <= {"accepted", "released"}, states
    return states.count("accepted")


@pytest.mark.parametrize("address", ["queue/short", "queue/small"])
def test_what_has_no_room_is_taken_back_and_leaving_does_not_wait(
    tmp_path: Path, address: str
) -> None:
    size = 100_000 if address == "queue/small" else 10
    with meshed(tmp_path, "a", [], CONFIGURATION) as members:
        a = members["a"]

        @story
        async def told() -> None:
            async with cogwork.connect(a.url) as client:
                assert await fill(client, address, 40, size) == ROOM
                async with client.publisher(address) as late:
                    with pytest.raises(cogwork.Released):
                        await late.send(b"x" * size, timeout_s=1)
                began_s = time.monotonic()
                async with client.publisher(address) as waiting:
                    post = asyncio.ensure_future(waiting.send(b"x" * size, timeout_s=60))
                    async with client.consume(address, credit=1) as items:
                        await (await anext(items)).accept()
                        await post
                assert time.monotonic() - began_s < 2 * BOUND_S, "room is told of at once"

        told()


def test_publishers_share_what_room_there_is(tmp_path: Path) -> None:
    with meshed(tmp_path, "a", [], CONFIGURATION) as members:
        a = members["a"]

        @story
        async def told() -> None:
            async with cogwork.connect(a.url) as client:
                async with (
                    client.publisher("queue/short"),
                    client.publisher("queue/short") as other,
                ):
                    await has_credit(client, "queue/short", 1, ROOM)
                    for _ in range(ROOM):
                        await other.send("x", timeout_s=BOUND_S)
                    await has_credit(client, "queue/short", 0, 1)
                async with client.publisher("queue/short"):
                    await has_credit(client, "queue/short", 0, 0)

        told()


def test_a_full_queue_says_so(tmp_path: Path) -> None:
    with meshed(tmp_path, "a", [], CONFIGURATION) as members:
        a = members["a"]

        @story
        async def told() -> None:
            async with cogwork.connect(a.url) as client:
                await fill(client, "queue/short", 10)
                await fill(client, "queue/small", 10, 100_000)
                await fill(client, "queue/dropping", 10)
                async with client.publisher("queue/refusing") as out:
                    await out.send_batch(["x"] * 10, timeout_s=BOUND_S)

        told()
        assert row(a, "queue/short")["problem"] == "full: it has 5 of 5 items (maximum_length)"
        assert row(a, "queue/small")["problem"].startswith("full: it has ")
        assert "maximum_bytes" in row(a, "queue/small")["problem"]
        assert row(a, "queue/refusing")["problem"] == row(a, "queue/short")["problem"]
        assert row(a, "queue/dropping")["problem"] is None
        status = {each["address"]: each for each in a.served.status()["queues"]}
        assert status["queue/short"]["problem"] == row(a, "queue/short")["problem"]

        @story
        async def emptied() -> None:
            async with cogwork.connect(a.url) as client, client.consume("queue/short") as items:
                await (await anext(items)).accept()

            def has_none() -> bool:
                return row(a, "queue/short")["problem"] is None

            await asyncio.to_thread(within, SETTLE_TIMEOUT_S, has_none, "it has room again")

        emptied()
