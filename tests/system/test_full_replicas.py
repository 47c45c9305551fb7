"""A stream on three replicas, of which one runs out of disk, or all; kills afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import pytest

import cogwork

from .meshes import Member, linked, meshed
from .served import within
from .small_disks import MIB, small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .small_disks import SmallDisk

IDS, EDGES = "abc", [("a", "b"), ("b", "c"), ("a", "c")]
VOTERS = '[cluster]\nprimaries = ["a", "b", "c"]\n'
STREAM = "stream/records"
BODY_BYTES = 256 * 1024
DISK_BYTES = 520 * MIB
"""The records, files of the log that are kept for one reason or another, and one made ready."""
CATCH_UP_S = 30.0


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[dict[str, SmallDisk]]:
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(small_disk(tmp_path / f"disk-{name}", DISK_BYTES))
            for name in IDS
        }


@pytest.fixture
def members(tmp_path: Path, disks: dict[str, SmallDisk]) -> Iterator[dict[str, Member]]:
    with meshed(
        tmp_path,
        IDS,
        EDGES,
        head=lambda _name: VOTERS,
        dress=lambda member: disks[member.id].give_to(member),
    ) as made:
        linked(made.values())
        a = made["a"]
        a.served.run("stream", "create", a.url, STREAM, "--engine", "raft")
        yield made


def body(number: int) -> bytes:
    return b"%09d" % number + bytes(BODY_BYTES)


async def append(url: str, numbers: range) -> int:
    """Append records until one is not accepted; return how many were."""
    count = 0
    with contextlib.suppress(cogwork.Released, cogwork.InDoubt):
        async with cogwork.connect(url) as client, client.publisher(STREAM) as publisher:
            for number in numbers:
                await publisher.send(body(number))
                count += 1
    return count


async def read(url: str, count: int) -> list[int]:
    """Read so many records from the first one on."""
    found = []
    async with (
        cogwork.connect(url) as client,
        client.stream(STREAM).read("first") as records,
        asyncio.timeout(30),
    ):
        for _ in range(count):
            record = await anext(records)
            assert isinstance(record.body, bytes)
            found.append(int(record.body[:9]))
    return found


def next_at(member: Member) -> int:
    shown = json.loads(member.served.run("stream", "show", member.url, STREAM, "--json"))
    found: int = shown["next"]
    return found


def leader_of(member: Member) -> str | None:
    shown = json.loads(member.served.run("stream", "show", member.url, STREAM, "--json"))
    found: str | None = shown["leader"]
    return found


def kill_all(members: dict[str, Member]) -> None:
    for member in members.values():
        member.kill()
    for member in members.values():
        member.start()
    linked(members.values())


def test_one_full_disk_is_not_noticed(
    members: dict[str, Member], disks: dict[str, SmallDisk]
) -> None:
    """Neither by publishers nor by readers, also where it is the leader's."""
    a = members["a"]
    assert asyncio.run(append(a.url, range(5))) == 5
    within(CATCH_UP_S, lambda: leader_of(a) is not None, "somebody leads")
    full = leader_of(a)
    assert full is not None
    others = [member for name, member in members.items() if name != full]
    disks[full].fill(4 * MIB)
    count = 600
    assert asyncio.run(append(others[0].url, range(5, count))) == count - 5
    within(CATCH_UP_S, lambda: "the disk is full" in members[full].log(), "it has said so")
    within(CATCH_UP_S, lambda: leader_of(others[0]) not in {None, full}, "another one leads")
    for member in members.values():
        assert asyncio.run(read(member.url, count)) == list(range(count))
    disks[full].free()
    assert asyncio.run(append(members[full].url, range(count, count + 5))) == 5
    kill_all(members)
    others[0].kill()  # so that the one that was full counts
    within(CATCH_UP_S, lambda: next_at(members[full]) == count + 5, "it has caught up")
    assert asyncio.run(read(members[full].url, count + 5)) == list(range(count + 5))
    others[0].start()
    linked(members.values())


def test_where_all_are_full_nothing_is_accepted_until_a_majority_is_not(
    members: dict[str, Member], disks: dict[str, SmallDisk]
) -> None:
    a, b, c = members.values()
    assert asyncio.run(append(a.url, range(5))) == 5
    for disk in disks.values():
        disk.fill(4 * MIB)
    accepted = 5 + asyncio.run(append(a.url, range(5, 2_000)))
    assert accepted < 2_000
    for member in members.values():
        assert asyncio.run(read(member.url, accepted)) == list(range(accepted))
    assert asyncio.run(append(b.url, range(1))) == 0
    for name in "ab":
        disks[name].free()
    more = range(10_000, 10_005)
    assert asyncio.run(append(c.url, more)) == len(more)
    disks["c"].free()
    kill_all(members)

    async def whole(url: str) -> list[int]:
        found: list[int] = []
        async with cogwork.connect(url) as client, client.stream(STREAM).read("first") as records:
            async for record in records:
                assert isinstance(record.body, bytes)
                found.append(int(record.body[:9]))
                if found[-1] == more[-1]:
                    return found
        raise AssertionError("it goes on for ever")

    for member in members.values():
        found = asyncio.run(asyncio.wait_for(whole(member.url), 60))
        assert found[:accepted] == list(range(accepted)), "in order, none missing, none twice"
        assert found[-len(more) :] == list(more)
        doubtful = found[accepted : -len(more)]
        assert set(doubtful) <= {accepted, 0}, "what was in doubt, once"
        assert len(doubtful) <= 2
