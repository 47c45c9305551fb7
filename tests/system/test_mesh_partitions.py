"""Queues with partitions over three linked containers, which all run in this process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import cogwork
from cogwork.client.publishing.outcome import OutcomeState
from cogwork.config.reading import parse
from cogwork.container.container import Container
from cogwork.container.federation import partitions
from cogwork.container.federation.move_intake import KeptAside, MoveIntake
from cogwork.dataplane.queue.item_history import take_away
from cogwork.io.loop import EventLoop
from cogwork.nodes.queue import QueueNode

from .meshes import Member, meshed
from .meshes import linked as linked_members

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    import pytest

    from cogwork.client.publishing.publisher import Publisher
    from cogwork.client.receiving.consumer import Consumer

QUEUE, LATER = "work/orders", "later/orders"
IDS = ("a", "b", "c")
QUEUES = """
[[queue]]
address = "work/orders"
ordering = "group-id"
deduplication_window_s = 60
partitions = 32
[[address]]
prefix = "later/"
kind = "queue"
ordering = "group-id"
"""
CONFIGURATION = f"""
id = "%s"
[[listen]]
port = 0
[mesh]
heartbeat_s = 0.2
{QUEUES}
"""
TIMEOUT_S = 40.0
Key = tuple[str, int, str]

GROUPS = [f"group-{number}" for number in range(24)]


def run(story: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(asyncio.wait_for(story, 2 * TIMEOUT_S))


async def until(is_so: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline_s, what
        await asyncio.sleep(0.01)


class Host:
    """A container, and a client that is connected to it."""

    def __init__(self, name: str) -> None:
        self.container = Container(parse(CONFIGURATION % name, "test"))
        self.clients = contextlib.AsyncExitStack()
        self.is_running = False

    async def start(self) -> None:
        await self.container.start()
        self.is_running = True
        url = self.container.endpoints[0]
        self.client = await self.clients.enter_async_context(cogwork.connect(url))

    async def stop(self) -> None:
        if self.is_running:
            self.is_running = False
            await self.clients.aclose()
            await self.container.stop(0)

    async def publisher(self, address: str = QUEUE) -> Publisher:
        return await self.clients.enter_async_context(self.client.publisher(address))

    async def consumer(self, credit: int, address: str = QUEUE) -> Consumer:
        return await self.clients.enter_async_context(self.client.consume(address, credit=credit))

    def node(self, address: str = QUEUE) -> QueueNode:
        node = self.container.vhosts[""].nodes[address]
        assert isinstance(node, QueueNode)
        return node

    @property
    def stored(self) -> int:
        """How many items came to be stored here."""
        return self.node().store.counts()["in"]

    def owned(self, address: str = QUEUE) -> list[bool]:
        """Say of each partition whether this container has it."""
        node = self.container.vhosts[""].nodes.get(address)
        if not isinstance(node, QueueNode) or node.inlet is None:
            return []
        return [owner is node.store for owner in node.inlet.owners]

    @property
    def has_all_owners(self) -> bool:
        inlet = self.node().inlet
        return inlet is not None and None not in inlet.owners


def is_shared_out(hosts: list[Host], address: str = QUEUE) -> bool:
    """Return whether each partition has exactly one owner among these containers."""
    owned = [host.owned(address) for host in hosts]
    return all(owned) and all(sum(each) == 1 for each in zip(*owned, strict=True))


def link(hosts: list[Host]) -> None:
    """Link the last container with each of the others."""
    *others, last = hosts
    for other in others:
        last.container.mesh.diallers.add(other.container.endpoints[0].removeprefix("amqp://"))


@contextlib.asynccontextmanager
async def linked(*names: str) -> AsyncIterator[list[Host]]:
    """Run containers that are all linked with each other, and know of each other."""
    hosts = [Host(name) for name in names]
    async with contextlib.AsyncExitStack() as stack:
        for host in hosts:
            await host.start()
            stack.push_async_callback(host.stop)
        for count in range(2, len(hosts) + 1):
            link(hosts[:count])
        await until(lambda: is_shared_out(hosts), "the containers share the queue")
        await until(lambda: all(host.has_all_owners for host in hosts), "all owners are known")
        yield hosts


async def consume(consumer: Consumer, got: list[tuple[str, str]]) -> None:
    """Take items for ever; note group and body before it accepts."""
    async for item in consumer:
        assert item.group_id is not None
        got.append((item.group_id, str(item.body)))
        await item.accept()


def test_groups_come_in_order_from_publishers_and_to_consumers_anywhere() -> None:
    async def story() -> None:
        async with linked(*IDS) as hosts:
            publishers = [await host.publisher() for host in hosts]
            got: list[tuple[str, str]] = []
            consumers = [
                await host.consumer(credit) for host, credit in zip(hosts, (1, 3, 50), strict=True)
            ]
            tasks = [asyncio.create_task(consume(each, got)) for each in consumers]
            count = 40
            for number in range(count):
                for at, group in enumerate(GROUPS):
                    # Each group has one publisher: between two there is no order.
                    publishers[at % 3].post(f"{number:03}", group_id=group)
                await asyncio.sleep(0)
            for publisher in publishers:
                await publisher.flush()
            await until(lambda: len(got) == count * len(GROUPS), "all have come")
            for task in tasks:
                task.cancel()
            seen: dict[str, list[str]] = defaultdict(list)
            for group, body in got:
                seen[group].append(body)
            expected = [f"{number:03}" for number in range(count)]
            assert {group: seen[group] for group in GROUPS} == dict.fromkeys(GROUPS, expected)
            assert all(host.stored for host in hosts), "each container owns some"
            assert sum(host.stored for host in hosts) == count * len(GROUPS)

    run(story())


def test_a_group_is_at_one_consumer_at_a_time() -> None:
    async def story() -> None:
        async with linked(*IDS) as hosts:
            publisher = await hosts[0].publisher()
            for number in range(20):
                await publisher.send(str(number), group_id="one")
            consumers = [await host.consumer(10) for host in hosts]
            has_it: list[Consumer] = []

            async def first_of(consumer: Consumer) -> None:
                async for item in consumer:
                    has_it.append(consumer)
                    if len(has_it) == 5:
                        await asyncio.sleep(0.3)  # a consumer that got one too would show up now
                    assert item.group_id == "one"

            tasks = [asyncio.create_task(first_of(each)) for each in consumers]
            await until(lambda: len(has_it) >= 10, "a consumer has its share")
            await asyncio.sleep(0.3)
            assert len(set(has_it)) == 1
            for task in tasks:
                task.cancel()

    run(story())


def test_a_message_id_is_accepted_once_whoever_sends_it_and_where() -> None:
    async def story() -> None:
        async with linked(*IDS) as hosts:
            publishers = [await host.publisher() for host in hosts]
            ids = [f"id-{number}" for number in range(200)]
            batches = [
                publisher.send_batch([cogwork.Message(each, message_id=each) for each in ids])
                for publisher in publishers
            ]
            for outcomes in await asyncio.gather(*batches):
                assert all(each.is_accepted for each in outcomes)
            assert sum(host.stored for host in hosts) == len(ids)
            bodies = [
                cogwork.Message.decode(message).body
                for host in hosts
                for message, _ in host.node().store.peek(1000)
            ]
            assert sorted(str(each) for each in bodies) == sorted(ids)
            assert all(host.stored for host in hosts), "each container owns some"

    run(story())


def test_what_has_no_group_and_no_message_id_stays_where_it_came() -> None:
    async def story() -> None:
        async with linked("a", "b") as (first, second):
            publisher = await first.publisher()
            for _ in range(50):
                await publisher.send("x")
            assert (first.stored, second.stored) == (50, 0)

    run(story())


def test_what_is_given_back_as_another_container_owns_it_is_shown() -> None:
    async def story() -> None:
        async with linked("a", "b") as hosts:
            publisher = await hosts[0].publisher()
            for host in hosts:  # each takes the other for the owner of everything
                inlet = host.node().inlet
                assert inlet is not None
                other = next(each for each in inlet.owners if each is not inlet.store)
                inlet.set_owners([other] * inlet.count)
            with contextlib.suppress(cogwork.Released):
                await publisher.send("x", group_id="g")
            shown = []
            for host in hosts:
                reply = await host.client.manage("READ", {"type": "queue", "name": QUEUE})
                assert isinstance(reply.body, dict)
                shown.append((reply.body["misdirected"], reply.body["in"]))
            assert shown == [(0, 0), (1, 0)]

    run(story())


def test_an_owner_that_stops_is_followed_by_others_and_nobody_is_told_accepted_wrongly() -> None:
    async def story() -> None:
        async with linked(*IDS) as hosts:
            first, second, stopping = hosts
            publisher = await first.publisher()
            before = await publisher.send_batch(
                [cogwork.Message(str(at), message_id=f"before-{at}") for at in range(100)]
            )
            assert all(each.is_accepted for each in before)
            lost = stopping.stored
            assert lost > 0
            posts = [
                publisher.post(str(at), message_id=f"during-{at}", group_id=GROUPS[at % 24])
                for at in range(300)
            ]
            await stopping.stop()
            outcomes = await asyncio.gather(*posts, return_exceptions=True)
            accepted = sum(not isinstance(each, BaseException) for each in outcomes)
            left = [first, second]
            await until(lambda: is_shared_out(left), "the others have all partitions")
            kept = sum(host.stored for host in left)
            assert kept <= 100 - lost + len(posts)
            assert kept + stopping.stored - 100 >= accepted, "accepted, and stored nowhere"
            after = await publisher.send_batch(
                [cogwork.Message(str(at), message_id=f"after-{at}") for at in range(100)]
            )
            assert {each.state for each in after} == {OutcomeState.ACCEPTED}
            assert sum(host.stored for host in left) == kept + 100

    run(story())


def test_one_that_leaves_gives_its_partitions_up_and_its_items_to_others() -> None:
    async def story() -> None:
        async with linked(*IDS) as hosts:
            *left, leaving = hosts
            publisher = await hosts[0].publisher()
            for group in GROUPS:
                await publisher.send("x", group_id=group)
            assert leaving.node().store.depth
            leaving.container.leave()
            await until(lambda: is_shared_out(left), "the others have all partitions")
            assert not any(leaving.owned())
            for group in GROUPS:
                await publisher.send("y", group_id=group)
            await until(lambda: not leaving.node().store.depth, "its items are moved")
            assert sum(host.node().store.depth for host in left) == 2 * len(GROUPS)

    run(story())


def test_one_that_leaves_keeps_what_nobody_can_ever_take_and_moves_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare = MoveIntake.prepare

    def without(
        intake: MoveIntake, key: Key, node: QueueNode, number: int, item: KeptAside
    ) -> str | None:
        if b"unfit" in item[0]:
            return "nobody wants that"
        return prepare(intake, key, node, number, item)

    monkeypatch.setattr(MoveIntake, "prepare", without)

    async def story() -> None:
        async with linked("a", "b") as (stays, leaves):
            store = leaves.node().store
            assert store.put(b"of another format", 7)
            for body in ("fit", "unfit", "fit, too", "unfit again"):
                assert store.put(cogwork.Message(body, group_id="g").encode())
            leaves.container.leave()
            await until(lambda: leaves.container.has_left, "it has left")
            taken = take_away(stays.node().store, 9)
            first, *others = [message for _, _, message, _, _ in taken]
            assert (first, [each for _, each, *_ in taken]) == (b"of another format", [7, 0, 0])
            bodies = [cogwork.Message.decode(each).body for each in others]
            assert bodies == ["fit", "fit, too"]
            assert store.depth == 2
            leaving = leaves.container.leaving
            assert leaving is not None
            assert leaving.facts["problem"] == (
                "2 items of 'work/orders' could not be moved: "
                "container a can never take them: nobody wants that"
            )

    run(story())


def test_one_that_joins_gets_what_is_held_only_when_nothing_depends_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partitions, "QUIET_S", 0.5)

    async def story() -> None:
        async with linked("a", "b") as hosts, contextlib.AsyncExitStack() as stack:
            publisher = await hosts[0].publisher(LATER)
            await until(lambda: is_shared_out(hosts, LATER), "b has the queue, too")

            async def publish() -> list[int]:
                """Send a message to each group; return how many each container has then."""
                for group in GROUPS:
                    await publisher.send("x", group_id=group)
                return [host.node(LATER).store.depth for host in hosts]

            assert all(await publish())
            newcomer = Host("c")
            await newcomer.start()
            stack.push_async_callback(newcomer.stop)
            link([*hosts, newcomer])
            hosts.append(newcomer)
            await until(lambda: is_shared_out(hosts, LATER), "c shares the queue")
            before = newcomer.owned(LATER)
            depths = await publish()
            assert depths[2] == 0
            assert sum(depths) == 2 * len(GROUPS)
            for host in hosts:
                host.node(LATER).store.purge()
            await until(lambda: sum(newcomer.owned(LATER)) > sum(before), "they are free now")
            await until(lambda: is_shared_out(hosts, LATER), "all agree on it")
            assert all(await publish())

    run(story())


def test_the_partitions_of_a_killed_owner_go_on_in_order(tmp_path: Path) -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    with meshed(tmp_path, IDS, edges, QUEUES) as members:
        linked_members(members.values())
        run(killed_in_the_middle(members))
        members["c"].start()
        linked_members(members.values())


async def killed_in_the_middle(members: dict[str, Member]) -> None:
    """Publish at one container and consume at another one while a third one is killed."""
    accepted: dict[str, list[int]] = defaultdict(list)
    got: list[tuple[str, str]] = []
    async with (
        cogwork.connect(members["a"].url) as near,
        cogwork.connect(members["b"].url) as far,
        near.publisher(QUEUE) as publisher,
    ):

        async def publish(numbers: range) -> int:
            """Send to every group; return how many were not accepted."""
            posts = [
                (group, number, publisher.post(str(number), group_id=group))
                for number in numbers
                for group in GROUPS
            ]
            failed = 0
            for group, number, post in posts:
                try:
                    await post
                    accepted[group].append(number)
                except (cogwork.InDoubt, cogwork.Released):
                    failed += 1
            return failed

        assert await publish(range(20)) == 0
        during = asyncio.create_task(publish(range(20, 200)))
        await asyncio.sleep(0)
        members["c"].kill()
        await during
        last = range(200, 210)
        deadline_s = time.monotonic() + TIMEOUT_S
        while await publish(range(199, 200)):
            assert time.monotonic() < deadline_s, "the others have all partitions"
            await asyncio.sleep(0.05)
        assert await publish(last) == 0
        async with far.consume(QUEUE) as consumer:
            task = asyncio.create_task(consume(consumer, got))
            ends = {(group, str(last[-1])) for group in GROUPS}
            await until(lambda: ends <= set(got), "the last ones have come")
            task.cancel()
    seen: dict[str, list[int]] = defaultdict(list)
    for group, body in got:
        seen[group].append(int(body))
    kept = 0
    for group in GROUPS:
        numbers = [number for number in seen[group] if number != 199]  # sent until it was taken
        assert numbers == sorted(set(numbers)), "in order, and none twice"
        wanted = [number for number in accepted[group] if number != 199]
        found = [number for number in wanted if number in set(numbers)]
        assert found == wanted[-len(found) :], "only what the killed one had is lost"
        assert set(last) <= set(found)
        kept += found == wanted
    assert 0 < kept < len(GROUPS), "some groups were the killed one's, and others not"
