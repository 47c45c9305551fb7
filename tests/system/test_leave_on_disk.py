"""Containers with queues on disk that leave for good: what moves, and what stays on disk."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked_speaking

import cogwork

from .ledgers import row
from .meshes import Member, linked, meshed
from .served import SETTLE_TIMEOUT_S, ended, within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUEUE, DEAD = "work/kept", "queue/dead"
ITEMS = 1200
ON_DISK = f'[[queue]]\naddress = "{QUEUE}"\ndurability = "disk"\n'
IN_MEMORY = f'[[queue]]\naddress = "{QUEUE}"\ndurability = "memory"\n'


def head_of(tmp_path: Path) -> Callable[[str], str]:
    return lambda name: f'data_dir = "{tmp_path}/{name}"\n'


def depth(member: Member, address: str = QUEUE) -> int:
    return row(member.served, address)["depth"]


def fill(member: Member, tmp_path: Path, count: int = ITEMS) -> None:
    lines = tmp_path / "items"
    lines.write_text("".join(f"{number}\n" for number in range(count)))
    member.served.run("send", member.url, QUEUE, "--file", str(lines))


def bodies_at(member: Member, count: int, address: str = QUEUE) -> list[int]:
    printed = member.served.run(
        "receive", member.url, address, "--count", str(count), "--timeout", "10", "--json"
    )
    return [int(json.loads(line)["body"]) for line in printed.splitlines()]


def leave(member: Member) -> subprocess.Popen[str]:
    return forked_speaking("leave", member.url, "--json")


def outcome_of(command: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = command.communicate(timeout=60)
    found: dict[str, Any] = json.loads(output)
    return found


def come_back(member: Member, members: dict[str, Member]) -> None:
    assert member.process is not None
    process = member.process
    within(SETTLE_TIMEOUT_S, lambda: process.poll() is not None, f"{member.id} has stopped")
    member.start()
    linked(members.values())


def test_items_go_to_another_disk_and_are_durable_there(tmp_path: Path) -> None:
    with meshed(
        tmp_path, "abc", [("a", "b"), ("b", "c"), ("a", "c")], ON_DISK, head=head_of(tmp_path)
    ) as members:
        linked(members.values())
        b = members["b"]
        fill(b, tmp_path)
        outcome = outcome_of(leave(b))
        assert (outcome["moved"], outcome["left"], outcome["problem"]) == (ITEMS, 0, None)
        for name in "ac":
            members[name].kill()
            members[name].start()
        come_back(b, members)
        assert depth(b) == 0
        assert sum(depth(members[name]) for name in "ac") == ITEMS
        assert sorted(bodies_at(members["a"], ITEMS)) == list(range(ITEMS))


def test_what_nobody_has_on_disk_stays_on_disk(tmp_path: Path) -> None:
    with meshed(tmp_path, "ab", [("a", "b")], IN_MEMORY, head=head_of(tmp_path)) as members:
        b = members["b"]
        b.kill()
        b.configuration = ON_DISK
        b.start()
        linked(members.values())
        fill(b, tmp_path)
        finished = ended("leave", b.url, timeout_s=60)
        assert (finished.returncode, finished.stderr) == (1, ""), "no bar where nobody looks on"
        assert f"0 items moved, {ITEMS} stay" in finished.stdout
        assert f"{ITEMS} stay on disk, in {tmp_path}/b: start the container" in finished.stdout
        assert "container a keeps 'work/kept' in memory, and not on disk" in finished.stdout
        assert f"{ITEMS} items of 'work/kept' stay on disk" in b.log()
        come_back(b, members)
        assert depth(members["a"]) == 0
        assert bodies_at(b, ITEMS) == list(range(ITEMS)), "all of them, in order"


def test_consumers_elsewhere_get_what_they_ask_for_before_it_stays(tmp_path: Path) -> None:
    taken: list[int] = []
    wanted = 700

    async def story(members: dict[str, Member]) -> dict[str, Any]:
        async with (
            cogwork.connect(members["a"].url) as client,
            client.consume(QUEUE, credit=20) as items,
        ):
            command = await asyncio.to_thread(leave, members["b"])
            async with asyncio.timeout(30):
                while len(taken) < wanted:
                    item = await anext(items)
                    await item.accept()
                    taken.append(int(str(item.body)))
        return await asyncio.to_thread(outcome_of, command)

    with meshed(tmp_path, "ab", [("a", "b")], IN_MEMORY, head=head_of(tmp_path)) as members:
        b = members["b"]
        b.kill()
        b.configuration = ON_DISK
        b.start()
        linked(members.values())
        fill(b, tmp_path)
        outcome = asyncio.run(story(members))
        assert (outcome["moved"], outcome["data_dirs"]) == (0, [f"{tmp_path}/b"])
        left = outcome["left"]
        assert 0 < left == outcome["kept"] <= ITEMS - wanted
        come_back(b, members)
        assert depth(b) == left
        rest = bodies_at(b, left)
        assert sorted(taken + rest) == list(range(ITEMS)), "each of them once"


def test_the_only_container_keeps_its_items(tmp_path: Path) -> None:
    with meshed(tmp_path, "a", [], ON_DISK, head=head_of(tmp_path)) as members:
        fill(members["a"], tmp_path, 10)
        outcome = outcome_of(leave(members["a"]))
        assert (outcome["moved"], outcome["left"], outcome["kept"]) == (0, 10, 10)
        come_back(members["a"], members)
        assert bodies_at(members["a"], 10) == list(range(10))


def test_dead_letters_that_find_room_while_it_leaves_move_too(tmp_path: Path) -> None:
    letters = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
dead_letter = "{DEAD}"

[[queue]]
address = "{DEAD}"
durability = "disk"
maximum_length = 5
"""

    async def reject_all(url: str) -> None:
        async with cogwork.connect(url) as client, client.consume(QUEUE) as items:
            for _ in range(20):
                await (await anext(items)).reject("no")

    with meshed(tmp_path, "ab", [("a", "b")], letters, head=head_of(tmp_path)) as members:
        a, b = members["a"], members["b"]
        a.kill()
        a.configuration = letters.replace("maximum_length = 5", "")
        a.start()
        linked(members.values())
        fill(b, tmp_path, 20)
        asyncio.run(reject_all(b.url))
        within(SETTLE_TIMEOUT_S, lambda: depth(b, DEAD) == 5, "as many are there as fit")
        outcome = outcome_of(leave(b))
        assert (outcome["left"], outcome["problem"]) == (0, None)
        come_back(b, members)
        assert depth(a, DEAD) == 20
        assert sorted(bodies_at(a, 20, DEAD)) == list(range(20))


@pytest.mark.parametrize("victim", ["a", "b"])
def test_a_kill_in_the_middle_loses_nothing(tmp_path: Path, victim: str) -> None:
    """Some may be in doubt, and come again marked: at most a batch of them."""
    count = 20_000
    again = f'{ON_DISK}in_doubt = "redeliver"\nin_doubt_timeout_s = 1.0\n'
    with meshed(tmp_path, "ab", [("a", "b")], again, head=head_of(tmp_path)) as members:
        a, b = members["a"], members["b"]
        linked(members.values())
        fill(b, tmp_path, count)
        command = leave(b)
        within(SETTLE_TIMEOUT_S, lambda: depth(a) > count // 10, "some have moved")
        members[victim].kill()
        if victim == "a":
            a.start()
            outcome = outcome_of(command)
            assert outcome["left"] == outcome["kept"] <= 500
        else:
            command.communicate(timeout=60)
        come_back(b, members)

        found = depth(a) + depth(b)
        assert count <= found <= count + 500
        seen = bodies_at(a, found)
        assert set(seen) == set(range(count)), "none is lost"


def test_who_ends_while_it_leaves_has_not_left(tmp_path: Path) -> None:
    async def story(members: dict[str, Member]) -> subprocess.CompletedProcess[str]:
        b = members["b"]
        async with cogwork.connect(b.url) as client, client.consume(QUEUE, credit=1) as items:
            await anext(items)  # it waits for what becomes of this one
            command = await asyncio.to_thread(leave, b)
            await asyncio.to_thread(
                within, SETTLE_TIMEOUT_S, lambda: "leaving the mesh" in b.log(), "it is leaving"
            )
            b.kill()
        output, errors = await asyncio.to_thread(command.communicate, timeout=60)
        return subprocess.CompletedProcess(command.args, command.returncode, output, errors)

    with meshed(tmp_path, "ab", [("a", "b")], IN_MEMORY, head=head_of(tmp_path)) as members:
        linked(members.values())
        fill(members["b"], tmp_path, 10)
        finished = asyncio.run(story(members))
    assert (finished.returncode, finished.stdout) == (1, ""), finished.stderr
    assert "cogwork: the container ended before it had left: " in finished.stderr
