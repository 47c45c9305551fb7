"""Streams on three containers in processes of their own, which are killed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import cogwork

from .meshes import Member, linked, meshed
from .served import COGWORK, READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "d")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"))
"""The last one holds no replicas."""

COUNT = int(os.environ.get("COGWORK_STREAM_RECORDS", "3000"))
KILLS = 3


def cogwork_json(*words: str) -> object:
    done = subprocess.run(
        [*COGWORK, *words, "--json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Data:
    """What each container's configuration says of the cluster, with a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, name: str) -> str:
        text = '[cluster]\nvoters = ["a", "b", "c"]\n'
        return text if name == "d" else f'data_dir = "{self.folder / name}"\n{text}'


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    with meshed(tmp_path, IDS, EDGES, head=Data(tmp_path).of) as made:
        linked(made.values())
        yield made


@pytest.fixture
def seed() -> int:
    seed = int(os.environ.get("COGWORK_SEED", random.randrange(1 << 30)))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    return seed


def test_the_leader_is_killed_and_nobody_notices(members: dict[str, Member], seed: int) -> None:
    members["a"].served.run("stream", "create", members["a"].url, "orders", "--engine", "raft")
    digests = asyncio.run(asyncio.wait_for(story(members, random.Random(seed)), 100))
    assert len(set(digests)) == 1


async def story(members: dict[str, Member], chance: random.Random) -> list[tuple[int, ...]]:
    async with cogwork.connect(members["d"].url) as mesh:
        stream = mesh.stream("orders")
        readers = [asyncio.ensure_future(read(members[name].url, COUNT)) for name in "dd"]
        kills = asyncio.ensure_future(kill_leaders(members, chance))
        sent = 0
        while sent < COUNT:
            count = min(COUNT - sent, chance.randrange(1, 50))
            await stream.append(list(range(sent, sent + count)))
            sent += count
        await kills
    found = [await reader for reader in readers]
    late = await read(members["d"].url, COUNT)
    assert list(late) == list(range(COUNT))
    return [*found, late]


async def read(url: str, count: int) -> tuple[int, ...]:
    bodies: list[int] = []
    async with cogwork.connect(url) as mesh:
        async for message in mesh.stream("orders").read(start="first"):
            bodies.append(message.body)  # type: ignore[arg-type]
            if len(bodies) == count:
                break
    return tuple(bodies)


async def kill_leaders(members: dict[str, Member], chance: random.Random) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(0.3 + chance.random())
        shown = await asyncio.to_thread(cogwork_json, "stream", "show", members["d"].url, "orders")
        leader = shown.get("leader") if isinstance(shown, dict) else None
        if leader not in members:
            continue
        member = members[str(leader)]
        if chance.random() < 0.3:
            member.signal(signal.SIGSTOP)
            await asyncio.sleep(2.0)
            member.signal(signal.SIGCONT)
        else:
            member.kill()
            await asyncio.sleep(0.5)
            member.start()
    for member in members.values():
        await asyncio.to_thread(within, READY_TIMEOUT_S, member.listens, f"{member.id} listens")
