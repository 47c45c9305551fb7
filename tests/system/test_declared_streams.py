"""Streams of a cluster, declared and deleted at any of its containers, which come and go."""

from __future__ import annotations

import asyncio
import json
import signal
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

import cogwork
from cogwork.cli.exit_codes import ExitCode
from cogwork.client import LinkDetached

from .manager import Manager
from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, started, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "d")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"))
VOTERS = '[cluster]\nprimaries = ["a", "b", "c"]\n'


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    """The last one holds no replicas."""

    def head(name: str) -> str:
        return VOTERS if name == "d" else f'data_dir = "{tmp_path / "data" / name}"\n{VOTERS}'

    with meshed(tmp_path, IDS, EDGES, head=head) as made:
        linked(made.values())
        yield made


def streams_at(member: Member) -> list[str]:
    rows = json.loads(done("stream", "list", member.url, "--json").stdout)
    return sorted(row["address"] for row in rows)


def cluster_at(member: Member) -> dict[str, Any]:
    return cast("dict[str, Any]", member.served.status()["container"]["cluster"])


def has_streams(member: Member, streams: list[str]) -> None:
    """Wait until one has these streams."""
    what = f"{member.id} has {streams}"
    within(READY_TIMEOUT_S, lambda: streams_at(member) == streams, what)


def all_have(members: dict[str, Member], streams: list[str]) -> None:
    """Wait until everybody has these streams, and all agree."""
    for member in members.values():
        has_streams(member, streams)

    def agree() -> bool:
        return len({cluster_at(member)["digest"] for member in members.values()}) == 1

    within(READY_TIMEOUT_S, agree, "all agree")


def append(member: Member, name: str, bodies: list[int]) -> None:
    async def work() -> None:
        async with cogwork.connect(member.url) as client, client.stream(name) as stream:
            await stream.append(bodies)

    asyncio.run(asyncio.wait_for(work(), 30))


def test_what_is_declared_elsewhere_is_there_at_once(members: dict[str, Member]) -> None:
    """A container that was asleep when it was declared wakes up with a client that reads it."""

    async def append_late(member: Member, manager: Manager, name: str) -> None:
        async with cogwork.connect(member.url) as client:
            member.signal(signal.SIGSTOP)
            manager.get("CREATE", "stream", {"engine": "raft"}, name=f"stream/{name}")
            stream = asyncio.ensure_future(client.stream(name).append([1]))
            await asyncio.sleep(0.05)
            member.signal(signal.SIGCONT)
            await stream

    with Manager(members["a"].url) as manager:
        for number in range(5):
            for member in (members["c"], members["d"]):
                late = append_late(member, manager, f"late-{member.id}-{number}")
                asyncio.run(asyncio.wait_for(late, 30))


def test_any_container_declares_trims_and_deletes(members: dict[str, Member]) -> None:
    a, c, d = members["a"], members["c"], members["d"]
    done("stream", "create", d.url, "orders", "--engine", "raft", "--retention-records", "1000")
    all_have(members, ["stream/orders"])
    again = ("stream", "create", a.url, "orders", "--engine", "raft")
    assert "was there" in done(*again, "--retention-records", "1000").stdout
    refused = ran(*again, "--retention-records", "2000")
    assert refused.returncode == ExitCode.ERROR
    assert "retention_records = 1000, not 2000: delete it first" in refused.stderr
    refused = ran("stream", "create", d.url, "twice", "--engine", "raft", "--replicas", "a,a,b")
    assert refused.returncode == ExitCode.ERROR
    assert "replicas names 'a' twice" in refused.stderr
    unknown = "'zz', a container that nobody here knows: one of a, b, c, d is expected"
    refused = ran("stream", "create", d.url, "gone", "--replicas", "a,zz")
    assert (refused.returncode, unknown in refused.stderr) == (ExitCode.ERROR, True)
    replicated = ("--durability", "replicated", "--option", "replicas=a,zz")
    refused = ran("queue", "declare", d.url, "queue/gone", *replicated)
    assert (refused.returncode, unknown in refused.stderr) == (ExitCode.ERROR, True)
    refused = ran("stream", "create", d.url, "wrong", "--engine", "orb", "--option", "a=1")
    assert refused.returncode == ExitCode.ERROR
    assert "has no option 'a'" in refused.stderr
    refused = ran("stream", "create", d.url, "wrong", "--engine", "raft", "--option", "acks=1")
    assert refused.returncode == ExitCode.ERROR
    assert "has no option 'acks'" in refused.stderr
    all_have(members, ["stream/orders"])
    done("stream", "create", a.url, "wrong", "--engine", "orb")
    done("stream", "delete", a.url, "wrong")
    all_have(members, ["stream/orders"])

    append(d, "orders", list(range(20)))
    done("stream", "trim", d.url, "orders", "--before", "5")
    shown = json.loads(done("stream", "show", c.url, "orders", "--json").stdout)
    within(
        READY_TIMEOUT_S,
        lambda: json.loads(done("stream", "show", c.url, "orders", "--json").stdout)["first"] == 5,
        "c has trimmed it",
    )
    assert shown["next"] == 20

    done("stream", "delete", d.url, "orders")
    all_have(members, [])
    gone = ran("stream", "show", a.url, "orders")
    assert gone.returncode == ExitCode.NOT_FOUND
    done(*again, "--retention-records", "2000")
    all_have(members, ["stream/orders"])
    append(c, "orders", [7])
    assert json.loads(done("stream", "show", c.url, "orders", "--json").stdout)["first"] == 0


def test_who_was_away_hears_of_everything(members: dict[str, Member], tmp_path: Path) -> None:
    a, b, c, d = (members[name] for name in IDS)
    for name in ("gone", "kept"):
        done("stream", "create", a.url, name, "--engine", "raft")
        append(a, name, [1, 2, 3])
    all_have(members, ["stream/gone", "stream/kept"])
    for away in (c, d):
        away.kill()
    done("stream", "delete", b.url, "gone")
    done("stream", "create", b.url, "new", "--engine", "raft")
    held = tmp_path / "data"
    before = {each.name for each in (held / "c" / "streams").iterdir()}
    for away in (c, d):
        away.start()
    linked(members.values())
    all_have(members, ["stream/kept", "stream/new"])

    def groups(name: str) -> set[str]:
        return {each.name for each in (held / name / "streams").iterdir()}

    within(READY_TIMEOUT_S, lambda: groups("c") == groups("a"), "c has the replicas that a has")
    assert len(before - groups("c")) == 1
    leader = cluster_at(d)["leader"]
    assert cluster_at(d)["digest"] == cluster_at(members[leader])["digest"]
    assert f"digest {cluster_at(d)['digest'][:12]}" in done("status", d.url).stdout
    done("stream", "delete", c.url, "kept")
    all_have(members, ["stream/new"])


def test_links_end_where_their_stream_is_deleted_elsewhere(members: dict[str, Member]) -> None:
    a, c = members["a"], members["c"]
    done("stream", "create", a.url, "orders", "--engine", "raft")
    all_have(members, ["stream/orders"])

    async def story() -> None:
        async with (
            cogwork.connect(c.url) as client,
            client.stream("orders").publisher() as out,
            client.stream("orders").read("first") as reader,
        ):
            await out.send("one")
            assert (await anext(reader)).body == "one"
            await asyncio.to_thread(done, "stream", "delete", a.url, "orders")
            with pytest.raises(LinkDetached, match="was deleted"):
                await anext(reader)
            with pytest.raises(LinkDetached, match="was deleted"):
                await out.send("two")

    asyncio.run(asyncio.wait_for(story(), 30))


def test_who_comes_back_first_does_not_say_that_there_are_none(members: dict[str, Member]) -> None:
    """What the cluster has declared it learns from a majority, and until then it waits."""
    a, b = members["a"], members["b"]
    done("stream", "create", a.url, "orders", "--engine", "raft")
    all_have(members, ["stream/orders"])
    append(a, "orders", [1, 2])
    for member in members.values():
        member.kill()
    a.head = a.head.replace('"c"]', '"c", "e"]')
    a.start()
    within(READY_TIMEOUT_S, a.listens, "a is back")

    refused = ran("stream", "create", a.url, "orders", "--retention", "1d")
    assert refused.returncode == ExitCode.ERROR
    assert "not known here yet what the cluster has declared" in refused.stderr
    for code, *words in (
        (ExitCode.ERROR, "stream", "show", a.url, "orders"),
        (ExitCode.TIMEOUT, "receive", a.url, "stream/orders", "--timeout", "0.5"),
        (ExitCode.TIMEOUT, "receive", a.url, "orders", "--from", "first", "--timeout", "0.5"),
        (ExitCode.TIMEOUT, "send", a.url, "stream/orders", "x", "--timeout", "0.5"),
    ):
        late = ran(*words)
        assert late.returncode == code, words
        assert "not known here yet what the cluster has declared" in late.stderr

    async def story() -> None:
        async with cogwork.connect(a.url) as client, client.stream("orders") as stream:
            reading = asyncio.create_task(anext(aiter(stream.read("first"))))
            appending = asyncio.create_task(stream.append([3]))
            done_early, _ = await asyncio.wait((reading, appending), timeout=1)
            assert not done_early
            await asyncio.to_thread(b.start)
            assert (await reading).body == 1
            await appending
            assert (await anext(aiter(stream.read(2)))).body == 3

    asyncio.run(asyncio.wait_for(story(), 60))
    assert streams_at(a) == ["stream/orders"]
    assert "the cluster's primaries are a, b, c: ignoring" in a.log()


def test_who_asks_one_alone_is_told_what_that_does_not_know(members: dict[str, Member]) -> None:
    a = members["a"]
    for kind in ("stream", "queue"):
        assert done(kind, "list", a.url).stderr == ""
    for member in members.values():
        member.kill()
    a.start()
    within(READY_TIMEOUT_S, a.listens, "a is back")
    with started("schema", "list", a.url) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith("cogwork: waiting: ")
    expected = (
        "cogwork: container a does not know all declarations of its cluster yet: a majority of a, "
        "b, c has to be up and linked, and no answer comes from b, c\n"
    )
    for kind in ("stream", "queue"):
        within(READY_TIMEOUT_S, partial(_says, kind, a.url, expected), kind)


def _says(kind: str, url: str, expected: str) -> bool:
    return done(kind, "list", url).stderr == expected


def test_what_cannot_be_is_in_the_way_of_nobody(members: dict[str, Member]) -> None:
    a, _, c, _ = members.values()
    for words in (
        ("--capture", "queue/x"),
        ("--engine", "raft", "--capture", "topic/x", "--capture", "queue/x"),
        ("--engine", "raft", "--option", "retention_s=long"),
        ("--engine", "raft", "--option", "replicas=a"),
        ("--option", "retention_s=long"),
    ):
        refused = ran("stream", "create", a.url, "orders", *words)
        assert refused.returncode == ExitCode.ERROR, words
        all_have(members, [])  # where it was undone, another one may not know that yet
        done("stream", "create", c.url, "orders", "--engine", "raft", "--retention", "7d")
        done("stream", "delete", c.url, "orders")
        all_have(members, [])
