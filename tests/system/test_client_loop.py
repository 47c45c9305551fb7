"""Clients on Cogwork's own event loop."""

from __future__ import annotations

import asyncio

import cogwork
from cogwork.testing import container

from .stream_records import CONFIGURATION, bodies, created


def test_a_client_runs_on_the_loop_of_containers() -> None:
    """What it appends it reads again, and it can be told to stop while it waits for more."""

    async def main(url: str) -> list[object]:
        async with cogwork.connect(url) as mesh:
            stream = await created(mesh, "on-the-loop")
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
