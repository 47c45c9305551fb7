"""What an audit's stream says of queues' items, also where the container is killed under load."""

from __future__ import annotations

import asyncio
import collections
import hashlib
import json
import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.testing import container

from .ledgers import Book, Workers, chance_of, row
from .meshes import meshed
from .publishers import Publishers
from .served import within
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from cogwork.client import Client

QUEUE, PARKED = "work/ledger", "queue/ledger.parked"
ITEMS = int(os.environ.get("COGWORK_AUDIT_ITEMS", "3000"))
KILLS = 4
SETTLE_TIMEOUT_S = 60.0
REST_S = 0.5

ON_DISK = f"""
[[queue]]
address = "{QUEUE}"
durability = "disk"
in_doubt_timeout_s = 0.5
dead_letter = "{PARKED}"

[[audit]]
queue = "work/#"
digest = true
"""

NOT_FINAL = ("released", "modified")

Event = dict[str, Any]


async def events_of(client: Client, count: int) -> list[Event]:
    """Read the first events of the audit."""
    found: list[Event] = []
    async with client.stream("$audit") as stream:
        async for record in stream.read("first"):
            assert isinstance(record.body, bytes)
            event = json.loads(record.body)
            assert record.subject == event["event"]
            if record.subject != "missed":
                found_again = (record.to, record.message_id, record.correlation_id)
                assert found_again == (event["queue"], event["item"], event["outcome"])
                assert record.properties == {name: event[name] for name in ("attempt", "position")}
            found.append(event)
            if len(found) == count:
                break
    return found


class TestOneQueue:
    @story
    async def test_each_outcome_is_told(self) -> None:
        configuration = '[[audit]]\nqueue = "work/#"\ndigest = true\n'
        async with container(configuration) as url, cogwork.connect(url) as client:
            for text in ("a", "b", "c", "d"):
                await client.publish("work/jobs", text.encode())
            async with client.consume("work/jobs") as jobs:
                await (await anext(jobs)).accept()
                await (await anext(jobs)).reject()
                await (await anext(jobs)).modify(failed=True)
                await (await anext(jobs)).accept()
                again = await anext(jobs)
                assert again.body == b"c"
                await again.accept()
            found = await events_of(client, 9)
        accepted, settled = found[:4], found[4:]
        assert [each["event"] for each in accepted] == ["accepted"] * 4
        assert [each["position"] for each in accepted] == [1, 2, 3, 4]
        digests = [hashlib.sha256(text).hexdigest()[:16] for text in (b"a", b"b", b"c", b"d")]
        assert [each["digest"] for each in accepted] == digests
        names = {each["item"]: text for each, text in zip(accepted, "abcd", strict=True)}
        assert [(names[each["item"]], each["attempt"], each["outcome"]) for each in settled] == [
            ("a", 1, "accepted"),
            ("b", 1, "rejected"),
            ("c", 1, "modified"),
            ("d", 1, "accepted"),
            ("c", 2, "accepted"),
        ]
        handed = [each["position"] for each in settled]
        assert handed == sorted(set(handed))
        assert all("work/jobs" in each["consumer"] for each in settled)

    @story
    async def test_queues_of_a_virtual_host_are_told_of_by_its_name(self) -> None:
        configuration = """
        [[audit]]
        queue = "work/#"
        vhost = "blue"
        [[vhost]]
        name = "blue"
        [[vhost.queue]]
        address = "work/jobs"
        [[vhost]]
        name = "red"
        """
        async with container(configuration) as url, cogwork.connect(url) as client:
            for place in (url, f"{url}/blue", f"{url}/red"):
                async with cogwork.connect(place) as other:
                    await other.publish("work/jobs", b"x")
                    async with other.consume("work/jobs") as jobs:
                        await (await anext(jobs)).accept()
            found = await events_of(client, 2)
            await eventually_at_rest(client)
            assert len(await _all_events(url)) == 2
        assert {each["queue"] for each in found} == {"blue:work/jobs"}

    @story
    async def test_what_nobody_took_is_told(self) -> None:
        configuration = """
        [[queue]]
        address = "work/short"
        maximum_length = 2
        maximum_length_policy = "drop-oldest"
        [[audit]]
        queue = "work/*"
        """
        async with container(configuration) as url, cogwork.connect(url) as client:
            await client.publish("work/short", b"1", ttl_s=0.01)
            while (await queue_row(client, "work/short"))["expired"] == 0:
                await asyncio.sleep(0.02)
            for text in (b"2", b"3", b"4"):
                await client.publish("work/short", text)
            await client.manage("PURGE", {"type": "queue", "name": "work/short"})
            found = await events_of(client, 8)
        outcomes = collections.Counter(each["outcome"] for each in found)
        assert outcomes == {None: 4, "expired": 1, "dropped": 1, "removed": 2}

    @story
    async def test_all_of_a_sampled_item_is_told_or_nothing(self) -> None:
        configuration = '[[audit]]\nqueue = "work/#"\nsample = 0.3\n'
        async with container(configuration) as url, cogwork.connect(url) as client:
            async with client.publisher("work/jobs") as publisher:
                await publisher.send_batch([b"x"] * 1000)
            async with client.consume("work/jobs") as jobs:
                for _ in range(1000):
                    await (await anext(jobs)).accept()
            await eventually_at_rest(client)
            found = await _all_events(url)
        counts = collections.Counter(each["item"] for each in found)
        assert 200 < len(counts) < 400
        assert set(counts.values()) == {2}

    @story
    async def test_a_stream_that_takes_nothing_holds_nothing_up(self) -> None:
        configuration = """
        [[stream]]
        address = "stream/$audit"
        engine = "redis"
        [[engine]]
        name = "redis"
        options = { url = "redis://127.0.0.1:9" }
        [[audit]]
        queue = "work/#"
        """
        async with container(configuration) as url, cogwork.connect(url) as client:
            for _ in range(200):
                await client.publish("work/jobs", b"x")
            async with client.consume("work/jobs") as jobs:
                for _ in range(200):
                    await (await anext(jobs)).accept()


def final(events: Iterable[Event]) -> dict[str, set[tuple[int, str | None]]]:
    """Gather how items ended: attempts and outcomes, which are the same where told again."""
    found: dict[str, set[tuple[int, str | None]]] = collections.defaultdict(set)
    for each in events:
        if each["event"] == "settled" and each["outcome"] not in NOT_FINAL:
            found[each["item"]].add((each["attempt"], each["outcome"]))
    return found


def read_events(url: str) -> list[Event]:
    """Read all events that are there."""
    return asyncio.run(_all_events(url))


async def queue_row(client: Client, name: str) -> dict[str, Any]:
    row: Any = (await client.manage("READ", {"type": "queue", "name": name})).body
    assert isinstance(row, dict)
    return row


async def eventually_at_rest(client: Client) -> None:
    """Wait until the audit's stream has not grown for some time."""
    count, since_s = -1, time.monotonic()
    while time.monotonic() - since_s < REST_S:
        row = (await client.manage("READ", {"type": "stream", "name": "stream/$audit"})).body
        assert isinstance(row, dict)
        if row["next"] != count:
            count, since_s = row["next"], time.monotonic()
        await asyncio.sleep(0.05)


async def _all_events(url: str) -> list[Event]:
    async with asyncio.timeout(SETTLE_TIMEOUT_S), cogwork.connect(url) as client:
        row = (await client.manage("READ", {"type": "stream", "name": "stream/$audit"})).body
        assert isinstance(row, dict)
        return await events_of(client, row["next"]) if row["next"] else []


def is_whole(url: str, count: int) -> bool:
    """Return whether so many items are named at least, and all of them have ended."""
    events = read_events(url)
    ended = final(events)
    named = {each["item"] for each in events if each["event"] == "accepted"}
    return len(named) >= count and named <= ended.keys()


@pytest.mark.timeout(200)
def test_every_item_is_named_however_often_the_container_is_killed(tmp_path: Path) -> None:
    chance = chance_of(sys.stdout)
    with ExitStack() as stack:
        members = stack.enter_context(
            meshed(
                tmp_path,
                ["box"],
                [],
                ON_DISK,
                head=lambda name: f'data_dir = "{tmp_path}/{name}"\n',
            )
        )
        member = members["box"]
        publishers = stack.enter_context(Publishers(member.url, tmp_path, QUEUE, ITEMS))
        crew = stack.enter_context(Workers(member.served, tmp_path, QUEUE))
        for _ in range(2):
            crew.hire()
        within(SETTLE_TIMEOUT_S, lambda: publishers.have_begun, "every publisher begins")
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.05, 0.5))
            member.kill()
            member.start()
            within(SETTLE_TIMEOUT_S, member.listens, "the container listens")
            crew.replace()
        within(SETTLE_TIMEOUT_S, lambda: publishers.are_done, "every item is sent")
        within(SETTLE_TIMEOUT_S, lambda: row(member.served, QUEUE)["depth"] == 0, "all is done")
        said = publishers.said()
        count = len(said["accepted"])
        within(SETTLE_TIMEOUT_S, lambda: is_whole(member.url, count), "all is told")
        events = read_events(member.url)
    verify(events, said, Book.of(tmp_path))


def verify(events: list[Event], said: Mapping[str, set[str]], book: Book) -> None:
    """Compare what the audit says with what publishers and workers have written down."""
    counts = collections.Counter((each["event"], each.get("outcome")) for each in events)
    digests: dict[str, str] = {}
    named = set()
    for each in events:
        if each["event"] == "accepted":
            named.add(each["item"])
            if each["digest"] is not None:
                digests[each["digest"]] = each["item"]
    nameless = len(named) - len(set(digests.values()))
    by_body = {text: hashlib.sha256(text.encode()).hexdigest()[:16] for text in said["accepted"]}
    missing = [text for text, digest in by_body.items() if digest not in digests]
    sys.stdout.write(f"{counts}: {len(named)} items, {nameless} of them named after a kill only\n")
    assert counts["missed", None] == 0
    assert len(missing) <= nameless, f"accepted and not named: {missing[:5]}"
    ended = final(events)
    assert set(ended) == named
    assert [ends for ends in ended.values() if len(ends) > 1] == [], "settled twice"
    outcomes = collections.Counter(outcome for ends in ended.values() for _, outcome in ends)
    assert outcomes["accepted"] >= len(book.confirmed)
    assert set(outcomes) <= {"accepted", "parked"}
