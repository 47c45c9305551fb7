"""Streams that are moved from container to container, while these are killed, and leave."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import cogwork

from .meshes import Member, linked, meshed
from .served import COGWORK, READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "d", "e", "f")
"""The last one has no data directory."""

EDGES = (
    *(("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"), ("e", "c"), ("e", "d")),
    *(("f", "a"), ("f", "d"), ("f", "e")),
)

MOVES = int(os.environ.get("COGWORK_STREAM_MOVES", "3"))
STORY_TIMEOUT_S = 60 + 30 * MOVES


def command(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [*COGWORK, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout or done.stderr


class Cluster:
    """Containers with directories of their own, which know each other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.members: dict[str, Member] = {}
        self.groups: dict[str, str] = {}

    def head(self, name: str) -> str:
        text = '[cluster]\nvoters = ["a", "b", "c"]\n'
        return text if name == "f" else f'data_dir = "{self.folder / name}"\n{text}'

    def url(self, name: str) -> str:
        return self.members[name].url

    def create(self, stream: str, replicas: str) -> None:
        command(
            "stream", "create", self.url("a"), stream, "--engine", "raft", "--replicas", replicas
        )

    def move(self, stream: str, replicas: str, *more: str, at: str = "f", code: int = 0) -> str:
        move = ("stream", "move", self.url(at), stream, "--replicas", replicas)
        return command(*move, *more, code=code)

    def shown(self, stream: str, at: str = "f") -> dict[str, Any]:
        row: dict[str, Any] = json.loads(command("stream", "show", self.url(at), stream, "--json"))
        return row

    def records(self, stream: str, count: int, at: str = "f") -> list[str]:
        read = ("receive", self.url(at), f"stream/{stream}", "--from", "first")
        return command(*read, "--count", str(count)).splitlines()

    def holders(self, stream: str) -> set[str]:
        """Returns who has files of a stream."""
        for file in self.folder.glob("?/streams/*/declaration.json"):
            with contextlib.suppress(FileNotFoundError):
                self.groups[json.loads(file.read_bytes())["stream"]] = file.parent.name
        group = self.groups[stream]
        return {name for name in IDS if (self.folder / name / "streams" / group).exists()}

    def restart(self, name: str) -> None:
        """Starts one that has ended."""
        self.members[name].start()
        within(READY_TIMEOUT_S, self.members[name].listens, f"{name} listens")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("moved")
    made = Cluster(folder)
    with meshed(folder, IDS, EDGES, head=made.head) as members:
        made.members = members
        linked(members.values())
        yield made


@pytest.fixture
def seed() -> int:
    seed = int(os.environ.get("COGWORK_SEED", random.randrange(1 << 30)))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    return seed


def test_a_command_moves_a_stream_and_tells_when_it_is_done(cluster: Cluster) -> None:
    cluster.create("orders", "a,b,c")
    command("send", cluster.url("f"), "stream/orders", "one", "--count", "50")
    assert cluster.move("orders", "d,b,e") == "stream/orders is held by d, b, e\n"
    assert cluster.holders("orders") == set("dbe")
    outcome = json.loads(cluster.move("orders", "b,d", "--learners", "a,c", "--json"))
    assert (outcome["voters"], outcome["learners"]) == (["b", "d"], ["a", "c"])
    assert not outcome["moving"]
    within(10, lambda: cluster.shown("orders", "e")["voters"] == ["b", "d"], "e knows of it")
    shown = command("stream", "show", cluster.url("a"), "orders")
    assert "held by b, d; followed by a, c" in shown
    assert cluster.records("orders", 50) == ["one"] * 50
    assert cluster.holders("orders") == set("abcd")
    cluster.move("orders", "b,d", "--learners", "a,c")  # where it is already


def test_who_cannot_hold_a_stream_is_named(cluster: Cluster) -> None:
    cluster.create("named", "a,b,c")
    no_data = cluster.move("named", "a,b,f", code=1)
    assert "container 'f' can hold no replica: it has no data directory" in no_data
    assert "no way to container x" in cluster.move("named", "a,b,x", code=1)
    assert "named twice" in cluster.move("named", "a,a", code=1)
    assert "at most 9 voters" in cluster.move("named", "a,b,c,d,e,f,g,h,i,j", code=1)
    assert "there is no stream 'stream/others'" in cluster.move("others", "a", code=6)
    command("stream", "create", cluster.url("a"), "alone")
    alone = cluster.move("alone", "b", at="a", code=1)
    assert "the engine orb keeps it where it is" in alone
    assert cluster.shown("named")["wanted"] == ["a", "b", "c"]


def test_one_that_is_gone_for_good_is_replaced_and_has_nothing_when_it_is_back_after_all(
    cluster: Cluster,
) -> None:
    cluster.create("gone", "a,b,c")
    command("send", cluster.url("f"), "stream/gone", "one", "--count", "50")
    cluster.members["c"].kill()
    cluster.move("gone", "a,b,d")
    cluster.members["b"].kill()
    command("send", cluster.url("f"), "stream/gone", "two")
    assert cluster.holders("gone") == set("abcd")
    cluster.restart("b")
    cluster.restart("c")
    within(READY_TIMEOUT_S, lambda: cluster.holders("gone") == set("abd"), "c removes what it has")
    assert cluster.records("gone", 51, "c") == ["one"] * 50 + ["two"]


def test_a_container_that_leaves_has_its_replicas_held_by_others(cluster: Cluster) -> None:
    cluster.create("left", "a,b,c")
    cluster.create("everywhere", "a,b,c,d,e")
    command("queue", "declare", cluster.url("a"), "work/kept", "--durability", "replicated")
    command("send", cluster.url("f"), "stream/left", "one", "--count", "50")
    command("send", cluster.url("f"), "work/kept", "item", "--count", "20")
    assert cluster.holders("queue work/kept") == set("abc")
    leaving = cluster.members["b"]
    outcome = json.loads(command("leave", leaving.url, "--json", code=1))
    assert outcome["replicas_moved"] > 1
    assert (outcome["replicas_left"], outcome["left"]) == (1, 0)
    assert "stream everywhere: every container that can be reached holds it" in outcome["problem"]
    assert leaving.process is not None
    assert leaving.process.wait(10) == 0
    row = cluster.shown("left")
    assert not row["moving"]
    assert set(row["voters"]) in ({"a", "c", "d"}, {"a", "c", "e"})
    assert cluster.holders("left") == set(row["voters"])
    assert "b" in cluster.holders("everywhere")
    assert cluster.records("left", 50) == ["one"] * 50
    assert cluster.holders("queue work/kept") in (set("acd"), set("ace"))
    items = command("receive", cluster.url("f"), "work/kept", "--count", "20")
    assert items.splitlines() == ["item"] * 20
    cluster.restart("b")


def test_leaders_newcomers_and_who_was_asked_are_killed_while_a_stream_is_moved(cluster: Cluster, seed: int) -> None:
    cluster.create("moved", "a,b,c")
    story = Story(cluster, random.Random(seed))
    asyncio.run(asyncio.wait_for(story.run(), STORY_TIMEOUT_S))
    holders = set(story.holders)
    within(20, lambda: cluster.holders("moved") == holders, "who does not hold it has nothing")


class Story:
    """Appends while the stream is moved and containers are killed; readers at all of them.

    Attributes:
        total: How many records there are; None while that is not known.
        holders: Who is to hold the stream.
    """

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.chance = chance
        self.total: int | None = None
        self.holders: list[str] = []

    async def run(self) -> None:
        moves = asyncio.ensure_future(self.move())
        appending = asyncio.ensure_future(self.append(moves))
        reading = [asyncio.ensure_future(self.read(name)) for name in IDS]
        await appending
        reading += [asyncio.ensure_future(self.read(name)) for name in IDS]
        assert self.total is not None
        expected = hashlib.sha256(b"".join(map(octets, range(self.total)))).hexdigest()
        assert {await each for each in reading} == {expected}

    async def append(self, moves: asyncio.Future[None]) -> None:
        """Appends numbers at the container without replicas, until the last move is done."""
        sent = 0
        async with cogwork.connect(self.cluster.url("f")) as mesh:
            stream = mesh.stream("moved")
            while not moves.done():
                count = self.chance.randrange(1, 20)
                await stream.append(range(sent, sent + count))
                sent += count
                await asyncio.sleep(0.01)
        await moves
        self.total = sent

    async def read(self, name: str) -> str:
        """Reads everything at one container, whatever becomes of that; returns the digest."""
        digest, count = hashlib.sha256(), 0
        async with (
            cogwork.connect(self.cluster.url(name)) as mesh,
            mesh.stream("moved").read(start="first") as reader,
        ):
            while self.total is None or count < self.total:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        record = await anext(reader)
                    digest.update(octets(record.body))
                    count += 1
        return digest.hexdigest()

    async def move(self) -> None:
        """Moves the stream, and kills one whom that concerns while it goes on."""
        cluster, chance = self.cluster, self.chance
        for number in range(MOVES):
            before, self.holders = self.holders or [*"abc"], chance.sample("abcde", 3)
            replicas, asked = ",".join(self.holders), chance.choice("abcde")
            await asyncio.to_thread(cluster.move, "moved", replicas, "--no-wait", at=asked)
            await asyncio.sleep(chance.random() * 0.5)
            leader = (await asyncio.to_thread(cluster.shown, "moved"))["leader"]
            new = [name for name in self.holders if name not in before]
            victim = (leader, chance.choice(new or self.holders), asked)[number % 3]
            if victim in cluster.members:
                cluster.members[victim].kill()
                await asyncio.sleep(chance.random())
                await asyncio.to_thread(cluster.restart, victim)
            await asyncio.to_thread(within, 30, self.is_settled, "the stream is moved")

    def is_settled(self) -> bool:
        row = self.cluster.shown("moved")
        return not row["moving"] and row["voters"] == self.holders


def octets(number: object) -> bytes:
    assert isinstance(number, int)
    return number.to_bytes(8, "big")
