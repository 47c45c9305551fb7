"""Queues on a disk that runs full, or fails, under a real container; kills afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

import cogwork

from .faulty_disks import FAILS, faulty_disk
from .meshes import Member, meshed
from .served import READY_TIMEOUT_S, SETTLE_TIMEOUT_S, within
from .small_disks import MIB, SmallDisk, small_disk

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from cogwork.client.receiving.consumer import Consumer

QUEUE, STRICT, MEMORY = "queue/kept", "queue/strict", "queue/memory"
STREAM = "stream/records"
BODY_BYTES = 256 * 1024
DISK_BYTES = 150 * MIB
"""Two files of the log find room, and a third does not."""

QUEUES = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
in_doubt_timeout_s = 1.0

[[queue]]
address = "{STRICT}"
durability = "disk"
maximum_length_policy = "reject"

[[queue]]
address = "{MEMORY}"
durability = "memory"
"""


def run(story: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 90))


@contextlib.contextmanager
def on(disk: SmallDisk, folder: Path) -> Iterator[Member]:
    """Run a container whose data are on a disk."""
    with meshed(folder, ["box"], [], QUEUES, dress=disk.give_to) as members:
        yield members["box"]


def start(member: Member) -> None:
    member.start()
    within(READY_TIMEOUT_S, member.listens, "the container listens")


def body(number: int) -> bytes:
    return b"%09d" % number + bytes(BODY_BYTES)


def number_of(item: cogwork.Message) -> int:
    assert isinstance(item.body, bytes)
    return int(item.body[:9])


async def fill_up(url: str, address: str = QUEUE, patience_s: float = 2.0) -> set[int]:
    """Send large messages one by one until none is accepted any more; return which were."""
    accepted: set[int] = set()
    with contextlib.suppress(TimeoutError, cogwork.Rejected):
        async with cogwork.connect(url) as client, client.publisher(address) as publisher:
            while True:
                async with asyncio.timeout(patience_s):
                    await publisher.send(body(len(accepted)))
                accepted.add(len(accepted))
    return accepted


async def take(items: Consumer, count: int) -> set[int]:
    """Take items, and have each confirmed."""
    taken = set()
    for _ in range(count):
        async with asyncio.timeout(30):
            item = await anext(items)
            await item.accept()
        taken.add(number_of(item))
    return taken


async def take_all(url: str, address: str = QUEUE) -> set[int]:
    taken: set[int] = set()
    async with cogwork.connect(url) as client, client.consume(address, credit=20) as items:
        with contextlib.suppress(TimeoutError):
            while True:
                taken |= await asyncio.wait_for(take(items, 1), 3.0)
    return taken


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_BYTES) as made:
        yield made


def test_consumers_go_on_and_make_space(tmp_path: Path, disk: SmallDisk) -> None:
    with on(disk, tmp_path) as box:

        async def story() -> None:
            accepted = await fill_up(box.url)
            assert len(accepted) > 100
            assert "no space left on the disk" in box.log()
            async with cogwork.connect(box.url) as client:
                with pytest.raises(cogwork.Rejected, match="disk is full") as refusal:
                    await client.publish(STRICT, "x")
                assert refusal.value.condition == "amqp:resource-limit-exceeded"
                await client.publish(MEMORY, "queues in memory go on")
                async with client.consume(QUEUE, credit=1) as items:
                    taken = await take(items, 20)
            box.kill()
            await asyncio.to_thread(start, box)
            taken |= await take_all(box.url)
            assert taken >= accepted, "lost"
            assert len(taken - accepted) <= 1, "one was on its way when there was no room"
            async with cogwork.connect(box.url) as client, client.publisher(QUEUE) as publisher:
                async with asyncio.timeout(SETTLE_TIMEOUT_S):
                    await publisher.send(body(7))
            assert "the write-ahead log can grow again" in box.log()

        run(story())


def test_it_goes_on_when_there_is_space_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2 * DISK_BYTES) as disk, on(disk, tmp_path) as box:
        disk.fill(8 * MIB)

        async def story() -> None:
            accepted = await fill_up(box.url)
            async with cogwork.connect(box.url) as client, client.publisher(QUEUE) as publisher:
                waiting = publisher.post(body(1000))
                await asyncio.sleep(0.5)
                disk.free()
                async with asyncio.timeout(SETTLE_TIMEOUT_S):
                    await waiting
                    await publisher.send(body(1001))
            accepted |= {1000, 1001}
            box.kill()
            await asyncio.to_thread(start, box)
            taken = await take_all(box.url)
            assert taken >= accepted, "lost"
            assert len(taken - accepted) <= 1

        run(story())


async def append_all(url: str) -> int:
    """Append large records until none is accepted any more; return how many were."""
    count = 0
    with contextlib.suppress(cogwork.Released, cogwork.InDoubt):
        async with cogwork.connect(url) as client, client.publisher(STREAM) as publisher:
            while True:
                await publisher.send(body(count))
                count += 1
    return count


async def read_all(url: str, count: int) -> list[int]:
    """Read so many records of the stream."""
    async with (
        cogwork.connect(url) as client,
        client.stream(STREAM).read("first") as records,
        asyncio.timeout(30),
    ):
        return [number_of(await anext(records)) for _ in range(count)]


def test_without_any_room_nothing_moves_until_there_is_some(tmp_path: Path) -> None:
    """A stream of the same container goes on to use what is left."""
    with small_disk(tmp_path / "disk", 2 * DISK_BYTES) as disk, on(disk, tmp_path) as box:
        box.served.run("stream", "create", box.url, STREAM, "--engine", "raft")

        async def story() -> None:
            async with cogwork.connect(box.url) as client, client.publisher(QUEUE) as publisher:
                for number in range(20):
                    await publisher.send(body(number))
            disk.fill(4 * MIB)
            appended = await append_all(box.url)
            assert "the disk is full" in box.log()
            assert await read_all(box.url, appended) == list(range(appended))
            async with cogwork.connect(box.url) as client, client.consume(QUEUE, credit=1) as items:
                # It redelivers: one may go out before it is found that this cannot be written.
                ahead = []
                with contextlib.suppress(TimeoutError):
                    ahead.append(await asyncio.wait_for(anext(items), 2.0))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(items), 2.0)
                with pytest.raises(cogwork.Rejected, match="disk is full"):
                    await client.publish(STRICT, "x")
                disk.free()
                for item in ahead:
                    await item.accept()
                taken = {number_of(item) for item in ahead} | await take(items, 5)
            async with cogwork.connect(box.url) as client, client.publisher(STREAM) as publisher:
                await publisher.send(body(appended))
            box.kill()
            await asyncio.to_thread(start, box)
            assert taken | await take_all(box.url) == set(range(20))
            records = await read_all(box.url, appended + 1)
            assert records[:appended] == list(range(appended))

        run(story())


def test_a_disk_that_fails_accepts_nothing_until_a_new_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    environment = faulty_disk(tmp_path, FAILS, broken)

    def dress(member: Member) -> None:
        member.head = f'data_dir = "{tmp_path}/data"\n'
        member.environment = environment

    async def is_refused(url: str) -> bool:
        try:
            async with cogwork.connect(url) as client, asyncio.timeout(30):
                await client.publish(QUEUE, body(99))
        except cogwork.Rejected as refusal:
            return refusal.condition == "cogwork:disk-failed"
        except (cogwork.InDoubt, TimeoutError):
            return False
        raise AssertionError("accepted, and not on the disk")

    with meshed(tmp_path, ["box"], [], QUEUES, dress=dress) as members:
        box = members["box"]

        async def story() -> None:
            async with cogwork.connect(box.url) as client, client.publisher(QUEUE) as publisher:
                for number in range(10):
                    await publisher.send(body(number))
            broken.touch()
            async with asyncio.timeout(SETTLE_TIMEOUT_S):
                while not await is_refused(box.url):
                    await asyncio.sleep(0.1)
            assert "nothing is appended until the container restarts" in box.log()
            broken.unlink()
            assert await is_refused(box.url), "it is not trusted again"
            async with cogwork.connect(box.url) as client:
                await client.publish(MEMORY, "queues in memory go on")
            box.kill()
            await asyncio.to_thread(start, box)
            taken = await take_all(box.url)
            assert taken >= set(range(10))
            assert taken <= {*range(10), 99}

        run(story())
