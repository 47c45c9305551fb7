"""Tunnels that go back to a cheaper way, over linked containers in one event loop."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from cogwork.container.mesh import service
from cogwork.container.mesh.tunnels import origin_of

from .linked import Linked, linked
from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import cogwork

TRIANGLE = ("a-b", "a-c", "c-b")
BEHIND = ("a-d", "d-b", "d-c", "c-b")
"""Here `a` has the same neighbour on either way to `b`."""

PAUSE_S = 0.5
"""Some sweeps, so that a tunnel rests."""


BURSTS_S = 3.0


@pytest.fixture(autouse=True)
def _sweeps_are_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SWEEP_S", 0.05)


def carried(mesh: Linked, one: str, other: str) -> int:
    """Count the messages that have gone over a link, in either direction."""
    peer_links = mesh.containers[one].mesh.peer_links
    return sum(sum(peer_link.data.carried) for peer_link in peer_links if peer_link.peer == other)


async def cut(mesh: Linked, one: str, other: str) -> None:
    """Remove a link, and wait until it has gone."""
    mesh.containers[other].mesh.diallers.remove(mesh.address(one))
    await eventually(lambda: not mesh.containers[one].mesh.is_linked(other), "the link has gone")
    await mesh.settle()


async def mend(mesh: Linked, one: str, other: str) -> None:
    """Add a link again, and wait until it is in use."""
    mesh.containers[other].mesh.diallers.add(mesh.address(one))
    await eventually(lambda: mesh.containers[one].mesh.is_linked(other), "the link is there")
    await mesh.settle()
    best = mesh.containers["a"].mesh.mesh.routes
    await eventually(lambda: len(best.tree.path_to("b")) == direct(mesh), "all know it")


def direct(mesh: Linked) -> int:
    """Count the containers on the cheap way."""
    return 3 if "d" in mesh.containers else 2


def neighbours_with_tunnels(mesh: Linked, name: str) -> list[str]:
    """List the neighbours by which a container's own tunnels go."""
    return [
        peer_link.peer
        for peer_link in mesh.containers[name].mesh.peer_links
        for session in peer_link.data.connection.sessions
        if origin_of(session) is None
    ]


def end(streams: list[Stream]) -> None:
    for stream in streams:
        if stream.reader is not None:
            stream.reader.cancel()


@dataclass
class Stream:
    """Numbers that go from one container to another, each of which must come once, in order.

    Attributes:
        send: Sends one.
        came: Those that have come.
        sent: How many were sent.
        reader: Who takes them.
    """

    send: Callable[[int], Awaitable[object]]
    came: list[int] = field(default_factory=list)
    sent: int = 0
    reader: asyncio.Task[None] | None = None

    async def go_on(self, count: int) -> None:
        """Send some more, and wait until they have come."""
        for _ in range(count):
            await self.send(self.sent)
            self.sent += 1
        await eventually(lambda: len(self.came) >= self.sent, "all comes")
        assert self.came == list(range(self.sent))


async def read(messages: cogwork.client.Subscription, stream: Stream) -> None:
    async for message in messages:
        stream.came.append(int(str(message.body)))


async def work(items: cogwork.client.Consumer, stream: Stream) -> None:
    async for item in items:
        stream.came.append(int(str(item.body)))
        await item.accept()


async def streams(mesh: Linked) -> list[Stream]:
    """Have everything that uses tunnels go from `a` to `b`: copy, deliveries, items, replies."""
    here, there = await mesh.client("a"), await mesh.client("b")
    found: list[Stream] = []
    for address in ("topic/x", "topic/y", "broadcast/x", "anycast/x", "unicast/x"):
        messages = await mesh.enter(there.subscribe(address))
        publisher = await mesh.enter(here.publisher(address))
        # One of them asks for no outcome: nobody would hear of a message that is lost.
        found.append(Stream(partial(publisher.send, settled=address == "topic/y")))
        found[-1].reader = asyncio.create_task(read(messages, found[-1]))
    items = await mesh.enter(there.consume("work/x"))
    publisher = await mesh.enter(here.publisher("work/x"))
    found.append(Stream(publisher.send))
    found[-1].reader = asyncio.create_task(work(items, found[-1]))
    await mesh.enter(there.serve("unicast/double", lambda request: 2 * int(str(request.body))))

    async def ask(number: int) -> None:
        reply = await here.request("unicast/double", number)
        assert reply.body == 2 * number
        found[-1].came.append(number)

    found.append(Stream(ask))
    return found


@pytest.mark.parametrize(
    ("edges", "cheap", "dear"),
    [(TRIANGLE, "ab", "ac"), (BEHIND, "db", "dc")],
    ids=["first hop", "further on"],
)
@story
async def test_traffic_goes_back_to_the_cheaper_way(
    edges: tuple[str, ...], cheap: str, dear: str
) -> None:
    async with linked(*edges) as mesh:
        found = await streams(mesh)
        await mesh.settle()
        for stream in found:
            await stream.go_on(10)
        assert carried(mesh, *cheap) >= 10 * len(found)
        assert carried(mesh, *dear) == 0
        await cut(mesh, *cheap)
        for stream in found:
            await stream.go_on(10)
        assert carried(mesh, *dear) >= 10 * len(found)
        await mend(mesh, *cheap)
        before = 0
        while before != carried(mesh, *dear):
            await asyncio.sleep(PAUSE_S)
            before = carried(mesh, *dear)
            for stream in found:
                await stream.go_on(2)
        assert carried(mesh, *cheap) >= 2 * len(found)
        end(found)


def set_cost(mesh: Linked, one: str, other: str, cost: int) -> None:
    """Give a link another cost in both directions."""
    for name, peer in ((one, other), (other, one)):
        at = mesh.containers[name].mesh
        for peer_link in at.peer_links:
            if peer_link.peer == peer:
                at.run(at.mesh.set_cost(peer_link.number, cost, time.monotonic()))


async def send_in_bursts(stream: Stream, chance: Random, end_s: float) -> None:
    while time.monotonic() < end_s:
        for _ in range(chance.randrange(1, 20)):
            await stream.send(stream.sent)
            stream.sent += 1
        await asyncio.sleep(chance.random() * PAUSE_S)


@story
async def test_tunnels_that_move_while_traffic_comes_in_bursts_lose_and_double_nothing() -> None:
    async with linked(*TRIANGLE) as mesh:
        found = await streams(mesh)
        await mesh.settle()
        end_s = time.monotonic() + BURSTS_S
        async with asyncio.TaskGroup() as tasks:
            for seed, stream in enumerate(found):
                tasks.create_task(send_in_bursts(stream, Random(seed), end_s))
            while time.monotonic() < end_s:
                for cost in (9, 1):
                    set_cost(mesh, "a", "b", cost)
                    await asyncio.sleep(PAUSE_S)
        assert carried(mesh, "a", "c") > 0, "nothing has gone the other way"
        for stream in found:
            await stream.go_on(1)
        end(found)


@story
async def test_a_tunnel_with_something_in_it_stays_on_the_dearer_way() -> None:
    async with linked(*TRIANGLE) as mesh:
        here, there = await mesh.client("a"), await mesh.client("b")
        await cut(mesh, "a", "b")
        items = await mesh.enter(there.consume("work/x", credit=1))
        await here.publish("work/x", "held")
        (held,) = await items.take(1)
        assert neighbours_with_tunnels(mesh, "b") == ["c"]
        await mend(mesh, "a", "b")
        await asyncio.sleep(PAUSE_S)
        assert neighbours_with_tunnels(mesh, "b") == ["c"]
        await held.accept()
        await eventually(lambda: neighbours_with_tunnels(mesh, "b") == ["a"], "the tunnel moves")
        before = carried(mesh, "a", "c")
        await here.publish("work/x", "free")
        (free,) = await items.take(1)
        await free.accept()
        assert (free.body, free.delivery_count) == ("free", 0)
        assert carried(mesh, "a", "c") == before


def costs_at_a(mesh: Linked, near: str, far: str) -> tuple[int, int]:
    """Return what the outlets of an address at `a` cost."""
    reach = mesh.containers["a"].vhosts[""].reach
    assert reach is not None
    ways = reach._ways["unicast/x"]
    return ways[near].end.cost, ways[far].end.cost


@story
async def test_the_closest_consumer_is_another_one_when_costs_change() -> None:
    async with linked("a-b", "a-c") as mesh:
        there = {name: await mesh.client(name) for name in "bc"}
        taken = {
            name: await mesh.enter(client.subscribe("unicast/x")) for name, client in there.items()
        }
        await mesh.settle()
        here = await mesh.client("a")
        async with here.publisher("unicast/x") as publisher:
            await publisher.send("opens the ways")
            for near, far in ("bc", "cb"):
                set_cost(mesh, "a", near, 1)
                set_cost(mesh, "a", far, 9)
                await eventually(lambda: costs_at_a(mesh, near, far) == (1, 9), "it is known")  # noqa: B023  # it ends within the loop
                before = {name: each.waiting for name, each in taken.items()}
                for number in range(10):
                    await publisher.send(number)
                await eventually(lambda: sum(s.waiting for s in taken.values()) % 10 == 1, "come")
                assert taken[near].waiting - before[near] == 10


@story
async def test_a_link_to_what_can_be_no_name_is_told_and_tried_on() -> None:
    link = '[[link]]\nurl = "amqp://b..c:5672"\n'
    async with linked("a-b") as mesh:
        await mesh.start("c", ["a"], link)
        bad = next(each for each in mesh.containers["c"].mesh.diallers if "b..c" in str(each.url))
        await eventually(lambda: bad.has_failed, "it is told")
        assert "this cannot be a host's name" in str(bad.problem)
        assert bad._task is not None
        assert not bad._task.done()
        await eventually(mesh.is_settled, "all else goes on")


@story
async def test_a_container_that_was_forgotten_may_come_back_with_its_clock_put_back() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cogwork.container.mesh.tunnels.STRANGER_S", 0.1)
        async with linked("a-b") as mesh:
            there = await mesh.enter((await mesh.client("a")).subscribe("topic/#"))
            await mesh.settle()
            await (await mesh.client("b")).publish("topic/x", "in the first life")
            await mesh.stop("b")
            database = mesh.containers["a"].mesh.mesh.database
            patched.setattr(database, "_max_age_s", 0.0)
            await eventually(lambda: "b" not in database.records, "it is forgotten")
            patched.setattr(database, "_max_age_s", 180.0)
            await asyncio.sleep(0.3)
            now_s = time.time()
            patched.setattr(time, "time", lambda: now_s - 3600)
            await mesh.start("b", ["a"])
            await mesh.settle()
            client = await mesh.client("b", is_new=True)
            async with asyncio.timeout(30):
                await client.publish("topic/x", "in the second life")
            bodies = [(await anext(there)).body for _ in range(2)]
            assert bodies == ["in the first life", "in the second life"]


@story
async def test_another_container_at_a_links_url_is_found_though_the_first_one_is_linked() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cogwork.container.mesh.dialler.LOOK_S", 0.3)
        async with (
            linked("b-d", "c-d") as mesh,
            FaultyProxy(f"amqp://{mesh.address('b')}") as proxy,
        ):
            await mesh.start("a", configuration=f'[[link]]\nurl = "{proxy.url}"\n')
            a = mesh.containers["a"].mesh
            await eventually(lambda: a.is_linked("b"), "it is the first one's")
            mesh.containers["b"].mesh.diallers.add(f"amqp://{mesh.address('a')}")
            proxy.refuse(True)
            proxy.cut()
            await eventually(
                lambda: [each.dialler for each in a.peer_links] == [None], "by its own link"
            )
            await asyncio.sleep(0.5)
            assert a.is_linked("b")
            assert next(iter(a.diallers)).problem is None
            proxy.lead_to(f"amqp://{mesh.address('c')}")
            proxy.refuse(False)
            await eventually(lambda: a.is_linked("c"), "the one that is there now is found")
            assert a.is_linked("b")
