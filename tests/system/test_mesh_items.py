"""A consumer that comes back at another container goes on with what it has from elsewhere."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.bench.servers.process import free_ports
from cogwork.client.links.receiver import Receiver
from cogwork.config.reading import parse
from cogwork.container.container import Container
from cogwork.container.mesh.tunnels import Tunnels
from cogwork.nodes.queue import QueueNode

from .meshes import linked, meshed
from .proxy import FaultyProxy
from .stories import QUICKLY, eventually, has_told, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cogwork.dataplane.session import SessionEndpoint

CONFIGURATION = """
id = "{id}"
{links}
[[listen]]
port = {port}

[mesh]
heartbeat_s = 0.2

[[address]]
prefix = "queue/"
in_doubt = "redeliver"
in_doubt_timeout_s = {in_doubt_s}
"""


@dataclass
class Three:
    """Containers a, b and c in this event loop, each linked with both others."""

    containers: dict[str, Container]

    def __getitem__(self, name: str) -> Container:
        return self.containers[name]

    def url(self, name: str) -> str:
        return self[name].endpoints[0]

    def counts(self, name: str, address: str = "queue/a") -> dict[str, int]:
        node = self[name].vhosts[""].nodes.get(address)
        return node.store.counts() if isinstance(node, QueueNode) else {}

    def knows_all(self) -> bool:
        return all(
            each.mesh.mesh.next_hop(other) is not None
            for each in self.containers.values()
            for other in self.containers.keys() - {each.id}
        )


@asynccontextmanager
async def three(in_doubt_s: float = 20.0) -> AsyncIterator[Three]:
    names = "abc"
    ports = free_ports(3)
    containers: dict[str, Container] = {}
    for at, name in enumerate(names):
        links = "".join(f'[[link]]\nurl = "127.0.0.1:{port}"\n' for port in ports[:at])
        text = CONFIGURATION.format(id=name, port=ports[at], links=links, in_doubt_s=in_doubt_s)
        containers[name] = Container(parse(text, "configuration"))
    together = Three(containers)
    try:
        for container in containers.values():
            await container.start()
        await eventually(together.knows_all, "all know each other")
        yield together
    finally:
        for container in containers.values():
            await container.stop(drain_timeout_s=0)


@dataclass
class Mover:
    """A client that knows c and b, in this order, each through a proxy."""

    before: FaultyProxy
    after: FaultyProxy
    mesh: cogwork.Client

    async def leave(self) -> None:
        """Break the connection to c; there will be none to b before `arrive`."""
        self.after.refuse(refuses=True)
        self.before.refuse(refuses=True)
        self.before.cut()
        await eventually(lambda: not self.mesh.is_connected, "the loss is noticed")

    async def arrive(self) -> None:
        self.after.refuse(refuses=False)
        await eventually(lambda: self.mesh.is_connected, "it is connected again")
        assert self.mesh.container.container_id == "b"

    async def move(self) -> None:
        await self.leave()
        await self.arrive()


@asynccontextmanager
async def mover(containers: Three) -> AsyncIterator[Mover]:
    async with (
        FaultyProxy(containers.url("c")) as before,
        FaultyProxy(containers.url("b")) as after,
        cogwork.connect([before.url, after.url], retry=QUICKLY, force=True) as mesh,
    ):
        assert mesh.container.container_id == "c"
        yield Mover(before, after, mesh)


async def put(containers: Three, name: str, *bodies: object) -> None:
    async with (
        cogwork.connect(containers.url(name), force=True) as mesh,
        mesh.publisher("queue/a") as publisher,
    ):
        for outcome in await publisher.send_batch(list(bodies)):
            assert outcome.is_accepted


async def taken(
    mesh: cogwork.Client, items: cogwork.client.Consumer, count: int
) -> list[cogwork.Item]:
    found = [await anext(items) for _ in range(count)]
    await has_told(mesh)
    return found


@story
async def test_what_is_held_is_accepted_through_another_container() -> None:
    async with three() as containers, mover(containers) as client:
        await put(containers, "a", "x")
        async with client.mesh.consume("queue/a", credit=5) as items:
            (item,) = await taken(client.mesh, items, 1)
            assert containers.counts("a")["unsettled"] == 1
            await client.move()
            await item.accept()
            assert item.stage == "settled"
            counts = containers.counts("a")
            assert (counts["depth"], counts["accepted"], counts["in-doubt"]) == (0, 1, 0)
            assert (counts["out"], counts["redelivered"]) == (2, 0)
            await put(containers, "a", "y")
            await (await anext(items)).accept()
        assert containers.counts("a")["accepted"] == 2


@story
async def test_what_was_claimed_while_disconnected_is_confirmed_once() -> None:
    async with three() as containers, mover(containers) as client:
        await put(containers, "a", "x", "y")
        async with client.mesh.consume("queue/a", credit=5) as items:
            first, second = await taken(client.mesh, items, 2)
            await client.leave()
            claim = first.accept()
            second.release()
            await client.arrive()
            await claim
            again = await anext(items)
            assert again.body == second.body
            await again.accept()
        counts = containers.counts("a")
        assert (counts["depth"], counts["accepted"], counts["stale-claims"]) == (0, 2, 0)


@story
async def test_a_claim_whose_confirmation_was_lost_is_confirmed_again() -> None:
    async with three() as containers, mover(containers) as client:
        await put(containers, "a", "x")
        async with client.mesh.consume("queue/a", credit=5) as items:
            (item,) = await taken(client.mesh, items, 1)
            client.before.hold_replies()
            claim = item.accept()
            await eventually(lambda: containers.counts("a")["accepted"] == 1, "it is committed")
            await client.move()
            await claim
        assert containers.counts("a")["accepted"] == 1


@story
async def test_what_another_has_by_now_is_stale() -> None:
    async with three(in_doubt_s=0.1) as containers, mover(containers) as client:
        await put(containers, "a", "x")
        async with client.mesh.consume("queue/a", credit=5) as items:
            (item,) = await taken(client.mesh, items, 1)
            await client.leave()
            async with (
                cogwork.connect(containers.url("a"), force=True) as other,
                other.consume("queue/a") as others,
            ):
                theirs = await anext(others)
                await client.arrive()
                with pytest.raises(cogwork.StaleAttempt):
                    await item.accept()
                await theirs.accept()
        counts = containers.counts("a")
        assert (counts["accepted"], counts["depth"]) == (1, 0)


@story
async def test_many_shards_go_on_before_anything_new_comes() -> None:
    async with three() as containers, mover(containers) as client:
        async with client.mesh.consume("queue/a", credit=30) as items:
            for name in "abc":
                await put(containers, name, *range(10))
            held = await taken(client.mesh, items, 30)
            for name in "ab":
                await put(containers, name, *range(100, 200))
            await client.move()
            await items.accept(held)
            fresh = await taken(client.mesh, items, 30)
            assert all(isinstance(item.body, int) and item.body >= 100 for item in fresh)
            await items.accept(fresh)
        assert [containers.counts(name)["stale-claims"] for name in "abc"] == [0, 0, 0]


@story
async def test_a_shard_that_cannot_be_reached_is_waited_for_and_then_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with three() as containers, mover(containers) as client:
        await put(containers, "a", "x")
        async with client.mesh.consume("queue/a", credit=5) as items:
            (item,) = await taken(client.mesh, items, 1)
            reaches = Tunnels.to

            def reach(self: Tunnels, container: str) -> SessionEndpoint | None:
                own = containers["b"].mesh.tunnels
                return None if self is own and container == "a" else reaches(self, container)

            monkeypatch.setattr(Tunnels, "to", reach)
            await client.move()
            with pytest.raises(cogwork.InDoubt):
                await item.accept()
            monkeypatch.undo()
            await put(containers, "b", "y")
            other = await anext(items)
            assert other.body == "y"
            await other.accept()
        counts = containers.counts("a")
        assert (counts["depth"], counts["in-doubt"], counts["accepted"]) == (1, 1, 0)


@story
async def test_a_client_may_leave_while_shards_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with three() as containers, AsyncExitStack() as stack:
        client = await stack.enter_async_context(mover(containers))
        await put(containers, "a", "x")
        items = await stack.enter_async_context(client.mesh.consume("queue/a", credit=5))
        await taken(client.mesh, items, 1)
        reaches = Tunnels.to

        def reach(self: Tunnels, container: str) -> SessionEndpoint | None:
            own = containers["b"].mesh.tunnels
            return None if self is own else reaches(self, container)

        monkeypatch.setattr(Tunnels, "to", reach)
        await client.move()
        await eventually(lambda: bool(containers["b"].links), "it has attached")
        await items.shut()
        await eventually(lambda: not containers["b"].links, "it has gone")
        assert client.mesh.is_connected
        assert client.mesh.connections == 2
        assert containers.counts("a")["in-doubt"] == 1


@story
async def test_what_the_client_gives_no_credit_for_is_left_to_its_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with three() as containers, mover(containers) as client:
        await put(containers, "a", "x")
        async with client.mesh.consume("queue/a", credit=5) as items:
            await taken(client.mesh, items, 1)
            monkeypatch.setattr(Receiver, "attached", lambda _self, _link: None)
            await client.move()
            await eventually(lambda: containers.counts("a")["unsettled"] == 1, "it goes on")
            await eventually(lambda: containers.counts("a")["in-doubt"] == 1, "it is given up")
            assert containers.counts("a")["unsettled"] == 0
            assert items.link is not None
            assert items.link.is_attached


@story
async def test_of_many_items_a_thousand_go_on() -> None:
    async with three() as containers, mover(containers) as client:
        await put(containers, "a", *range(1100))
        async with client.mesh.consume("queue/a", credit=1100) as items:
            held = await taken(client.mesh, items, 1100)
            await client.move()
            with pytest.raises(cogwork.InDoubt) as caught:
                await items.accept(held)
            assert len(caught.value.items) == 100
        assert containers.counts("a")["accepted"] == 1000


def test_a_container_is_killed_and_its_consumer_goes_on_elsewhere(tmp_path: Path) -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    with meshed(tmp_path, "abc", edges) as members:
        linked(members.values())

        @story
        async def killed() -> None:
            async with cogwork.connect(members["a"].url) as mesh, mesh.publisher("work/a") as out:
                assert all(each.is_accepted for each in await out.send_batch(range(20)))
            urls = [members["c"].url, members["b"].url]
            async with cogwork.connect(urls, retry=QUICKLY) as mesh:
                async with mesh.consume("work/a", credit=20) as items:
                    held = await taken(mesh, items, 20)
                    members["c"].kill()
                    await items.accept(held)
                assert mesh.container.container_id == "b"

        killed()
        members["c"].start()
        (queue,) = (row for row in members["a"].served.status()["queues"] if row["depth"] == 0)
        assert (queue["accepted"], queue["in-doubt"], queue["redelivered"]) == (20, 0, 0)
        linked(members.values())
