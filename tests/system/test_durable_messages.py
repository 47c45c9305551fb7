"""Queues that say nothing of how they are kept: durable where there is a data directory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from proton.utils import BlockingConnection

import cogwork
from cogwork import Message

from .faulty_disks import STALLS, faulty_disk
from .meshes import Member, meshed
from .served import within

if TYPE_CHECKING:
    from pathlib import Path

NOTIFICATIONS = "openstack.org/om/notify/anycast/kept"
TEXTS = [str(number) for number in range(50)]


def again(member: Member, *, is_killed: bool) -> None:
    """End a container, by SIGKILL or in order, and start it again."""
    if is_killed:
        member.kill()
    else:
        assert member.process is not None
        member.process.terminate()
        member.process.wait(60)
    member.start()
    within(30.0, member.listens, "the container listens")


async def publish(url: str, address: str, bodies: list[object]) -> None:
    async with cogwork.connect(url) as client, client.publisher(address) as publisher:
        for body in bodies:
            await publisher.send(body)


def texts_in(member: Member, address: str) -> list[str]:
    """Take what is in a queue."""
    found = member.served.run(
        "receive", member.url, address, "--count", str(len(TEXTS)), "--timeout", "20"
    )
    return found.splitlines()


@pytest.mark.parametrize(
    ("address", "bodies"),
    [
        ("queue/kept", TEXTS),
        ("/work/kept", TEXTS),
        (NOTIFICATIONS, [Message(text, durable=True) for text in TEXTS]),
    ],
    ids=["queue", "work", "notifications"],
)
def test_what_was_accepted_outlives_a_kill(
    tmp_path: Path, address: str, bodies: list[object]
) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ["box"], [], head=lambda _name: head) as members:
        box = members["box"]
        asyncio.run(publish(box.url, address, bodies))
        again(box, is_killed=True)
        assert texts_in(box, address) == TEXTS
        (row,) = box.served.status()["queues"]
        assert (row["durability"], row["durable-in-memory"]) == ("auto", 0)
        assert box.served.status()["container"]["durable_in_memory"] == 0


def test_what_is_not_durable_outlives_an_orderly_stop(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ["box"], [], head=lambda _name: head) as members:
        box = members["box"]
        other: list[object] = [Message(text, durable=False) for text in TEXTS]
        asyncio.run(publish(box.url, "queue/kept", other))
        again(box, is_killed=False)
        assert texts_in(box, "queue/kept") == TEXTS


def test_without_a_data_directory_it_is_told(tmp_path: Path) -> None:
    with meshed(tmp_path, ["box"], []) as members:
        box = members["box"]
        other: list[object] = [Message(text, durable=False) for text in TEXTS]
        asyncio.run(publish(box.url, "queue/a", other))
        assert box.served.status()["container"]["durable_in_memory"] == 0
        asyncio.run(publish(box.url, "queue/a", list(TEXTS)))
        asyncio.run(publish(box.url, "work/b", list(TEXTS)))
        status = box.served.status()
        counts = {row["address"]: row["durable-in-memory"] for row in status["queues"]}
        assert counts == {"queue/a": len(TEXTS), "work/b": len(TEXTS)}
        assert {row["durability"] for row in status["queues"]} == {"memory"}
        assert status["container"]["durable_in_memory"] == 2 * len(TEXTS)
        assert "100 durable messages were kept in memory" in box.served.run("status", box.url)
        within(10.0, lambda: "durable messages in memory" in box.log(), "the log says so")
        assert box.log().count("durable messages in memory") == 1
        assert "'queue/a'" in box.log()


def test_what_went_out_ahead_of_its_record_comes_again_with_a_mark(tmp_path: Path) -> None:
    """A queue that redelivers does not wait for the disk, and a kill does not make it forget."""
    stalled = tmp_path / "stalled"
    environment = faulty_disk(tmp_path, STALLS, stalled)

    def dress(member: Member) -> None:
        member.head = f'data_dir = "{tmp_path}/data"\n'
        member.environment = environment

    def take_while_the_disk_stands_still(member: Member) -> None:
        connection = BlockingConnection(member.url, timeout=30)
        receiver = connection.create_receiver("queue/kept", credit=1)
        stalled.touch()
        receiver.receive(30)  # the record of this one is what the disk stands still with
        receiver.flow(19)
        for _ in range(19):
            receiver.receive(30)
        member.kill()
        stalled.unlink()

    async def take_again(url: str) -> dict[str, int]:
        async with cogwork.connect(url) as client, client.consume("queue/kept") as items:
            taken = [await anext(items) for _ in TEXTS]
            for item in taken:
                await item.accept()
            return {str(item.body): item.delivery_count for item in taken}

    queues = '[[queue]]\naddress = "queue/kept"\nin_doubt_timeout_s = 0.5\n'
    with meshed(tmp_path, ["box"], [], queues, dress=dress) as members:
        box = members["box"]
        asyncio.run(publish(box.url, "queue/kept", list(TEXTS)))
        for _ in range(2):  # the second kill does not make it forget either
            take_while_the_disk_stands_still(box)
            box.start()
            within(30.0, box.listens, "the container listens")
        again(box, is_killed=True)
        counts = asyncio.run(take_again(box.url))
        assert counts.keys() == set(TEXTS)
        assert all(counts[text] for text in TEXTS[:20]), counts
        assert not any(counts[text] for text in TEXTS[-6:]), "nobody was given the last ones"
