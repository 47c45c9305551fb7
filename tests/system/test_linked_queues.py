"""Queues over linked containers: items that one shard lends to another container's consumers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

import cogwork
from cogwork.amqp.errors import AmqpError
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.terminus import Source
from cogwork.amqp.types import Described, Symbol
from cogwork.container.federation.shards import shard_of
from cogwork.container.mesh.names import FRAME_BYTES
from cogwork.nodes.queue.node import QueueNode
from cogwork.router.mesh.messages import Advertisement
from cogwork.router.mesh.wire import encode

from .linked import Linked, linked
from .stories import eventually, has_told, story

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.container.federation.queue_federation import QueueFederation
    from cogwork.dataplane.link import Link

LINE = ("a-b", "b-c")
QUEUE = "work/a"
QUIET_S = 0.2
BIG = b"x" * 300_000


async def consumer(
    mesh: Linked, name: str, address: str = QUEUE, credit: int = 50, **options: Any
) -> cogwork.client.Consumer:
    """Take items at a container until the test ends."""
    client = await mesh.client(name)
    return await mesh.enter(client.consume(address, credit=credit, **options))


def shard(mesh: Linked, name: str, address: str = QUEUE) -> dict[str, object]:
    """Count what a container's part of a queue has."""
    node = mesh.containers[name].vhosts[""].nodes.get(address)
    assert isinstance(node, QueueNode)
    return dict(node.store.counts())


def advertised(mesh: Linked, at: str, name: str) -> Advertisement:
    """Return what a container knows of another one."""
    return mesh.containers[at].mesh.mesh.database.records[name].advertisement


def lending(mesh: Linked, name: str) -> QueueFederation:
    return mesh.containers[name].mesh.reaches[""].queue_federation


def numbers(items: Iterable[cogwork.Item]) -> list[int]:
    """Return what is in items that are numbers."""
    return [cast("int", item.body) for item in items]


async def take(items: cogwork.client.Consumer, count: int) -> list[cogwork.Item]:
    """Take so many items."""
    taken: list[cogwork.Item] = []
    async with asyncio.timeout(30):
        while len(taken) < count:
            taken += await items.take(count - len(taken))
    return taken


async def post(
    mesh: Linked, name: str, *bodies: object, address: str = QUEUE, **fields: Any
) -> None:
    client = await mesh.client(name)
    for body in bodies:
        await client.publish(address, body, **fields)


@pytest.mark.parametrize("to", ["b", "c"], ids=["neighbour", "beyond"])
@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize("comes_first", ["consumer", "items"])
@story
async def test_items_are_worked_off_in_another_container(
    to: str, confirms: bool, comes_first: str
) -> None:
    async with linked(*LINE) as mesh:
        bodies = [*range(20), BIG]
        if comes_first == "items":
            await post(mesh, "a", *bodies)
        items = await consumer(mesh, to, confirms=confirms)
        if comes_first == "consumer":
            await post(mesh, "a", *bodies)
        for body in bodies:
            (item,) = await take(items, 1)
            assert item.body == body
            await item.accept()
        await items.flush()
        await eventually(lambda: shard(mesh, "a")["depth"] == 0, "the shard knows it")
        counts = shard(mesh, "a")
        assert (counts["in"], counts["accepted"], counts["redelivered"]) == (21, 21, 0)
        assert shard(mesh, to)["in"] == 0


@story
async def test_own_consumers_come_first_and_the_rest_goes_where_consumers_wait() -> None:
    async with linked(*LINE) as mesh:
        far = await consumer(mesh, "c", credit=10)
        own = await consumer(mesh, "a", credit=10)
        await mesh.settle()
        await post(mesh, "a", *range(10))
        await asyncio.sleep(2 * QUIET_S)
        assert (own.waiting, far.waiting) == (10, 0)
        await post(mesh, "a", *range(10, 20))
        got = await take(far, 10)
        assert sorted(numbers(got)) == list(range(10, 20))
        assert own.waiting == 10


@pytest.mark.parametrize("is_far", [True, False])
@story
async def test_released_and_failed_items_go_back_to_their_shard(is_far: bool) -> None:
    async with linked(*LINE) as mesh:
        items = await consumer(mesh, "c" if is_far else "a", credit=1)
        await post(mesh, "a", "x")
        (item,) = await take(items, 1)
        await item.release()
        (item,) = await take(items, 1)
        assert item.delivery_count == 0
        await item.modify(failed=True)
        (item,) = await take(items, 1)
        assert item.delivery_count == 1
        await item.modify(failed=True, annotations={"x-opt-why": "tired"})
        (item,) = await take(items, 1)
        assert (item.delivery_count, item.annotations) == (2, {"x-opt-why": "tired"})
        await item.accept()
        await eventually(lambda: shard(mesh, "a")["depth"] == 0, "the shard knows it")
        counts = shard(mesh, "a")
        assert (counts["released"], counts["modified"], counts["accepted"]) == (1, 2, 1)


@story
async def test_an_item_that_one_consumer_cannot_do_goes_to_another() -> None:
    async with linked(*LINE) as mesh:
        first = await consumer(mesh, "c", credit=1)
        await post(mesh, "a", "x")
        (item,) = await take(first, 1)
        await item.modify(failed=True, undeliverable_here=True)
        await asyncio.sleep(QUIET_S)
        assert first.waiting == 0
        second = await consumer(mesh, "b", credit=1)
        (item,) = await take(second, 1)
        await item.accept()
        await eventually(lambda: shard(mesh, "a")["depth"] == 0, "the shard knows it")


@story
async def test_a_rejected_item_is_dead_where_it_was_posted() -> None:
    configuration = '[[address]]\nprefix = "work"\nkind = "queue"\ndead_letter = "queue/dead"\n'
    async with linked(*LINE, configuration=configuration) as mesh:
        items = await consumer(mesh, "c")
        await post(mesh, "a", "x")
        (item,) = await take(items, 1)
        await item.reject("I do not like it", "app:taste")
        dead = await consumer(mesh, "b", "queue/dead")
        (item,) = await take(dead, 1)
        assert item.body == "x"
        assert shard(mesh, "a", "queue/dead")["in"] == 1
        assert "app:taste" in str(item.annotations) + str(item.properties)


@story
async def test_higher_priorities_are_lent_first() -> None:
    async with linked(*LINE) as mesh:
        for priority in (1, 9, 4, 7, 4):
            await post(mesh, "a", priority, priority=priority)
        items = await consumer(mesh, "c", credit=1)
        got = []
        for _ in range(5):
            (item,) = await take(items, 1)
            got.append(item.body)
            await item.accept()
        assert got == [9, 7, 4, 4, 1]


@story
async def test_a_group_stays_in_order_and_with_one_consumer_at_a_time() -> None:
    configuration = '[[queue]]\naddress = "work/a"\nordering = "group-id"\n'
    async with linked(*LINE, configuration=configuration) as mesh:
        consumers = {name: await consumer(mesh, name, credit=3) for name in "abc"}
        await mesh.settle()
        working: dict[str, str] = {}
        done: dict[str, list[object]] = {"red": [], "blue": [], "green": []}

        async def work(name: str, items: cogwork.client.Consumer) -> None:
            async for item in items:
                group, number = cast("tuple[str, int]", item.body)
                assert working.setdefault(group, name) == name, "two work on one group"
                await asyncio.sleep(0.002)
                done[group].append(number)
                if len(items_out[group]) == 0:
                    working.pop(group, None)
                await item.accept()

        items_out: dict[str, list[object]] = {"red": [], "blue": [], "green": []}
        tasks = [asyncio.create_task(work(*each)) for each in consumers.items()]
        for number in range(20):
            for group in done:
                await post(mesh, "a", [group, number], group_id=group)
        await eventually(lambda: sum(map(len, done.values())) == 60, "all is done")
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each for each in results if isinstance(each, AssertionError)] == []
        assert done == {group: list(range(20)) for group in done}


@story
async def test_a_selector_is_applied_where_the_items_are() -> None:
    async with linked(*LINE) as mesh:
        items = await consumer(mesh, "c", selector="colour = 'red'")
        for number in range(6):
            colour = "red" if number % 2 else "blue"
            await post(mesh, "a", number, properties={"colour": colour})
        got = await take(items, 3)
        assert [item.body for item in got] == [1, 3, 5]
        await asyncio.sleep(QUIET_S)
        assert items.waiting == 0
        assert shard(mesh, "a")["ready"] == 3


@story
async def test_browsers_see_only_their_own_shard_and_borrow_nothing() -> None:
    async with linked("a-b") as mesh:
        await post(mesh, "a", "here")
        client = await mesh.client("b")
        browser = await mesh.enter(client.browse(QUEUE))
        await mesh.settle()
        await asyncio.sleep(2 * QUIET_S)
        assert browser.waiting == 0
        assert shard(mesh, "a")["unsettled"] == 0


@story
async def test_items_of_all_containers_reach_one_consumer() -> None:
    async with linked("a-b", "b-c", "c-a") as mesh:
        items = await consumer(mesh, "b", credit=7)
        for name in "abc":
            await post(mesh, name, *([name, number] for number in range(30)))
        got: list[Any] = []
        for _ in range(90):
            (item,) = await take(items, 1)
            got.append(item.body)
            await item.accept()
        for name in "abc":
            assert [body for body in got if body[0] == name] == [
                [name, number] for number in range(30)
            ]


@story
async def test_a_consumer_that_goes_gives_back_what_it_has_not_seen() -> None:
    async with linked(*LINE) as mesh:
        items = await consumer(mesh, "c", credit=5)
        await post(mesh, "a", *range(5))
        (first,) = await take(items, 1)
        assert first.body == 0
        await eventually(lambda: shard(mesh, "a")["unsettled"] == 5, "all are lent")
        await items.shut()
        await eventually(lambda: shard(mesh, "a")["ready"] == 4, "they are back")
        assert shard(mesh, "a")["redelivered"] == 0
        other = await consumer(mesh, "b", credit=5)
        got = await take(other, 4)
        assert [item.body for item in got] == [1, 2, 3, 4]


@story
async def test_a_tunnel_that_breaks_while_items_are_out_loses_and_doubles_nothing() -> None:
    async with linked("a-b", "b-c", "a-d", "d-c") as mesh:
        items = await consumer(mesh, "c", credit=10)
        await post(mesh, "a", *range(30))
        out = await take(items, 5)
        transit = "b" if mesh.containers["a"].mesh.mesh.next_hop("c") == "b" else "d"
        mesh.cut_off(transit)
        await asyncio.gather(*(item.accept() for item in out))
        got: list[Any] = [item.body for item in out]
        while len(got) < 30:
            (item,) = await take(items, 1)
            got.append(item.body)
            await item.accept()
        assert sorted(got) == list(range(30)), "lost or doubled"
        await eventually(lambda: shard(mesh, "a")["depth"] == 0, "the shard knows it")
        counts = shard(mesh, "a")
        assert (counts["accepted"], counts["stale-claims"]) == (30, 0)


@story
async def test_all_that_a_consumer_has_is_named_after_a_break() -> None:
    """One frame has to name it, and the link between the containers is ended by a larger one."""
    count = 1600
    async with linked("a-b") as mesh:
        async with (await mesh.client("b")).publisher(QUEUE) as publisher:
            await publisher.send_batch(range(count))
        items = await consumer(mesh, "a", credit=2 * count)
        had: list[cogwork.Item] = []
        is_quiet = False
        while not is_quiet:
            try:
                async with asyncio.timeout(0.5):
                    had += await items.take()
            except TimeoutError:
                is_quiet = len(had) > 1000
        assert len(had) < count
        await has_told(await mesh.client("a"))
        mesh.cut_off("b")
        mesh.join_again("b")
        await eventually(
            lambda: bool(mesh.containers["a"].mesh.peer_links), "they are linked again"
        )
        async with asyncio.timeout(30):
            await items.accept(had)
            rest = await take(items, count - len(had))
            await items.accept(rest)
        assert sorted(numbers([*had, *rest])) == list(range(count))
        (peer_link,) = mesh.containers["a"].mesh.peer_links
        await asyncio.sleep(0.5)
        assert mesh.containers["a"].mesh.peer_links == [peer_link]


@pytest.mark.parametrize(
    ("said", "rest_bytes"), [("filter", 164), ("capabilities", 128), ("state", 164)]
)
@story
async def test_what_a_client_says_at_length_is_not_passed_on(said: str, rest_bytes: int) -> None:
    long = "x" * (FRAME_BYTES - rest_bytes)  # the client's attach just fits into a frame
    source = Source(address=QUEUE)
    if said == "filter":
        source.filter = {Symbol("of-its-own"): Described(Symbol("unknown"), long)}
    async with linked("a-b") as mesh:
        async with (await mesh.client("b")).publisher(QUEUE) as publisher:
            await publisher.send_batch(range(10))
        (peer_link,) = mesh.containers["a"].mesh.peer_links
        url = mesh.containers["a"].endpoints[0]
        client = await mesh.enter(cogwork.connect(url, name="wordy"))
        items = Wordy(client, QUEUE, 50, source=source)
        if said == "capabilities":
            items.capabilities = (Symbol(long),)
        if said == "state":
            shard = shard_of("b", advertised(mesh, "a", "b").incarnation)
            why = AmqpError(condition=Symbol("long"), description=long)
            items.presented = {shard.to_bytes(4, "big") + bytes(12): Rejected(error=why)}
        await mesh.enter(items)
        assert sorted(numbers(await take(items, 10))) == list(range(10))
        await asyncio.sleep(0.5)
        assert mesh.containers["a"].mesh.peer_links == [peer_link]


class Wordy(cogwork.client.Consumer):
    """A consumer whose attach says whatever a test needs."""

    capabilities: tuple[Symbol, ...] = ()
    presented: dict[bytes, DeliveryState | None] | None = None

    def desired_capabilities(self) -> tuple[Symbol, ...]:
        return (*super().desired_capabilities(), *self.capabilities)

    def unsettled_map(self, link: Link) -> dict[bytes, DeliveryState | None]:
        return {**super().unsettled_map(link), **(self.presented or {})}


@story
async def test_loans_end_when_nothing_comes_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.container.federation.queue_federation.IDLE_S", 0.3)
    async with linked(*LINE) as mesh:
        items = await consumer(mesh, "c")
        await post(mesh, "a", "x")
        (item,) = await take(items, 1)
        await item.accept()
        (known,) = lending(mesh, "c")._consumers[QUEUE].values()
        assert list(known.upstreams) == ["a"]
        await eventually(lambda: not known.upstreams, "the loan has ended")
        await asyncio.sleep(QUIET_S)
        assert not known.upstreams
        await post(mesh, "a", "y")
        (item,) = await take(items, 1)
        assert item.body == "y"


def recall_a_life(mesh: Linked, name: str) -> None:
    """Have a container hear of an earlier life of its own whose clock was ahead."""
    at = mesh.containers[name].mesh
    known = at.mesh.database.records[name].advertisement
    lie = Advertisement(origin=name, incarnation=known.incarnation + 1000, sequence=1)
    at.run(at.mesh.on_message(at.peer_links[0].number, encode(lie), time.monotonic()))


@pytest.mark.parametrize("is_outbid", [False, True], ids=["one life", "a later life is known"])
@pytest.mark.parametrize("back_at", ["c", "b"], ids=["same container", "another one"])
@story
async def test_a_client_that_comes_back_goes_on_with_what_it_had(
    back_at: str, is_outbid: bool
) -> None:
    async with linked("a-b", "b-c", "c-a") as mesh:
        if is_outbid:
            recall_a_life(mesh, "a")
            await eventually(lambda: advertised(mesh, "b", "a").life != 0, "it is outbid")
            await mesh.settle()
        urls = [mesh.containers[name].endpoints[0] for name in "cb"]
        client = await mesh.enter(cogwork.connect(urls))
        items = await mesh.enter(client.consume(QUEUE, credit=5))
        await post(mesh, "a", *range(5))
        out = await take(items, 3)
        await eventually(lambda: shard(mesh, "a")["unsettled"] == 5, "all are lent")
        await has_told(client)
        if back_at == "c":
            for connection in list(mesh.containers["c"].peers.connections):
                connection.lose()
        else:
            await mesh.stop("c")
        await asyncio.sleep(QUIET_S)
        for item in out:
            await item.accept()
        rest = await take(items, 2)
        assert sorted(numbers((*out, *rest))) == list(range(5))
        for item in rest:
            await item.accept()
        await eventually(lambda: shard(mesh, "a")["depth"] == 0, "the shard knows it")
        counts = shard(mesh, "a")
        assert (counts["accepted"], counts["stale-claims"]) == (5, 0)


@story
async def test_items_of_one_that_leaves_go_where_consumers_ask_for_them() -> None:
    async with linked("a-b", "a-c", "a-d", "b-c", "c-d") as mesh:
        few, many = await consumer(mesh, "c", credit=10), await consumer(mesh, "d", credit=30)
        await mesh.settle()
        client = await mesh.client("a")
        async with client.publisher(QUEUE) as publisher:
            await publisher.send_batch(range(1000))
        await eventually(
            lambda: shard(mesh, "a")["unsettled"] == 40, "all that is asked for is out"
        )
        mesh.containers["a"].leave()
        await eventually(lambda: shard(mesh, "a")["depth"] == 40, "all others are on their way")

        def depths() -> tuple[int, int]:
            here, there = (int(str(shard(mesh, name)["depth"])) for name in "cd")
            return here, there

        await eventually(lambda: sum(depths()) == 960, "all others are elsewhere")
        assert mesh.containers["b"].vhosts[""].nodes.get(QUEUE) is None
        here, there = depths()
        assert 2 < there / here < 4
        done: list[object] = []
        for items, count in ((few, 10), (many, 30)):
            for item in await take(items, count):
                done.append(item.body)
                await item.accept()
        while len(done) < 1000:
            for items in (few, many):
                if items.waiting:
                    for item in await items.take():
                        done.append(item.body)
                        await item.accept()
            await asyncio.sleep(0)
        assert sorted(done) == list(range(1000))  # type: ignore[type-var]  # they are numbers
