"""Clients and event loops: Cogwork's own, and those that a mesh is not on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.testing import container

from .stream_records import CONFIGURATION, bodies, created

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Use = Callable[[cogwork.Client], Awaitable[object]]


def test_a_client_runs_on_the_loop_of_containers() -> None:
    """What it appends it reads again, and it can be told to stop while it waits for more."""

    async def main(url: str) -> list[object]:
        async with cogwork.connect(url) as client:
            stream = await created(client, "on-the-loop")
            async with stream.read("first") as reader, stream.publisher() as publisher:
                for number in range(100):
                    publisher.post(number)
                    if number % 10 == 0:
                        await asyncio.sleep(0.001)
                await publisher.flush()
                found = await bodies(reader, 100)
                try:
                    async with asyncio.timeout(0.01):
                        await reader.take()
                except TimeoutError:
                    return found
                raise AssertionError("there was more than had been appended")

    with container(CONFIGURATION) as url, asyncio.Runner(loop_factory=cogwork.EventLoop) as runner:
        assert runner.run(main(url)) == list(range(100))


def test_a_mesh_of_another_event_loop_says_so_instead_of_waiting_for_good() -> None:
    uses: list[Use] = [
        lambda client: client.publish("topic/a", 1),
        lambda client: client.publish("topic/a", 1, timeout_s=1),
        lambda client: client.request("service/a", 1),
        lambda client: client.call("compute", "start"),
        lambda client: client.cast("compute", "start"),
        lambda client: client.stream("orders").append([1]),
        lambda client: client.subscribe("topic/a").open(),
    ]

    async def elsewhere(client: cogwork.Client, use: Use) -> None:
        async with asyncio.timeout(30):
            with pytest.raises(RuntimeError, match="opened on another event loop"):
                await use(client)

    async def main(url: str) -> None:
        async with cogwork.connect(url) as client:
            await client.publish("topic/a", 1)
            for use in uses:
                await asyncio.to_thread(asyncio.run, elsewhere(client, use))
            await client.publish("topic/a", 2)

    with container() as url:
        asyncio.run(main(url))


def test_a_mesh_is_opened_once() -> None:
    async def main(url: str) -> None:
        async with cogwork.connect(url) as client:
            with pytest.raises(RuntimeError, match=r"open already: `cogwork\.connect` makes"):
                await client.__aenter__()
            await client.publish("topic/a", 1)
        with pytest.raises(cogwork.Disconnected, match=r"closed: `cogwork\.connect` makes"):
            await client.__aenter__()
        unreachable = cogwork.connect("amqp://127.0.0.1:1")
        for _ in range(2):
            with pytest.raises(cogwork.ConnectError):
                await unreachable.__aenter__()

    with container() as url:
        asyncio.run(main(url))
