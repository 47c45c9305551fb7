"""Consumers that leave in order, foreign ones and our own, with items of any container."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from proton import Message
from proton.utils import BlockingConnection

import cogwork

from .linked import linked
from .meshes import Member, meshed
from .served import within
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proton.utils import BlockingReceiver

QUEUES = """
[[queue]]
address = "work/a"
dead_letter = "queue/dead"
"""
CLUSTER = """
[cluster]
primaries = ["a", "b", "c"]

[[queue]]
address = "work/disk"
durability = "disk"
dead_letter = "queue/dead"

[[queue]]
address = "work/replicated"
durability = "replicated"
dead_letter = "queue/dead"
"""
COUNT, CREDIT = 10, 5
SOON_S = 15.0
"""Much less than an item stays in doubt, and enough for a machine that is busy."""


def close_link(connection: BlockingConnection, receiver: BlockingReceiver) -> None:
    receiver.close()


def end_session(connection: BlockingConnection, receiver: BlockingReceiver) -> None:
    receiver.link.session.close()
    connection.wait(lambda: receiver.link.session.state & receiver.link.REMOTE_CLOSED)


def close_connection(connection: BlockingConnection, receiver: BlockingReceiver) -> None:
    connection.close()


def detach_and_end(connection: BlockingConnection, receiver: BlockingReceiver) -> None:
    receiver.link.detach()
    end_session(connection, receiver)


WAYS = (close_link, end_session, close_connection, detach_and_end)


def leave_with(
    url: str,
    address: str,
    leave: Callable[[BlockingConnection, BlockingReceiver], None],
    send_url: str = "",
) -> None:
    """Send items, and have a proton consumer take some, accept the first, and leave."""
    sending = BlockingConnection(send_url or url, timeout=30, allowed_mechs="ANONYMOUS")
    sender = sending.create_sender(address)
    for number in range(COUNT):
        sender.send(Message(body=number, durable=True))
    connection = BlockingConnection(url, timeout=30, allowed_mechs="ANONYMOUS")
    receiver = connection.create_receiver(address, credit=CREDIT)
    assert receiver.receive().body == 0
    fetcher = receiver.fetcher
    assert fetcher is not None
    connection.wait(lambda: len(fetcher.incoming) == CREDIT - 1)
    receiver.accept()
    leave(connection, receiver)
    sending.close()
    if leave is not close_connection:
        connection.close()


async def taken(url: str, address: str) -> list[tuple[object, int, bool]]:
    """Take what is there: each body, how often it failed, and whether nobody had it before."""
    found: list[tuple[object, int, bool]] = []
    async with (
        cogwork.connect(url) as mesh,
        mesh.consume(address, credit=COUNT) as items,
        asyncio.timeout(SOON_S),
    ):
        while len(found) < COUNT - 1:
            for item in await items.take():
                found.append((item.body, item.delivery_count, item.first_acquirer))
                await item.accept()
    return found


def expected(found: list[tuple[object, int, bool]]) -> bool:
    """Return whether all that was not accepted has come in order, and uncounted."""
    bodies = [(number, 0) for number in range(1, COUNT)]
    is_again = [number < CREDIT for number in range(1, COUNT)]
    return [each[:2] for each in found] == bodies and all(
        not (again and first) for again, (_, _, first) in zip(is_again, found, strict=True)
    )


@pytest.mark.parametrize("leave", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("address", ["work/a", "queue/a"])
@pytest.mark.parametrize("where", ["a", "b"])
def test_what_a_foreign_consumer_has_goes_back_at_once(
    leave: Callable[[BlockingConnection, BlockingReceiver], None], address: str, where: str
) -> None:
    @story
    async def told() -> None:
        async with linked("a-b", configuration=QUEUES) as mesh:
            home = f"amqp://{mesh.address('a')}"
            await asyncio.to_thread(
                leave_with, f"amqp://{mesh.address(where)}", address, leave, home
            )
            assert expected(await taken(home, address))
            node = mesh.containers["a"].vhosts[""].nodes.get(address)
            assert node is not None
            status = node.status()
            assert (status["doubted"], status["in-doubt"]) == (0, 0)

    told()


@pytest.mark.parametrize("closes", ["consumer", "mesh"])
@pytest.mark.parametrize("address", ["work/a", "queue/a"])
@pytest.mark.parametrize("where", ["a", "b"])
def test_what_an_application_was_handed_is_abandoned(closes: str, address: str, where: str) -> None:
    @story
    async def told() -> None:
        async with linked("a-b", configuration=QUEUES) as mesh:
            home = await mesh.client("a")
            for number in range(4):
                await home.publish(address, number)
            async with cogwork.connect(f"amqp://{mesh.address(where)}") as other:
                if closes == "consumer":
                    async with other.consume(address, credit=4) as items:
                        assert [(await items.take(1))[0].body for _ in range(2)] == [0, 1]
                else:
                    items = other.consume(address, credit=4)
                    await items.open()
                    assert [(await items.take(1))[0].body for _ in range(2)] == [0, 1]
            node = mesh.containers["a"].vhosts[""].nodes.get(address)
            assert node is not None
            await eventually(lambda: node.status()["abandoned"] == 2, "two are abandoned", SOON_S)
            left = [0, 1, 2, 3] if address == "queue/a" else [2, 3]
            async with home.consume(address, credit=4) as items, asyncio.timeout(SOON_S):
                found: list[tuple[object, int]] = []
                while len(found) < len(left):
                    for item in await items.take():
                        found.append((item.body, item.delivery_count))
                        await item.accept()
            assert found == [(body, 1 if body < 2 else 0) for body in left]
            if address == "work/a":
                async with home.consume("queue/dead") as dead, asyncio.timeout(SOON_S):
                    for body in (0, 1):
                        (letter,) = await dead.take(1)
                        assert letter.body == body
                        annotations = letter.annotations or {}
                        assert annotations["x-opt-dead-letter-reason"] == "abandoned"
                        await letter.accept()

    told()


@story
async def test_a_client_that_goes_on_by_another_connection_keeps_what_it_has() -> None:
    async with linked("a-b", configuration=QUEUES) as mesh:
        client = await mesh.client("b")
        async with client.consume("work/a", credit=3) as items:
            for number in range(3):
                await client.publish("work/a", number)
            (held,) = await items.take(1)
            await client.publish("queue/other", "behind the mark")
            assert client._handler is not None
            await client._handler.close(5.0, comes_back=True)
            await eventually(lambda: client.connections == 2, "it is connected again")
            await held.accept()
            for body in (1, 2):
                (item,) = await items.take(1)
                assert item.body == body
                await item.accept()
        node = mesh.containers["b"].vhosts[""].nodes.get("work/a")
        assert node is not None
        assert node.status()["abandoned"] == 0
        assert node.status()["accepted"] == 3


def is_led(member: Member) -> bool:
    """Return whether the replicated queue has an owner."""
    rows = {row["address"]: row for row in member.served.status()["queues"]}
    return bool(rows.get("work/replicated", {}).get("owner"))


@pytest.mark.parametrize("address", ["work/disk", "work/replicated"])
def test_queues_on_disks_give_back_as_well(tmp_path: Path, address: str) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path}/{name}"\n'

    @story
    async def told() -> None:
        links = ["ab", "bc", "ca"]
        with meshed(tmp_path, "abc", links, configuration=CLUSTER, head=head) as members:
            is_ready = partial(is_led, members["a"])
            await asyncio.to_thread(within, 60.0, is_ready, "the replicated queue has an owner")
            for leave in WAYS:
                for where in ("a", "b"):
                    there = members[where].url
                    await asyncio.to_thread(leave_with, there, address, leave, members["a"].url)
                    assert expected(await taken(members["a"].url, address)), (leave, where)

    told()
