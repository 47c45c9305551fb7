"""Streams and replicated queues that are moved while they are used; containers die, and leave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.client import InDoubt, Released, StaleAttempt

from .clusters import IDS, Cluster, clustered, command
from .ledgers import Book, chance_of, row, twice
from .numbered_streams import digest_of_all, digest_read
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from cogwork.client import Publisher

QUEUE = "work/moved"
SETTLE_TIMEOUT_S = 60.0
BACKLOG = 200

MOVES = int(os.environ.get("COGWORK_STREAM_MOVES", "3"))
STORY_TIMEOUT_S = 60 + 30 * MOVES


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with clustered(tmp_path_factory.mktemp("moved")) as made:
        yield made


def test_a_command_moves_a_stream_and_tells_when_it_is_done(cluster: Cluster) -> None:
    cluster.create("orders", "a,b,c")
    command("send", cluster.url("f"), "stream/orders", "one", "--count", "50")
    assert cluster.move("orders", "d,b,e") == "stream/orders is held by d, b, e\n"
    assert cluster.holders("orders") == set("dbe")
    outcome = json.loads(cluster.move("orders", "b,d", "--learners", "a,c", "--json"))
    assert (outcome["voters"], outcome["learners"]) == (["b", "d"], ["a", "c"])
    assert not outcome["moving"]
    within(30, lambda: cluster.shown("orders", "e")["voters"] == ["b", "d"], "e knows of it")
    shown = command("stream", "show", cluster.url("a"), "orders")
    assert "held by b, d, followed by a, c" in shown
    assert cluster.records("orders", 50) == ["one"] * 50
    assert cluster.holders("orders") == set("abcd")
    cluster.move("orders", "b,d", "--learners", "a,c")  # where it is already


def test_who_cannot_hold_a_stream_is_named(cluster: Cluster) -> None:
    cluster.create("named", "a,b,c")
    no_data = cluster.move("named", "a,b,f", code=1)
    assert "container 'f' can hold no replica: it has no data directory" in no_data
    unknown = "names 'x', a container that nobody here knows: one of a, b, c, d, e, f is expected"
    assert unknown in cluster.move("named", "a,b,x", code=1)
    assert "names 'a' twice" in cluster.move("named", "a,a", code=1)
    assert "there is no stream 'stream/others'" in cluster.move("others", "a", code=6)
    command("stream", "create", cluster.url("a"), "alone")
    alone = cluster.move("alone", "b", at="a", code=1)
    assert "the engine orb keeps it where it is" in alone
    assert cluster.shown("named")["wanted"] == ["a", "b", "c"]


def test_a_queue_that_cannot_be_moved_says_why(cluster: Cluster) -> None:
    url, declare = cluster.url("a"), ("queue", "declare", cluster.url("a"))
    command(*declare, "work/named", "--durability", "replicated")
    command(*declare, "queue/here")

    def refusal(address: str, replicas: str, code: int = 1) -> str:
        return command("queue", "relocate", url, address, "--replicas", replicas, code=code)

    assert "'queue/here' is not replicated" in refusal("queue/here", "a,b,c")
    assert "it has no data directory" in refusal("work/named", "a,b,f")
    assert "names 'x', a container that nobody here knows" in refusal("work/named", "a,b,x")
    assert "there is no queue 'queue/none'" in refusal("queue/none", "a", code=6)


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


@pytest.mark.timeout(STORY_TIMEOUT_S + 60)
def test_leaders_newcomers_and_who_was_asked_are_killed_while_a_stream_is_moved(
    cluster: Cluster,
) -> None:
    cluster.create("moved", "a,b,c")
    story = Story(cluster, chance_of(sys.stdout))
    asyncio.run(asyncio.wait_for(story.run(), STORY_TIMEOUT_S))
    holders = set(story.holders)
    within(30.0, lambda: cluster.holders("moved") == holders, "who does not hold it has nothing")


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
        assert {await each for each in reading} == {digest_of_all(self.total)}

    async def append(self, moves: asyncio.Future[None]) -> None:
        """Append numbers at the container without replicas, until the last move is done."""
        sent = 0
        async with cogwork.connect(self.cluster.url("f")) as client:
            stream = client.stream("moved")
            while not moves.done():
                count = self.chance.randrange(1, 20)
                await stream.append(range(sent, sent + count))
                sent += count
                await asyncio.sleep(0.01)
        await moves
        self.total = sent

    async def read(self, name: str) -> str:
        """Read everything at one container, whatever becomes of that; return the digest."""
        return await digest_read(self.cluster.url(name), "moved", lambda: self.total)

    async def move(self) -> None:
        """Move the stream, and kill one whom that concerns while it goes on."""
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


@pytest.mark.timeout(STORY_TIMEOUT_S + 60)
def test_what_a_queue_accepted_is_done_once_wherever_it_goes(cluster: Cluster) -> None:
    declare = ("queue", "declare", cluster.url("f"), QUEUE, "--durability", "replicated")
    options = ("--option", "in_doubt=redeliver", "--option", "in_doubt_timeout_s=2")
    command(*declare, *options)
    within(SETTLE_TIMEOUT_S, lambda: owner_of(cluster) is not None, "somebody owns the queue")
    story = QueueStory(cluster, chance_of(sys.stdout))
    asyncio.run(asyncio.wait_for(story.run(), STORY_TIMEOUT_S))
    story.check()
    holders = set(story.holders)
    within(
        20, lambda: cluster.holders(f"queue {QUEUE}") == holders, "who does not hold it has none"
    )


class QueueStory:
    """Publishes and consumes while the queue is moved and its owners are killed.

    Attributes:
        holders: Who is to hold the queue.
        accepted: Items that were.
        doubted: Items of which nobody knows.
        book: What consumers took, and what was confirmed to them.
    """

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.chance = chance
        self.holders: list[str] = []
        self.accepted: set[str] = set()
        self.doubted: set[str] = set()
        self.book = Book()

    async def run(self) -> None:
        moves = asyncio.ensure_future(asyncio.to_thread(self.move))
        consuming = [asyncio.ensure_future(self.consume(name)) for name in "fd"]
        await self.publish(moves)
        await moves
        await self.settle()
        for each in consuming:
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await each

    async def settle(self) -> None:
        """Wait until all that was accepted is done with, as long as there is less and less."""
        least, until_s = len(self.accepted) + 1, 0.0
        while left := self.accepted - self.book.confirmed.keys() - self.again():
            if len(left) < least:
                least, until_s = len(left), time.monotonic() + SETTLE_TIMEOUT_S
            if time.monotonic() > until_s:
                pytest.fail(await asyncio.to_thread(self.described, left))
            await asyncio.sleep(0.05)

    def described(self, left: set[str]) -> str:
        """Return what is known of items that are not done with."""
        owner = owner_of(self.cluster)
        rows = {
            name: dict(row(member.served, QUEUE)) for name, member in self.cluster.members.items()
        }
        taken = {item: self.book.taken.get(item) for item in sorted(left)[:20]}
        return f"{len(left)} left of {len(self.accepted)}: {taken}; {owner} owns it; {rows}"

    def again(self) -> set[str]:
        """Items that were taken again, by a consumer that may have died before that was known."""
        return {item for item, counts in self.book.taken.items() if len(counts) > 1}

    async def publish(self, moves: asyncio.Future[None]) -> None:
        """Publish at the container without a replica, until the last move is done.

        Each consumer waits for what it says of an item: publishers are faster.
        """
        sent = 0
        async with (
            cogwork.connect(self.cluster.url("f")) as client,
            client.publisher(QUEUE) as publisher,
        ):
            while not moves.done():
                if len(self.accepted) - len(self.book.confirmed) > BACKLOG:
                    await asyncio.sleep(0.01)
                    continue
                items = [str(number) for number in range(sent, sent + 20)]
                sent += len(items)
                await asyncio.gather(*(self.post(publisher, item) for item in items))
                await asyncio.sleep(0.01)

    async def post(self, publisher: Publisher, item: str) -> None:
        """Publish one; what was released certainly did not arrive: again."""
        while True:
            try:
                await publisher.post(item, durable=True)
            except Released:
                await asyncio.sleep(0.01)
            except InDoubt:
                return self.doubted.add(item)
            else:
                return self.accepted.add(item)

    async def consume(self, name: str) -> None:
        """Take items at a container, and accept them."""
        async with (
            cogwork.connect(self.cluster.url(name)) as client,
            client.consume(QUEUE, credit=20) as items,
        ):
            async for item in items:
                self.book.enter("taken", str(item.body), str(item.delivery_count))
                with contextlib.suppress(StaleAttempt, InDoubt):
                    await item.accept()
                    self.book.enter("confirmed", str(item.body))

    def move(self) -> None:
        """Move it, and kill who owns it in the middle of each move but the last."""
        for number in range(MOVES):
            self.holders = self.chance.sample("abcde", 3)
            if number < MOVES - 1:
                move_and_kill(self.cluster, self.holders, self.chance)
            else:
                move(self.cluster, self.holders)

    def check(self) -> None:
        book = self.book
        sys.stdout.write(
            f"{len(self.accepted)} accepted, {len(self.doubted)} in doubt; {len(book.taken)} "
            f"taken, {book.again(marked=True)} again and marked\n"
        )
        assert self.accepted <= book.taken.keys(), "lost"
        assert book.taken.keys() <= self.accepted | self.doubted, "invented"
        assert twice(book.confirmed) == [], "confirmed twice"
        assert book.again(marked=False) == 0, "taken again without a mark"


def owner_of(cluster: Cluster) -> str | None:
    """Who owns the queue, as the container without a replica knows it."""
    name: object = row(cluster.members["f"].served, QUEUE)["owner"]
    return None if name is None else str(name)


def move(cluster: Cluster, holders: list[str]) -> None:
    """Move it, and look on until that is done."""
    relocate = ("queue", "relocate", cluster.url("f"), QUEUE, "--replicas", ",".join(holders))
    assert command(*relocate) == f"{QUEUE} is held by {', '.join(holders)}\n"


def move_and_kill(cluster: Cluster, holders: list[str], chance: random.Random) -> None:
    """Move it, and kill who owns it in the middle of that."""
    relocate = ("queue", "relocate", cluster.url("f"), QUEUE, "--replicas", ",".join(holders))
    outcome = json.loads(command(*relocate, "--no-wait", "--json"))
    assert outcome["wanted"] == holders
    time.sleep(chance.uniform(0.0, 0.3))
    owner = owner_of(cluster)
    if owner is not None:
        cluster.members[owner].kill()
        time.sleep(chance.uniform(0.0, 1.0))
        cluster.restart(owner)

    def is_moved() -> bool:
        found: dict[str, object] = dict(row(cluster.members["f"].served, QUEUE))
        return not found["moving"] and found["voters"] == holders

    within(SETTLE_TIMEOUT_S, is_moved, "the queue is moved")
