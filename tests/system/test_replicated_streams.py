"""Streams on three containers in processes of their own, which are killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.client import ConnectError

from .meshes import Member, linked, meshed
from .numbered_streams import digest_of_all, digest_read
from .served import READY_TIMEOUT_S, done, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "d")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"))
"""The last one holds no replicas."""

COUNT = int(os.environ.get("COGWORK_STREAM_RECORDS", "3000"))
STORY_TIMEOUT_S = 100 + COUNT / 500
KILLS = int(os.environ.get("COGWORK_STREAM_KILLS", "2"))


def cogwork_json(*words: str) -> object:
    return json.loads(done(*words, "--json").stdout)


class Data:
    """What each container's configuration says of the cluster, with a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, name: str) -> str:
        text = '[cluster]\nprimaries = ["a", "b", "c"]\n'
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
    story = Story(members, random.Random(seed))
    asyncio.run(asyncio.wait_for(story.run(), STORY_TIMEOUT_S))


class Story:
    """Appends while leaders are killed, and readers at all containers, some of them late.

    Attributes:
        total: How many records there are; None while that is not known.
    """

    def __init__(self, members: dict[str, Member], chance: random.Random) -> None:
        self.members = members
        self.chance = chance
        self.total: int | None = None

    async def run(self) -> None:
        kills = asyncio.ensure_future(kill_leaders(self.members, self.chance))
        appending = asyncio.ensure_future(self.append(kills))
        reading = [asyncio.ensure_future(self.read(name)) for name in IDS]
        await asyncio.sleep(1.0)
        reading += [asyncio.ensure_future(self.read(name)) for name in IDS]
        await appending
        reading.append(asyncio.ensure_future(self.read("d")))
        assert self.total is not None
        assert {await each for each in reading} == {digest_of_all(self.total)}

    async def append(self, kills: asyncio.Future[None]) -> None:
        """Append numbers at the container without replicas, until the last leader is back."""
        sent = 0
        async with cogwork.connect(self.members["d"].url) as client:
            stream = client.stream("orders")
            while sent < COUNT or not kills.done():
                count = self.chance.randrange(1, 50)
                await stream.append(range(sent, sent + count))
                sent += count
        await kills
        self.total = sent

    async def read(self, name: str) -> str:
        """Read everything at one container, whatever becomes of that; return the digest."""
        while True:
            with contextlib.suppress(ConnectError):  # it is just being started anew
                return await digest_read(self.members[name].url, "orders", lambda: self.total)
            await asyncio.sleep(0.05)


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
