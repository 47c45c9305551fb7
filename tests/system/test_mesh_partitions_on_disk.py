"""Partitioned queues on disk, in three linked containers that are killed and come back."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

import cogwork

from .ledgers import row
from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator
    from pathlib import Path

    from cogwork.client.publishing.publisher import Publisher

QUEUE = "work/orders"
IDS, EDGES = "abc", [("a", "b"), ("b", "c"), ("a", "c")]
GROUPS = [f"group-{number}" for number in range(24)]
TIMEOUT_S = 90.0
QUEUES = f"""owner_timeout_s = %s
[[queue]]
address = "{QUEUE}"
durability = "disk"
ordering = "group-id"
deduplication_window_s = 600
partitions = 32
in_doubt = "redeliver"
in_doubt_timeout_s = 1.0
"""


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, TIMEOUT_S))


@pytest.fixture
def mesh_of(tmp_path: Path) -> Iterator[Callable[[float], dict[str, Member]]]:
    with contextlib.ExitStack() as stack:

        def made(owner_timeout_s: float) -> dict[str, Member]:
            members = stack.enter_context(
                meshed(
                    tmp_path,
                    IDS,
                    EDGES,
                    QUEUES % owner_timeout_s,
                    head=lambda name: f'data_dir = "{tmp_path}/{name}"\n',
                )
            )
            linked(members.values())
            return members

        yield made


async def figures(members: Iterable[Member], key: str) -> list[int]:
    """Return a figure of each container's part of the queue."""
    return [(await asyncio.to_thread(row, member.served, QUEUE))[key] for member in members]


async def insist(publisher: Publisher, group: str, number: int) -> None:
    """Send a message until it is accepted."""
    name = f"{group}/{number}"
    while True:
        try:
            await publisher.post(name, group_id=group, message_id=name)
        except (cogwork.InDoubt, cogwork.Released):
            await asyncio.sleep(0.02)
        else:
            return


async def publish(publisher: Publisher, numbers: range) -> None:
    """Send to each group in order, all groups side by side."""

    async def to(group: str) -> None:
        for number in numbers:
            await insist(publisher, group, number)

    await asyncio.gather(*map(to, GROUPS))


async def restarted(member: Member, pause_s: float) -> None:
    await asyncio.to_thread(member.kill)
    await asyncio.sleep(pause_s)
    await asyncio.to_thread(member.start)
    await asyncio.to_thread(within, READY_TIMEOUT_S, member.listens, f"{member.id} listens")


async def consume(member: Member, count: int) -> dict[str, list[int]]:
    """Take so many different items; return each group's numbers as they came."""
    seen: dict[str, list[int]] = defaultdict(list)
    async with (
        cogwork.connect(member.url) as client,
        client.consume(QUEUE, credit=50) as items,
        asyncio.timeout(60),
    ):
        while sum(map(len, seen.values())) < count:
            item = await anext(items)
            group, _, number = str(item.body).partition("/")
            await item.accept()
            seen[group].append(int(number))
    return seen


def test_order_and_deduplication_outlive_a_kill_of_each_owner(
    mesh_of: Callable[[float], dict[str, Member]],
) -> None:
    members = mesh_of(60.0)
    count = 60

    async def story() -> None:
        async with (
            cogwork.connect(members["a"].url) as near,
            near.publisher(QUEUE) as publisher,
        ):
            await publish(publisher, range(10))
            assert all(await figures(members.values(), "in")), "each container owns some"
            for victim, numbers in (("c", range(10, 30)), ("b", range(30, 50))):
                sending = asyncio.create_task(publish(publisher, numbers))
                await asyncio.sleep(0.1)
                await restarted(members[victim], pause_s=0.5)
                await sending
            await publish(publisher, range(50, count))
        total = count * len(GROUPS)
        assert sum(await figures(members.values(), "depth")) == total
        async with cogwork.connect(members["b"].url) as far, far.publisher(QUEUE) as other:
            await publish(other, range(count))
        assert sum(await figures(members.values(), "depth")) == total, "known already"
        seen = await consume(members["b"], total)
        assert set(seen) == set(GROUPS)
        assert all(numbers == list(range(count)) for numbers in seen.values())

    run(story())


def test_a_group_is_consumed_in_order_while_its_owner_is_killed(
    mesh_of: Callable[[float], dict[str, Member]],
) -> None:
    """What was taken and not confirmed comes again; nothing overtakes anything else."""
    members = mesh_of(60.0)
    count = 40

    async def story() -> None:
        async with (
            cogwork.connect(members["a"].url) as near,
            near.publisher(QUEUE) as publisher,
        ):
            await publish(publisher, range(count))
            seen: dict[str, list[int]] = defaultdict(list)

            async def work(name: str) -> None:
                async with (
                    cogwork.connect(members[name].url) as client,
                    client.consume(QUEUE, credit=10) as items,
                ):
                    async for item in items:
                        group, _, number = str(item.body).partition("/")
                        seen[group].append(int(number))
                        await asyncio.sleep(0.005)
                        item.accept_nowait()

            tasks = [asyncio.create_task(work(name)) for name in "ab"]
            await asyncio.sleep(0.3)
            await restarted(members["c"], pause_s=0.5)
            while sum(len(set(numbers)) for numbers in seen.values()) < count * len(GROUPS):
                await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for numbers in seen.values():
                firsts = list(dict.fromkeys(numbers))
                assert firsts == list(range(count))

    run(story())


def test_one_that_stays_away_is_followed_after_a_while(
    mesh_of: Callable[[float], dict[str, Member]],
) -> None:
    members = mesh_of(2.0)

    async def story() -> None:
        async with (
            cogwork.connect(members["a"].url) as near,
            near.publisher(QUEUE) as publisher,
        ):
            await publish(publisher, range(5))
            left = [members[name] for name in "ab"]
            before = sum(await figures(left, "depth"))
            assert before < 5 * len(GROUPS)
            members["c"].kill()
            began_s = asyncio.get_running_loop().time()
            await publish(publisher, range(5, 10))
            assert asyncio.get_running_loop().time() - began_s > 1.0, "c was waited for"
            assert sum(await figures(left, "depth")) == before + 5 * len(GROUPS)
            await asyncio.to_thread(members["c"].start)
            await asyncio.to_thread(linked, members.values())
            seen = await consume(members["a"], 10 * len(GROUPS))
            assert all(sorted(numbers) == list(range(10)) for numbers in seen.values())

    run(story())
