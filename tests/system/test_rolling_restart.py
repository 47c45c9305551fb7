"""Containers are stopped in order and started again, and nobody is left in doubt."""

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
primaries = ["a", "b", "c"]

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
        failures: What the publisher was told but that all is well, by number.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.got: list[Any] = []
        self.failures: dict[int, str] = {}

    async def send(self, urls: list[str], address: str) -> None:
        """Send numbers until it is cancelled."""
        async with (
            cogwork.connect(urls, retry=QUICKLY) as client,
            client.publisher(address) as publisher,
        ):
            for number in itertools.count():
                try:
                    await publisher.send(number)
                except cogwork.CogworkError as error:
                    self.failures[number] = repr(error)
                self.sent = number + 1

    async def read(self, urls: list[str], stream: str) -> None:
        """Read a stream until it is cancelled."""
        async with cogwork.connect(urls, retry=QUICKLY) as client:
            async for message in client.stream(stream).read("first"):
                self.got.append(message.body)

    async def work(self, urls: list[str], queue: str) -> None:
        """Take items until it is cancelled."""
        async with cogwork.connect(urls, retry=QUICKLY) as client, client.consume(queue) as items:
            async for item in items:
                await item.accept()
                self.got.append(item.body)

    def has_all(self) -> bool:
        """Return whether all has come that was accepted."""
        return set(range(self.sent)) - self.failures.keys() <= set(self.got)


async def restarted(member: Member) -> None:
    """Stop a container in order, and start it again."""
    assert member.process is not None
    member.signal(signal.SIGTERM)
    assert await asyncio.to_thread(member.process.wait, 30) == 0
    member.start()
    await asyncio.to_thread(within, 30.0, member.listens, "the container listens")


@story
async def test_a_rolling_restart_loses_nothing_and_leaves_nothing_in_doubt(tmp_path: Path) -> None:

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
    assert orders.failures == {}
    assert orders.got[: orders.sent] == list(range(orders.sent))
    assert jobs.failures == {}
    assert len(jobs.got) == len(set(jobs.got))


@story
async def test_who_answers_what_was_given_before_the_end_is_heard(tmp_path: Path) -> None:
    """A reply, and what becomes of an item: both are sent once the container is stopping."""
    with meshed(tmp_path, "a", ()) as members:
        url = members["a"].url
        async with cogwork.connect(url) as client, cogwork.connect(url) as other:
            is_asked, is_stopping = asyncio.Event(), asyncio.Event()

            async def answer(message: cogwork.Message) -> object:
                if message.body == "y":
                    is_asked.set()
                    await is_stopping.wait()
                return message.body

            async with (
                client.serve("service/late", answer),
                client.consume("queue/raw") as items,
                other.consume("queue/made") as made,
            ):
                await other.publish("queue/raw", "x")
                # What is sent at the end goes the way of these.
                assert (await other.request("service/late", "before")).body == "before"
                await client.publish("queue/made", "before")
                await (await anext(made)).accept()
                item = await anext(items)
                asked = asyncio.create_task(other.request("service/late", "y"))
                await is_asked.wait()
                members["a"].signal(signal.SIGTERM)
                await eventually(lambda: not members["a"].listens(), "the container is stopping")
                await asyncio.sleep(0.3)
                is_stopping.set()
                assert (await asked).body == "y"
                await client.publish("queue/made", "z")
                product = await anext(made)
                await asyncio.gather(item.accept(), product.accept())
                assert product.body == "z"
        assert members["a"].process is not None
        assert await asyncio.to_thread(members["a"].process.wait, 30) == 0
