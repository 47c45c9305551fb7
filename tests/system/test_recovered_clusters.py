"""One of three is left: what its new cluster promises of what the lost ones may have done."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.container.journals.records import Replayed
from cogwork.replication.offline import KeptReplica, kept_replicas

from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within
from .trios import COUNT, Trio, holds, trios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ITEMS = 6
SETTLED = 2


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    with trios(tmp_path) as made:
        yield made


def recover(trio: Trio) -> dict[str, object]:
    """Make a cluster of a, which is stopped; the others are lost for good."""
    trio.wipe("b", "c")
    words = ("cluster", "recover", "--data", str(trio.folder / "a"), "--only", "a", "--json")
    facts: dict[str, object] = json.loads(done(*words).stdout)
    assert facts["problems"] == []
    trio.start("a")
    within(READY_TIMEOUT_S, lambda: trio.reads("a"), "a has all records, alone")
    return facts


def grown(trio: Trio, *names: str) -> None:
    """Have fresh containers of the old names be primaries again."""
    trio.start("b", "c")
    move = ("cluster", "move", trio.url("a"), "--primaries", ",".join(names))
    within(READY_TIMEOUT_S, lambda: ran(*move).returncode == 0, "the cluster has grown")


def depth(url: str, address: str) -> int:
    rows = json.loads(done("queue", "list", url, "--json").stdout)
    return sum(row["depth"] for row in rows if row["address"] == address)


def has_all(folder: Path, address: str) -> bool:
    """Return whether a data directory has all items of a queue, whoever owns that."""
    replayed = Replayed()
    for each in kept_replicas(folder).values():
        if isinstance(each, KeptReplica) and each.declared.stream == f"queue {address}":
            for record in each.records():
                replayed.take(record.data[0], record.data[1:])
    return len(replayed.image.items) == ITEMS


def test_what_the_lost_ones_may_have_settled_is_parked_or_marked(trio: Trio) -> None:
    options = ("--durability", "replicated", "--option", 'replicas=["a","b","c"]')
    dead = ("--option", "dead_letter=queue/dead")
    for address, more in (("work/jobs", dead), ("queue/jobs", ())):
        done("queue", "declare", trio.url("a"), address, *options, *more)
        done("send", trio.url("a"), address, "job {n}", "--count", str(ITEMS))
        within(READY_TIMEOUT_S, partial(has_all, trio.folder / "a", address), f"a has {address}")
    asyncio.run(asyncio.wait_for(_recovers_under(trio), 4 * READY_TIMEOUT_S))


async def _recovers_under(trio: Trio) -> None:
    """Settle some items and keep one open where it is lost; look what a makes of them."""
    urls = [trio.url("b"), trio.url("a")]
    async with cogwork.connect(urls) as client:
        consumers = [client.consume(address, credit=1) for address in ("work/jobs", "queue/jobs")]
        opened = [await consumer.__aenter__() for consumer in consumers]
        held = [await anext(consumer) for consumer in opened]
        trio.members["a"].kill()
        for at, consumer in enumerate(opened):
            for _ in range(SETTLED):
                await asyncio.wait_for(held[at].accept(), READY_TIMEOUT_S)
                held[at] = await asyncio.wait_for(anext(consumer), READY_TIMEOUT_S)
        await asyncio.to_thread(recover, trio)
        for item in held:
            with pytest.raises(cogwork.InDoubt):  # nobody knows whether somebody else had it since
                await asyncio.wait_for(item.accept(), READY_TIMEOUT_S)
        for consumer in consumers:
            await consumer.__aexit__(None, None, None)
    url = trio.url("a")
    async with cogwork.connect(url) as client, client.consume("queue/jobs") as again:
        items = [await asyncio.wait_for(anext(again), READY_TIMEOUT_S) for _ in range(ITEMS)]
        assert [item.delivery_count for item in items] == [1] * ITEMS, "all may have been settled"
        for item in items:
            await item.accept()
    async with cogwork.connect(url) as client, client.consume("queue/dead") as dead:
        parked = [await asyncio.wait_for(anext(dead), READY_TIMEOUT_S) for _ in range(ITEMS)]
        reasons = {(item.annotations or {})["x-opt-dead-letter-reason"] for item in parked}
        assert reasons == {"in-doubt"}
        for item in parked:
            await item.accept()
    for address in ("work/jobs", "queue/jobs"):
        assert await asyncio.to_thread(depth, url, address) == 0
    async with cogwork.connect(url) as client, client.consume("work/jobs") as work:
        await client.publish("work/jobs", b"new")
        item = await asyncio.wait_for(anext(work), READY_TIMEOUT_S)
        assert (item.body, item.delivery_count) == (b"new", 0), "what is new is not in doubt"
        await item.accept()


def test_who_is_beyond_the_end_that_is_left_is_told(trio: Trio) -> None:
    within(READY_TIMEOUT_S, holds(trio, "a"), "a has everything")
    asyncio.run(asyncio.wait_for(_goes_beyond(trio), 4 * READY_TIMEOUT_S))


async def _goes_beyond(trio: Trio) -> None:
    urls = [trio.url("b"), trio.url("a")]
    async with cogwork.connect(urls) as client:
        stream = client.stream("orders")
        reader = stream.read(COUNT)
        await reader.__aenter__()
        publisher = stream.publisher(producer=b"shop")
        await publisher.__aenter__()
        await publisher.send(b"kept")
        await asyncio.wait_for(reader.take(1), READY_TIMEOUT_S)
        dump = ("log", "dump", "orders", "--data", str(trio.folder / "a"))
        await asyncio.to_thread(
            within, READY_TIMEOUT_S, lambda: "kept" in done(*dump).stdout, "a has it"
        )
        trio.members["a"].kill()
        for text in (b"lost", b"lost, too"):
            await asyncio.wait_for(publisher.send(text), READY_TIMEOUT_S)
            await asyncio.wait_for(reader.take(1), READY_TIMEOUT_S)
        await asyncio.to_thread(recover, trio)
        with pytest.raises(cogwork.RecordsLost) as lost:
            await asyncio.wait_for(reader.take(1), READY_TIMEOUT_S)
        assert lost.value.end == COUNT + 1
        with pytest.raises(cogwork.Rejected, match="next sequence is 1, not 3"):
            await asyncio.wait_for(publisher.send(b"beyond"), READY_TIMEOUT_S)
        await publisher.__aexit__(None, None, None)


def test_a_cluster_of_one_grows_to_three_again_and_survives_the_first(trio: Trio) -> None:
    within(READY_TIMEOUT_S, holds(trio, "a"), "a has everything")
    trio.members["a"].kill()
    before = recover(trio)
    row = trio.members["a"].served.status()["container"]["cluster"]
    assert (row["voters"], row["leader"]) == (["a"], "a")
    grown(trio, "a", "b", "c")
    row = trio.members["b"].served.status()["container"]["cluster"]
    assert (row["uuid"], row["voters"], row["moving"]) == (before["uuid"], ["a", "b", "c"], False)
    done("stream", "move", trio.url("c"), "orders", "--replicas", "a,b,c")
    within(READY_TIMEOUT_S, holds(trio, "c"), "c has everything")
    trio.members["a"].kill()
    create = ("stream", "create", trio.url("b"), "later", "--replicas", "b,c")
    within(READY_TIMEOUT_S, lambda: ran(*create).returncode == 0, "b and c decide without a")
    within(READY_TIMEOUT_S, lambda: trio.reads("c"), "all records are there")
    for name in ("b", "c"):
        trio.members[name].kill()
    trio.start("b", "c")
    within(READY_TIMEOUT_S, lambda: trio.reads("b"), "they are primaries after a restart, too")
    row = trio.members["b"].served.status()["container"]["cluster"]
    assert row["voters"] == ["a", "b", "c"]
    trio.start("a")
    within(READY_TIMEOUT_S, lambda: trio.reads("a"), "a is one of three again")


def test_primaries_that_no_configuration_names_find_each_other(tmp_path: Path) -> None:
    """Three of them take over from the one that is configured, which is then gone for good."""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a"]\n'

    names = ("a", "b", "c", "d")
    edges = [(one, other) for one in names for other in names if one < other]
    with meshed(tmp_path, names, edges, head=head) as members:
        linked(members.values())

        def creates(name: str, stream: str) -> bool:
            return ran("stream", "create", members[name].url, stream).returncode == 0

        def primaries(name: str) -> object:
            return members[name].served.status()["container"]["cluster"]["voters"]

        within(READY_TIMEOUT_S, lambda: creates("a", "first"), "the cluster has begun")
        move = ("cluster", "move", members["a"].url, "--primaries", "b,c,d")
        within(READY_TIMEOUT_S, lambda: ran(*move).returncode == 0, "others are primaries")
        within(
            READY_TIMEOUT_S,
            lambda: not members["b"].served.status()["container"]["cluster"]["moving"],
            "the move is done",
        )
        for name in names:
            members[name].kill()
        for name in ("b", "c", "d"):
            members[name].start()
        within(READY_TIMEOUT_S, lambda: creates("b", "second"), "they go on without the first")
        assert all(primaries(name) == ["b", "c", "d"] for name in ("b", "c", "d"))
