"""Dead letters of queues on disk, whose dead-letter queue is full when the container is killed."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked

import cogwork

from .meshes import Member, meshed
from .served import SETTLE_TIMEOUT_S, within
from .stories import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.client import Consumer

QUEUE, DEAD = "work/a", "queue/dead"
ITEMS, ROOM = 40, 5
CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
dead_letter = "{DEAD}"

[[queue]]
address = "{DEAD}"
durability = "disk"
maximum_length = {ROOM}
maximum_length_policy = "%s"
"""


def row(member: Member, address: str) -> dict[str, Any]:
    rows = member.served.status()["queues"]
    return next(each for each in rows if each["address"] == address)


def restart(member: Member) -> None:
    member.kill()
    member.start()
    within(30.0, member.listens, "the container listens")


async def reject_all(url: str) -> None:
    async with cogwork.connect(url) as client:
        async with client.publisher(QUEUE) as work:
            await work.send_batch([str(number) for number in range(ITEMS)])
        async with client.consume(QUEUE) as items:
            for _ in range(ITEMS):
                item = await anext(items)
                await item.reject(f"no {item.body}")


async def take_dead_letters(url: str) -> list[cogwork.Message]:
    dead_letters: list[cogwork.Message] = []
    async with cogwork.connect(url) as client, client.consume(DEAD, credit=ROOM) as items:
        async with asyncio.timeout(30):
            while len(dead_letters) < ITEMS:
                item = await anext(items)
                dead_letters.append(item)
                await item.accept()
    return dead_letters


def full_and_killed(tmp_path: Path, policy: str, kills: int) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ["box"], [], CONFIGURATION % policy, head=lambda _name: head) as members:
        box = members["box"]
        asyncio.run(reject_all(box.url))
        for _ in range(kills):
            within(
                SETTLE_TIMEOUT_S,
                # A kill may have come before it was noted which are there: these leave once more.
                lambda: (
                    row(box, QUEUE)["leaving"] >= ITEMS - ROOM and row(box, DEAD)["depth"] == ROOM
                ),
                "as many are there as there is room for",
            )
            assert row(box, QUEUE)["depth"] == 0
            restart(box)
        dead_letters = asyncio.run(take_dead_letters(box.url))
        bodies = sorted(int(str(each.body)) for each in dead_letters)
        assert bodies == list(range(ITEMS)), "each of them once"
        for each in dead_letters:
            said = each.annotations
            assert said["x-opt-dead-letter-reason"] == "rejected"
            assert str(said["x-opt-dead-letter-error"]).endswith(f"no {each.body}")
        within(SETTLE_TIMEOUT_S, lambda: row(box, QUEUE)["leaving"] == 0, "nothing waits")
        restart(box)
        assert (row(box, QUEUE)["depth"], row(box, QUEUE)["leaving"]) == (0, 0)
        assert row(box, DEAD)["depth"] == 0


def test_dead_letters_that_wait_for_room_outlive_kills(tmp_path: Path) -> None:
    full_and_killed(tmp_path, "block", kills=2)


def test_dead_letters_that_are_refused_are_sent_again(tmp_path: Path) -> None:
    full_and_killed(tmp_path, "reject", kills=1)


def test_items_on_their_way_to_a_full_queue_outlive_kills(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    lines = tmp_path / "items"
    lines.write_text("".join(f"{number}\n" for number in range(ITEMS)))
    with meshed(tmp_path, ["box"], [], CONFIGURATION % "block", head=lambda _name: head) as members:
        box = members["box"]
        box.served.run("send", box.url, QUEUE, "--file", str(lines))

        command = forked("queue", "move", box.url, QUEUE, DEAD)
        within(SETTLE_TIMEOUT_S, lambda: row(box, DEAD)["depth"] == ROOM, "as much as fits")
        restart(box)
        command.kill()
        command.wait()
        found = row(box, QUEUE)
        assert found["depth"] + found["leaving"] + row(box, DEAD)["depth"] >= ITEMS
        bodies: list[str] = []
        while any(row(box, each)["depth"] or row(box, each)["leaving"] for each in (DEAD, QUEUE)):
            for address in (DEAD, QUEUE):
                printed = box.served.run("receive", box.url, address, "--timeout", "1", "--json")
                bodies += [json.loads(line)["body"] for line in printed.splitlines()]
        assert sorted(set(map(int, bodies))) == list(range(ITEMS))


@contextmanager
def each_others_dead(folder: Path, options: str) -> Iterator[Member]:
    """Run a container with two queues that are each other's dead-letter address."""
    queues = "".join(
        f'[[queue]]\naddress = "queue/{one}"\ndead_letter = "queue/{other}"\n{options}\n\n'
        for one, other in ("ab", "ba")
    )
    head = f'data_dir = "{folder}/data"\n'
    with meshed(folder, ["box"], [], queues, head=lambda _name: head) as members:
        yield members["box"]


@pytest.mark.parametrize("durability", ["memory", "disk"])
def test_two_full_queues_do_not_have_their_dead_for_each_other_without_end(
    tmp_path: Path, durability: str
) -> None:
    policy = (
        f'maximum_length = 2\nmaximum_length_policy = "drop-oldest"\ndurability = "{durability}"'
    )
    with each_others_dead(tmp_path, policy) as box:
        asyncio.run(overfill(box.url))
        depths = {each: row(box, f"queue/{each}")["depth"] for each in "ab"}
        assert depths == {"a": 2, "b": 2}


async def overfill(url: str) -> None:
    async with cogwork.connect(url) as client, client.publisher("queue/a") as out:
        outcomes = await out.send_batch(range(20), timeout_s=10)
        assert [outcome for outcome in outcomes if not outcome.is_accepted] == []


@pytest.mark.parametrize("policy", ["block", "reject"])
def test_queues_that_retry_by_each_other_go_round_when_both_are_full_of_dead(
    tmp_path: Path, policy: str
) -> None:
    options = (
        f'durability = "disk"\nttl_s = 0.2\nmaximum_length = 3\nmaximum_length_policy = "{policy}"'
    )
    with each_others_dead(tmp_path, options) as box:
        asyncio.run(go_round(box))
        within(SETTLE_TIMEOUT_S, lambda: is_empty(box), "nothing is left")


async def go_round(box: Member) -> None:
    """Send to two queues what dies there again and again, and take it all in the end."""
    bodies = range(ITEMS)
    async with cogwork.connect(box.url) as client, asyncio.TaskGroup() as group:
        for number, address in enumerate(("queue/a", "queue/b")):
            group.create_task(put_all(client, address, bodies[number::2]))
        await asyncio.to_thread(within, 30.0, lambda: has_turned(box), "they go round")
        taken: list[object] = []
        async with client.consume("queue/a") as a, client.consume("queue/b") as b:
            takers = [group.create_task(take(items, taken)) for items in (a, b)]
            await eventually(lambda: len(taken) >= ITEMS, "all are taken")
            for taker in takers:
                taker.cancel()
        assert sorted(map(int, map(str, taken))) == list(bodies), "each of them once"


def has_turned(box: Member) -> bool:
    """Return whether each queue has had far more dead letters than both have room for."""
    return all(row(box, address)["expired"] > ITEMS for address in ("queue/a", "queue/b"))


def is_empty(box: Member) -> bool:
    rows = [row(box, address) for address in ("queue/a", "queue/b")]
    return not any(each["depth"] or each["leaving"] for each in rows)


async def put_all(client: cogwork.Client, address: str, bodies: range) -> None:
    """Send messages until each of them is taken."""
    async with client.publisher(address) as out:
        for body in bodies:
            while True:
                try:
                    await out.send(body)
                    break
                except cogwork.Rejected:
                    await asyncio.sleep(0.05)


async def take(items: Consumer, taken: list[object]) -> None:
    async for item in items:
        await item.accept()
        taken.append(item.body)
