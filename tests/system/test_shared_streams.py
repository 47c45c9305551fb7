"""Streams of a cluster that are not on replicas: in one container's memory, or on a server."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked

import cogwork
from cogwork.client import LinkDetached

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from cogwork.bench.servers.redis import RedisServer

IDS = ("a", "b", "c", "d")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
VOTERS = '[cluster]\nprimaries = ["a", "b", "c"]\n'
STREAM = "stream/orders"


def head_of(tmp_path: Path, name: str) -> str:
    """The last one holds no replicas."""
    return VOTERS if name == "d" else f'data_dir = "{tmp_path / "data" / name}"\n{VOTERS}'


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    with meshed(tmp_path, IDS, EDGES, head=lambda name: head_of(tmp_path, name)) as made:
        linked(made.values())
        yield made


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))


def shown(member: Member, name: str = "orders") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done("stream", "show", member.url, name, "--json").stdout)
    return found


def has_begun_anew(member: Member) -> None:
    within(
        READY_TIMEOUT_S, lambda: shown(member)["next"] == 0, f"{member.id} knows of the new life"
    )


def knows_all(member: Member) -> None:
    """Wait until one knows of 64 records, and how large they are."""
    within(READY_TIMEOUT_S, lambda: shown(member)["next"] == 64, "all know it")
    within(READY_TIMEOUT_S, lambda: shown(member)["size_bytes"] > 0, "its size")


def has_streams(member: Member, streams: list[str]) -> None:
    """Wait until one has these streams."""
    what = f"{member.id} has {streams}"
    within(READY_TIMEOUT_S, lambda: addresses(member) == streams, what)


def addresses(member: Member) -> list[str]:
    rows = json.loads(done("stream", "list", member.url, "--json").stdout)
    return sorted(row["address"] for row in rows)


def all_have(members: dict[str, Member], streams: list[str]) -> None:
    for member in members.values():
        has_streams(member, streams)


async def append(member: Member, bodies: range, name: str = "orders") -> None:
    async with cogwork.connect(member.url) as client, client.stream(name) as stream:
        await stream.append(list(bodies))


async def read(member: Member, count: int, name: str = "orders") -> list[Any]:
    async with (
        cogwork.connect(member.url) as client,
        client.stream(name).read("first") as records,
        asyncio.timeout(30),
    ):
        return [(await anext(records)).body for _ in range(count)]


# -- in memory


def test_a_stream_in_one_containers_memory_is_used_from_all(members: dict[str, Member]) -> None:
    a, b, c, d = members.values()
    created = done("stream", "create", b.url, "orders", "--capture", "topic/x.#")
    assert "in the memory of container b and are lost when it stops; the declaration stays" in (
        created.stderr
    )
    all_have(members, [STREAM])
    assert "was there" in done("stream", "create", d.url, "orders", "--capture", "topic/x.#").stdout

    async def story() -> None:
        for number, member in enumerate((d, b, a, c)):
            await append(member, range(10 * number, 10 * number + 10))
        for member in (a, b, c, d):
            assert await read(member, 40) == list(range(40))
        async with (
            cogwork.connect(a.url) as near,
            cogwork.connect(c.url) as far,
            near.stream("orders").read("next") as live,
        ):
            for number in range(40, 60):
                await far.publish(STREAM, number)  # any client, with or without a count
            assert [(await anext(live)).body for _ in range(20)] == list(range(40, 60))
        for number, member in enumerate((a, b, c, d)):
            async with cogwork.connect(member.url) as client:
                await client.publish("topic/x.y", 60 + number)
        assert sorted(await read(d, 64))[60:] == [60, 61, 62, 63], "captured once"
        async with cogwork.connect(d.url) as client, client.stream("orders") as stream:
            await stream.save_snapshot(b"so far", 50)
        async with cogwork.connect(a.url) as client, client.stream("orders") as stream:
            kept = await stream.load_snapshot()
            assert kept is not None
            assert (kept.data, kept.offset) == (b"so far", 50)

    run(story())
    for member in (a, b, c, d):
        row = shown(member)
        assert (row["durability"], row["leader"], row["is_shared"]) == ("memory", "b", True)
        knows_all(member)
    assert "in the memory of container b" in done("stream", "show", c.url, "orders").stdout
    done("stream", "trim", d.url, "orders", "--before", "10")
    within(READY_TIMEOUT_S, lambda: shown(a)["first"] == 10, "it is trimmed")
    done("stream", "delete", c.url, "orders")
    all_have(members, [])
    done("stream", "create", b.url, "orders")
    assert shown(b)["next"] == 0, "nothing is left of it"


def test_a_home_that_was_killed_begins_the_stream_anew(members: dict[str, Member]) -> None:
    a, b, c, _ = members.values()
    done("stream", "create", b.url, "orders")
    all_have(members, [STREAM])

    async def story() -> None:
        await append(a, range(10))
        async with (
            cogwork.connect(c.url) as client,
            client.stream("orders").read("first") as reader,
        ):
            for _ in range(10):
                await anext(reader)
            await asyncio.to_thread(b.kill)
            await asyncio.to_thread(b.start)
            with pytest.raises(LinkDetached, match="begins anew"):
                await asyncio.wait_for(anext(reader), 20)
        await asyncio.to_thread(linked, members.values())
        for member in (a, b, c):  # who has not heard of the new life ends links when it does
            await asyncio.to_thread(has_begun_anew, member)
        await append(a, range(100, 105))
        for member in (a, b, c):
            assert await read(member, 5) == list(range(100, 105))

    run(story())
    all_have(members, [STREAM])
    assert shown(b)["next"] == 5


def test_a_container_alone_keeps_its_declarations_where_it_has_a_disk(tmp_path: Path) -> None:
    with meshed(
        tmp_path, ["box"], [], head=lambda _name: f'data_dir = "{tmp_path}/data"\n'
    ) as made:
        box = made["box"]
        created = done("stream", "create", box.url, "orders", "--retention-records", "7")
        assert "the declaration stays" in created.stderr
        run(append(box, range(5)))
        box.kill()
        box.start()
        within(READY_TIMEOUT_S, box.listens, "it listens")
        row = shown(box)
        assert (row["next"], row["options"]["retention_records"]) == (0, 7)
        for seven in (range(7), range(7, 14)):
            run(append(box, seven))  # what is appended together is given up together
        within(READY_TIMEOUT_S, lambda: shown(box)["records"] == 7, "seven are left")
        done("stream", "delete", box.url, "orders")
        box.kill()
        box.start()
        within(READY_TIMEOUT_S, box.listens, "it listens")
        assert addresses(box) == []


def test_a_container_without_a_disk_says_that_the_declaration_goes_too(tmp_path: Path) -> None:
    with meshed(tmp_path, ["box"], []) as made:
        created = done("stream", "create", made["box"].url, "orders")
        assert "so is the declaration, because there is no data directory" in created.stderr


def test_of_two_that_declare_it_at_once_one_has_it(members: dict[str, Member]) -> None:
    commands = [
        forked(
            *("stream", "create", members[name].url, "orders"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in IDS
    ]
    for each in commands:
        each.wait(60)
    all_have(members, [STREAM])
    homes = {shown(member)["options"]["home"] for member in members.values()}
    assert len(homes) == 1

    async def story() -> None:
        for number, member in enumerate(members.values()):
            await append(member, range(number, number + 1))
        for member in members.values():
            assert await read(member, 4) == [0, 1, 2, 3]

    run(story())


# -- on a server


def test_a_stream_on_a_server_is_opened_by_every_container(
    tmp_path: Path, redis: RedisServer
) -> None:
    engine = f'[[engine]]\nname = "redis"\noptions = {{ url = "{redis.url}" }}\n'
    with meshed(tmp_path, IDS, EDGES, engine, head=lambda name: head_of(tmp_path, name)) as members:
        linked(members.values())
        a, b, c, d = members.values()
        words = (
            "orders",
            "--engine",
            "redis",
            "--retention-records",
            "1000",
            "--capture",
            "topic/x",
        )
        done("stream", "create", b.url, *words)
        all_have(members, [STREAM])
        assert "was there" in done("stream", "create", c.url, *words).stdout
        refused = ran("stream", "create", a.url, "orders", "--engine", "redis")
        assert refused.returncode != 0
        assert "delete it first" in refused.stderr

        async def story() -> None:
            for number, member in enumerate((d, b, a, c)):
                await append(member, range(10 * number, 10 * number + 10))
            for member in (a, b):
                async with cogwork.connect(member.url) as client:
                    await client.publish("topic/x", 40 + (member is b))
            b.kill()
            for member in (a, c, d):
                assert await read(member, 42) == list(range(42)), "captured once each"
            await append(a, range(42, 50))

        run(story())
        b.start()
        linked(members.values())
        assert asyncio.run(read(b, 50)) == list(range(50))
        assert shown(d)["size_bytes"] > 0
        done("stream", "delete", a.url, "orders")
        all_have(members, [])
        done("stream", "create", d.url, *words)
        within(READY_TIMEOUT_S, lambda: shown(d)["state"] == "open", "it is open")
        assert shown(d)["next"] == 0, "its records are gone from the server"
