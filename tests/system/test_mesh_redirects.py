"""A crowd of clients that know one of three linked containers is spread over all of them."""

from __future__ import annotations

import asyncio
import resource
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

import cogwork

from .meshes import linked, meshed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .meshes import Member

CLIENTS = 1000
DIALS_AT_ONCE = 100
SETTLE_TIMEOUT_S = 30.0

FIGURES_S = 3.0
"""Within it each container has heard how many clients the others have."""


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Let this process have a socket for each client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * CLIENTS)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def even(meshes: list[cogwork.Client], ids: set[str]) -> bool:
    """Return whether all are connected, and the containers have as many of them as each other."""
    if not all(client.is_connected for client in meshes):
        return False
    where = [client.container.container_id for client in meshes]
    counts = [where.count(each) for each in ids]
    return sum(counts) == CLIENTS and max(counts) <= min(counts) * 1.1


async def spread(first: Member, members: dict[str, Member]) -> None:
    """Have a crowd dial the first container, then lose another one."""
    turns = asyncio.Semaphore(DIALS_AT_ONCE)

    async def dial(client: cogwork.Client) -> None:
        async with turns:
            await stack.enter_async_context(client)

    async with AsyncExitStack() as stack:
        meshes = [cogwork.connect(first.url) for _ in range(CLIENTS)]
        await asyncio.gather(*map(dial, meshes))
        where = [client.container.container_id for client in meshes]
        counts = sorted(where.count(each) for each in members)
        assert sum(counts) == CLIENTS
        assert counts[-1] <= counts[0] * 1.1, counts

        await asyncio.sleep(FIGURES_S)
        members["b"].kill()
        async with asyncio.timeout(SETTLE_TIMEOUT_S):
            while not await even(meshes, {"a", "c"}):
                await asyncio.sleep(0.1)


@pytest.mark.timeout(120)
def test_a_thousand_clients_are_spread_and_spread_again(tmp_path: Path) -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    with meshed(tmp_path, "abc", edges, "redirect_margin = 10") as members:
        linked(members.values())
        asyncio.run(spread(members["a"], members))
        members["b"].start()
        linked(members.values())
