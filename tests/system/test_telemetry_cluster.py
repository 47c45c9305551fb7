"""Heartbeats and audits of containers in a cluster, one of them without a replica of anything."""

from __future__ import annotations

import asyncio
import collections
import json
from typing import TYPE_CHECKING, Any

import pytest

import cogwork

from .ledgers import row
from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .meshes import Member

VOTERS, OUTSIDE = ("a", "b", "c"), "d"
NAMES = (*VOTERS, OUTSIDE)
EDGES = [(one, other) for one in NAMES for other in NAMES if one < other]
QUEUE = "work/kept"
EVERY_S = 0.3
TIMEOUT_S = 40.0

Record = dict[str, Any]

CONFIGURATION = f"""
[cluster]
primaries = ["a", "b", "c"]

[telemetry]
every_s = {EVERY_S}

[[queue]]
address = "{QUEUE}"
durability = "replicated"
in_doubt_timeout_s = 0.5

[[audit]]
queue = "{QUEUE}"
"""


def read(url: str, stream: str, is_enough: Callable[[list[Record]], bool]) -> list[Record]:
    """Read a stream from its beginning until that is enough."""
    found: list[Record] = []

    async def records() -> None:
        async with cogwork.connect(url) as client, client.stream(stream) as opened:
            async for record in opened.read("first"):
                assert isinstance(record.body, bytes)
                found.append(json.loads(record.body))
                if is_enough(found):
                    break

    try:
        asyncio.run(asyncio.wait_for(records(), TIMEOUT_S))
    except TimeoutError:
        raise AssertionError(f"{len(found)} records are not enough: {found[-4:]}") from None
    return found


async def exchange(members: dict[str, Member], count: int) -> None:
    """Publish at the container without replicas, and subscribes elsewhere."""
    async with (
        cogwork.connect(members["a"].url) as here,
        cogwork.connect(members[OUTSIDE].url) as there,
        here.subscribe("topic/news.#") as news,
    ):
        heard = asyncio.ensure_future(anext(news))
        while not heard.done():  # until the subscription is known there
            await there.publish("topic/news.first", b"x" * 100)
            await asyncio.wait((heard,), timeout=0.05)
        for _ in range(count):
            await there.publish("topic/news.more", b"x" * 100)
        await asyncio.sleep(2 * EVERY_S)  # a link that goes between two looks is not seen


async def fill(url: str, texts: list[str]) -> None:
    async with cogwork.connect(url) as client, client.publisher(QUEUE) as publisher:
        for text in texts:
            await publisher.send(text.encode())


async def empty(url: str, count: int) -> None:
    async with cogwork.connect(url) as client, client.consume(QUEUE) as items:
        for _ in range(count):
            await (await anext(items)).accept()


@pytest.mark.timeout(150)
def test_what_a_cluster_tells_of_itself(tmp_path: Path) -> None:
    def head(name: str) -> str:
        return "" if name == OUTSIDE else f'data_dir = "{tmp_path}/{name}"\n'

    with meshed(tmp_path, NAMES, EDGES, CONFIGURATION, head=head) as members:
        linked(members.values())
        asyncio.run(exchange(members, 50))

        def is_told(beats: list[Record]) -> bool:
            last = {each["container"]: each for each in beats}
            sent = last.get(OUTSIDE, {"matrix": []})["matrix"]
            roots = {each["root"] for each in last.values()}
            return (
                set(last) == set(NAMES)
                and len(roots) == 1
                and any(each["to"] == "a" and each["messages"] > 50 for each in sent)
            )

        beats = read(members["b"].url, "$telemetry", is_told)
        last = {each["container"]: each for each in beats}
        assert {name: beat["primary"] for name, beat in last.items()} == {
            "a": True,
            "b": True,
            "c": True,
            "d": False,
        }
        assert last["a"]["root"] in VOTERS
        assert last[OUTSIDE]["peers"] == list(VOTERS)
        way = next(each for each in last[OUTSIDE]["matrix"] if each["to"] == "a")
        assert way["bytes"] > way["messages"] * 100
        assert sorted(each["to"] for each in last[OUTSIDE]["links"]) == list(VOTERS)

        kept_by_a_new_owner(members)


def is_end(event: Record) -> bool:
    """Return whether an event says that an item is gone, and not only given back."""
    return event["event"] == "settled" and event["outcome"] not in {"released", "modified"}


def kept_by_a_new_owner(members: dict[str, Member]) -> None:
    """Kill the owner of an audited queue: the next one names what is there."""

    def owner() -> str | None:
        found = row(members[OUTSIDE].served, QUEUE)["owner"]
        return None if found is None else str(found)

    within(TIMEOUT_S, lambda: owner() in VOTERS, "somebody owns the queue")
    asyncio.run(fill(members[OUTSIDE].url, [f"{at}" for at in range(40)]))
    asyncio.run(empty(members[OUTSIDE].url, 15))
    told = read(members[OUTSIDE].url, "$audit", lambda events: any(map(is_end, events)))
    first = str(told[-1]["container"])
    members[first].kill()
    within(TIMEOUT_S, lambda: owner() not in {first, None}, "another one owns the queue")
    asyncio.run(empty(members[OUTSIDE].url, 25))

    def is_whole(events: list[Record]) -> bool:
        settled = {each["item"] for each in events if is_end(each)}
        accepted = {each["item"] for each in events if each["event"] == "accepted"}
        return len(accepted) == len(settled) == 40

    events = read(members[OUTSIDE].url, "$audit", is_whole)
    ends = collections.defaultdict(set)
    for each in events:
        if is_end(each):
            ends[each["item"]].add((each["attempt"], each["outcome"]))
    assert {len(each) for each in ends.values()} == {1}, "settled twice"
    tellers = {each["container"] for each in events}
    assert first in tellers
    assert len(tellers) == 2
