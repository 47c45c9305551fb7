"""A container that leaves for good: its clients and its items go to others."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import cogwork

from .meshes import Member, linked, meshed
from .served import COGWORK, within

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = 3000
QUEUE = "work/leaving"


def depth(member: Member) -> int:
    """Count the items of a container's shard."""
    found: int = member.served.address(QUEUE)["depth"]
    return found


def test_items_and_clients_go_to_others(tmp_path: Path) -> None:
    with meshed(tmp_path, "abc", [("a", "b"), ("b", "c"), ("c", "a")]) as members:
        linked(members.values())
        asyncio.run(_leave(members))
        process = members["b"].process
        assert process is not None
        within(30, lambda: process.poll() is not None, "b has stopped")
        assert process.returncode == 0
        assert depth(members["a"]) + depth(members["c"]) == ITEMS - 1
        other = members["c"]
        lines = other.served.run("receive", other.url, QUEUE, "--count", str(ITEMS - 1), "--json")
        bodies = [json.loads(line)["body"] for line in lines.splitlines()]
        assert bodies == list(range(1, ITEMS)), "all of them, once, in order"
        members["b"].start()  # so that the mesh can be ended like any other
        within(30, members["b"].listens, "b listens")


async def _leave(members: dict[str, Member]) -> None:
    """Hold one item at b, has b leave, and settle the item meanwhile."""
    leaving = members["b"]
    async with cogwork.connect([leaving.url, members["a"].url]) as client:
        async with client.publisher(QUEUE) as work:
            await work.send_batch(range(ITEMS))
        async with (
            cogwork.connect(leaving.url, force=True) as stays,
            stays.consume(QUEUE, credit=1) as items,
        ):
            held = await anext(items)
            command = await asyncio.create_subprocess_exec(
                *COGWORK, "leave", leaving.url, "--json", stdout=asyncio.subprocess.PIPE
            )
            async with asyncio.timeout(30):
                while await asyncio.to_thread(depth, leaving) > 1:
                    await asyncio.sleep(0.05)
            await held.accept()
        output, _ = await command.communicate()
        outcome = json.loads(output)
        assert outcome == {
            "moved": ITEMS - 1,
            "left": 0,
            "kept": 0,
            "replicas_moved": 0,
            "replicas_left": 0,
            "data_dirs": [],
            "problem": None,
        }
        assert command.returncode == 0
        await client.publish("topic/after", "b has left")  # its client is somewhere else by now
