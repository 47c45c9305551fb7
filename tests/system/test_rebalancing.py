"""`cogwork cluster rebalance`: a crowd at one of three containers is shared out."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

import cogwork

from .meshes import linked, meshed
from .served import OPEN, done

if TYPE_CHECKING:
    from pathlib import Path

    from .meshes import Member

CLIENTS = 60
CONSUMERS = 6
QUEUE = "queue/numbers"
SETTLE_TIMEOUT_S = 30.0


class Crowd:
    """Clients that publish numbers to a queue, and some that take them."""

    def __init__(self, url: str) -> None:
        self.clients = [cogwork.connect(url) for _ in range(CLIENTS)]
        self.stays = cogwork.connect(url, force=True)
        self.accepted: list[str] = []
        self.taken: list[str] = []
        self.is_over = asyncio.Event()

    async def publish(self, name: int, client: cogwork.Client) -> None:
        number = 0
        while not self.is_over.is_set():
            body = f"{name}.{number}"
            await client.publish(QUEUE, body)
            self.accepted.append(body)
            number += 1
            await asyncio.sleep(0.05)

    async def take(self, client: cogwork.Client) -> None:
        async with client.consume(QUEUE) as consumer:
            async for item in consumer:
                self.taken.append(str(item.body))
                await item.accept()

    def counts(self, ids: str) -> list[int]:
        where = [client.container.container_id for client in self.clients if client.is_connected]
        return [where.count(each) for each in ids]


async def rebalance(members: dict[str, Member]) -> None:
    crowd = Crowd(members["a"].url)
    async with AsyncExitStack() as stack:
        for client in (*crowd.clients, crowd.stays):
            await stack.enter_async_context(client)
        publishers = [
            asyncio.ensure_future(crowd.publish(*each)) for each in enumerate(crowd.clients)
        ]
        consumers = [
            asyncio.ensure_future(crowd.take(client)) for client in crowd.clients[:CONSUMERS]
        ]
        await asyncio.sleep(2.0)  # each has heard how many clients the others have
        assert crowd.counts("abc") == [CLIENTS, 0, 0]
        told = await asyncio.to_thread(run, members["a"], "--dry-run")
        assert told["moved"] == 0
        assert 39 <= told["surplus"] <= 42, "two thirds of all, this test's own among them"
        assert crowd.counts("abc") == [CLIENTS, 0, 0]
        told = await asyncio.to_thread(run, members["a"], "--rate", "10")
        assert told["surplus"] == 0
        async with asyncio.timeout(SETTLE_TIMEOUT_S):
            while sum(crowd.counts("abc")) < CLIENTS:
                await asyncio.sleep(0.1)
        counts = crowd.counts("abc")
        assert max(counts) <= CLIENTS / 3 * 1.1, counts
        assert min(counts) >= CLIENTS / 3 * 0.9, counts
        assert crowd.stays.container.container_id == "a"
        crowd.is_over.set()
        await asyncio.gather(*publishers)
        async with asyncio.timeout(SETTLE_TIMEOUT_S):
            while len(set(crowd.taken)) < len(crowd.accepted):
                await asyncio.sleep(0.1)
        assert sorted(set(crowd.taken)) == sorted(crowd.accepted)
        for each in consumers:
            each.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)


def run(member: Member, *words: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(
        done("cluster", "rebalance", member.url, *words, "--json").stdout
    )
    return found


@pytest.mark.timeout(120)
def test_a_crowd_is_shared_out_and_loses_nothing(tmp_path: Path) -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    with meshed(tmp_path, "abc", edges, OPEN) as members:
        linked(members.values())
        asyncio.run(rebalance(members))
