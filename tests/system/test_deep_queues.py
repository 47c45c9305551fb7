"""A queue on disk with more in it than memory may hold, under a container that is killed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import cogwork

from .meshes import Member, meshed
from .served import READY_TIMEOUT_S, SETTLE_TIMEOUT_S, done, within

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

QUEUE = "queue/deep"
ITEMS = 4_000
BODY_BYTES = 2_048
"""Eight times what the queue may have in memory."""

CONFIGURATION = f"""
[limits]
queue_memory_bytes = 1048576

[[queue]]
address = "{QUEUE}"
durability = "disk"
in_doubt_timeout_s = 1.0
"""


def run(story: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 90))


def pages_of(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "pages").glob("*/*.page"))


def body_of(number: int) -> str:
    return f"{number:08}".ljust(BODY_BYTES, ".")


async def fill(member: Member, first: int, count: int) -> None:
    async with cogwork.connect(member.url) as client, client.publisher(QUEUE) as publisher:
        await asyncio.gather(
            *(publisher.send(body_of(each)) for each in range(first, first + count))
        )


async def take(member: Member, count: int, numbers: list[int]) -> None:
    """Take items, and have each confirmed."""
    last = len(numbers) + count
    async with cogwork.connect(member.url) as client, client.consume(QUEUE) as items:
        async for item in items:
            body = str(item.body)
            assert len(body) == BODY_BYTES
            numbers.append(int(body[:8]))
            await item.accept()
            if len(numbers) == last:
                break


def row_of(member: Member) -> dict[str, object]:
    rows: list[dict[str, object]] = json.loads(done("queue", "list", member.url, "--json").stdout)
    return next(row for row in rows if row["address"] == QUEUE)


def killed(member: Member) -> None:
    member.kill()
    member.start()
    within(READY_TIMEOUT_S, member.listens, "the container listens")


def test_what_lies_on_disk_outlives_kills_and_comes_in_order(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ("box",), (), CONFIGURATION, head=lambda _name: head) as members:
        member = members["box"]
        run(fill(member, 0, ITEMS))
        within(SETTLE_TIMEOUT_S, lambda: len(pages_of(tmp_path)) > 50, "most of it is in pages")
        torn = pages_of(tmp_path)[0].with_name("0000999999.page")
        torn.write_bytes(pages_of(tmp_path)[0].read_bytes()[:1000])
        killed(member)
        assert not torn.exists(), "what no record names is of a life that ended meanwhile"
        taken: list[int] = []
        for _ in range(3):
            run(take(member, ITEMS // 4, taken))
            killed(member)
        run(fill(member, ITEMS, 100))
        run(take(member, ITEMS + 100 - len(taken), taken))
        assert sorted(taken) == list(range(ITEMS + 100)), "none is lost, none confirmed twice"
        within(SETTLE_TIMEOUT_S, lambda: not pages_of(tmp_path), "no page file is needed any more")


def test_a_damaged_page_stops_its_queue_and_loses_nothing(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ("box",), (), CONFIGURATION, head=lambda _name: head) as members:
        member = members["box"]
        run(fill(member, 0, ITEMS))
        within(SETTLE_TIMEOUT_S, lambda: len(pages_of(tmp_path)) > 50, "most of it is in pages")
        damaged = pages_of(tmp_path)[20]
        octets = damaged.read_bytes()
        damaged.write_bytes(octets[:-1] + bytes([octets[-1] ^ 1]))

        async def until_it_stops() -> None:
            async with cogwork.connect(member.url) as client, client.consume(QUEUE) as items:
                async for item in items:
                    await item.accept()

        async def story() -> None:
            task = asyncio.create_task(until_it_stops())
            await asyncio.to_thread(
                within, SETTLE_TIMEOUT_S, lambda: bool(row_of(member)["problem"]), "it says so"
            )
            task.cancel()

        run(story())
        assert str(damaged) in str(row_of(member)["problem"])
        damaged.write_bytes(octets)
        killed(member)
        left = row_of(member)["depth"]
        assert isinstance(left, int)
        assert left > 0
        found: list[int] = []
        run(take(member, left, found))
        assert sorted(found) == list(range(ITEMS - left, ITEMS))
