"""The containers of a cluster are restarted one after another, and nobody is left in doubt."""

from __future__ import annotations

import asyncio
import itertools
import signal
from typing import TYPE_CHECKING, Any

import cogwork

from .meshes import Member, meshed
from .served import within
from .stories import QUICKLY, eventually, story

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a", "b", "c")
CLUSTER = """
[cluster]
voters = ["a", "b", "c"]

[[stream]]
address = "stream/orders"
engine = "raft"

[[queue]]
address = "queue/jobs"
durability = "replicated"
"""


class Flow:
    """What is sent to an address, one message after another, and what comes of it.

    Attributes:
        sent: How many were accepted.
        got: The numbers that came, in order.
        failures: What publishers were told but that all is well.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.got: list[Any] = []
        self.failures: list[str] = []

    async def send(self, urls: list[str], address: str) -> None:
        """Sends numbers until it is cancelled."""
        async with (
            cogwork.connect(urls, retry=QUICKLY) as mesh,
            mesh.publisher(address) as publisher,
        ):
            for number in itertools.count():
                try:
                    await publisher.send(number)
                except cogwork.CogworkError as error:
                    self.failures.append(repr(error))
                self.sent = number + 1

    async def read(self, urls: list[str], stream: str) -> None:
        """Reads a stream until it is cancelled."""
        async with cogwork.connect(urls, retry=QUICKLY) as mesh:
            async for message in mesh.stream(stream).read("first"):
                self.got.append(message.body)

    async def work(self, urls: list[str], queue: str) -> None:
        """Takes items until it is cancelled."""
        async with cogwork.connect(urls, retry=QUICKLY) as mesh, mesh.consume(queue) as items:
            async for item in items:
                await item.accept()
                self.got.append(item.body)

    def has_all(self) -> bool:
        """Tells whether all has come that was accepted."""
        return len(self.got) >= self.sent


async def restarted(member: Member) -> None:
    """Stops a container in order, and starts it again."""
    assert member.process is not None
    member.signal(signal.SIGTERM)
    assert await asyncio.to_thread(member.process.wait, 30) == 0
    member.start()
    await asyncio.to_thread(within, 30.0, member.listens, "the container listens")


@story
async def test_a_rolling_restart_loses_nothing_and_leaves_nothing_in_doubt(
    tmp_path: Path,
) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path}/{name}"\n'

    links = ["ab", "bc", "ca"]
    orders, jobs = Flow(), Flow()
    with meshed(tmp_path, NAMES, links, configuration=CLUSTER, head=head) as members:
        urls = [members[name].url for name in NAMES]
        tasks = [
            asyncio.create_task(orders.send(urls, "stream/orders")),
            asyncio.create_task(orders.read(urls, "orders")),
            asyncio.create_task(jobs.send(urls, "queue/jobs")),
            asyncio.create_task(jobs.work(urls, "queue/jobs")),
        ]
        for name in NAMES:
            before = orders.sent, jobs.sent

            def flows(before: tuple[int, int] = before) -> bool:
                return orders.sent > before[0] + 50 and jobs.sent > before[1] + 50

            await eventually(flows, f"all goes on before {name} stops")
            await restarted(members[name])
        for sender in (tasks[0], tasks[2]):
            sender.cancel()
        await eventually(lambda: orders.has_all() and jobs.has_all(), "all has come")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert (orders.failures, jobs.failures) == ([], [])
    assert orders.got[: orders.sent] == list(range(orders.sent))
    assert sorted(jobs.got[: jobs.sent]) == list(range(jobs.sent))
