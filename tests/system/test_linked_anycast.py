"""Anycast, requests and replies over linked containers, in one event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.client.requests.replies import Replies

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LINE = ("a-b", "b-c")
QUIET_S = 0.1
BIG = b"x" * 300_000


async def consumer(
    mesh: Linked, name: str, address: str, credit: int = 50
) -> cogwork.client.Subscription:
    """Take messages at a container until the test ends."""
    client = await mesh.client(name)
    return await mesh.enter(client.subscribe(address, credit=credit))


def answered(name: str, request: cogwork.Message) -> list[object]:
    """Reply with a container's name, and what was asked."""
    return [name, request.body]


def sequences(mesh: Linked) -> list[int]:
    """Return how often each container has told what it wants."""
    tables = [each.mesh.mesh.interests.own_table for each in mesh.containers.values()]
    return [0 if table is None else table.sequence for table in tables]


async def rest(messages: cogwork.client.Subscription) -> list[object]:
    """Take what is there, after all has had its time."""
    await asyncio.sleep(QUIET_S)
    taken: list[object] = []
    while messages.waiting:
        taken += [each.body for each in await messages.take()]
    return taken


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@pytest.mark.parametrize("address", ["unicast/a", "anycast/a"])
@story
async def test_a_consumer_is_found_wherever_it_is(address: str, is_named: bool) -> None:
    async with linked(*LINE) as mesh:
        there = await consumer(mesh, "c", address)
        await mesh.settle()
        for name in "abc":
            client = await mesh.client(name)
            async with client.publisher(address if is_named else None) as publisher:
                to: dict[str, Any] = {} if is_named else {"to": address}
                await publisher.send(f"small from {name}", **to)
                await publisher.send(BIG, **to)
        assert await rest(there) == [body for name in "abc" for body in (f"small from {name}", BIG)]


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@story
async def test_closest_takes_its_own_consumers_first(is_named: bool) -> None:
    async with linked(*LINE) as mesh:
        far = await consumer(mesh, "c", "unicast/a")
        near = await consumer(mesh, "b", "unicast/a")
        await mesh.settle()
        client = await mesh.client("a")
        publisher = await mesh.enter(client.publisher("unicast/a" if is_named else None))
        to: dict[str, Any] = {} if is_named else {"to": "unicast/a"}
        for number in range(10):
            await publisher.send(number, **to)
        assert await rest(near) == list(range(10))
        assert await rest(far) == []
        own = await consumer(mesh, "a", "unicast/a")
        for number in range(10, 20):
            await publisher.send(number, **to)
        assert await rest(own) == list(range(10, 20))
        await own.shut()
        await publisher.send(20, **to)
        await near.shut()
        await mesh.settle()
        await publisher.send(21, **to)
        assert await rest(far) == [21]


@story
async def test_a_local_consumer_that_came_first_hides_no_other() -> None:
    async with linked(*LINE) as mesh:
        own = await consumer(mesh, "a", "unicast/a")
        client = await mesh.client("a")
        await client.publish("unicast/a", "here")
        far = await consumer(mesh, "c", "unicast/a")
        await mesh.settle()
        await own.shut()
        await client.publish("unicast/a", "there")
        assert await rest(far) == ["there"]


@story
async def test_balanced_shares_out_over_all_containers() -> None:
    async with linked("a-b", "b-c", "c-a") as mesh:
        consumers = {name: await consumer(mesh, name, "anycast/a", credit=4) for name in "abc"}
        await mesh.settle()
        client = await mesh.client("a")
        counts = dict.fromkeys("abc", 0)
        async with client.publisher("anycast/a") as publisher:
            posts = []
            for number in range(300):
                await publisher.ready()
                posts.append(publisher.post(number))
                for name, each in consumers.items():
                    while each.waiting:
                        counts[name] += len(await each.take())
                await asyncio.sleep(0)
            for name, each in consumers.items():
                counts[name] += len(await rest(each))
            for post in posts:
                await post
        assert sum(counts.values()) == 300
        assert min(counts.values()) >= 20, counts


@story
async def test_without_a_consumer_anywhere_nothing_is_taken() -> None:
    async with linked(*LINE) as mesh:
        client = await mesh.client("a")
        with pytest.raises(cogwork.Released):
            await client.publish("unicast/a", "nobody")
        there = await consumer(mesh, "c", "unicast/a")
        await mesh.settle()
        await client.publish("unicast/a", "somebody")
        assert await rest(there) == ["somebody"]
        await there.shut()
        await mesh.settle()
        with pytest.raises(cogwork.Released):
            await client.publish("unicast/a", "nobody again")


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@story
async def test_the_publisher_hears_why_its_message_is_rejected(is_named: bool) -> None:
    async with linked(*LINE) as mesh:
        there = await mesh.client("c")
        items = await mesh.enter(there.consume("unicast/x"))
        await mesh.settle()
        here = await mesh.client("a")
        async with here.publisher("unicast/x" if is_named else None) as publisher:
            to: dict[str, Any] = {} if is_named else {"to": "unicast/x"}
            sent = [asyncio.create_task(publisher.send(number, **to)) for number in range(3)]
            for _ in sent:
                (item,) = await items.take(1)
                if item.body == 1:
                    await item.reject("I do not like it", "app:taste")
                else:
                    await item.accept()
            await sent[0]
            with pytest.raises(cogwork.Rejected, match="I do not like it") as caught:
                await sent[1]
            assert caught.value.condition == "app:taste"
            await sent[2]


@story
async def test_a_consumer_that_stops_stops_its_publishers_and_nobody_else() -> None:
    async with linked(*LINE) as mesh:
        stopped = await consumer(mesh, "c", "unicast/slow", credit=5)
        other = await consumer(mesh, "c", "unicast/fast", credit=50)
        await mesh.settle()
        client = await mesh.client("a")
        slow = await mesh.enter(client.publisher("unicast/slow"))
        fast = await mesh.enter(client.publisher("unicast/fast"))
        posts = [slow.post(number) for number in range(1000)]
        for number in range(500):
            await fast.send(number)
            while other.waiting:
                await other.take()
        held = sum(
            entry.held
            for each in mesh.containers.values()
            for space in (each.vhosts[""].space, each.vhosts[""].near)
            for entry in space.entries.values()
        )
        assert held <= 200, "nothing bounds what is on its way"
        assert stopped.waiting == 5
        got: list[object] = []
        while len(got) < 1000:
            got += [each.body for each in await stopped.take()]
        assert got == list(range(1000))
        for post in posts:
            await post


@pytest.mark.parametrize("edges", [LINE, ("a-b", "b-c", "c-a")], ids=["line", "ring"])
@story
async def test_requests_and_replies_cross_the_mesh(edges: tuple[str, ...]) -> None:
    async with linked(*edges) as mesh:
        for name in mesh.containers:
            client = await mesh.client(name)
            await mesh.enter(client.serve(f"unicast/{name}", partial(answered, name)))
        await mesh.settle()
        for asking in mesh.containers:
            client = await mesh.client(asking)
            for asked in mesh.containers:
                for body in (1, BIG):
                    reply = await client.request(f"unicast/{asked}", body, timeout_s=5)
                    assert reply.body == [asked, body]


@story
async def test_reply_addresses_cost_the_protocol_nothing() -> None:
    async with linked(*LINE) as mesh:
        server = await mesh.client("c")
        await mesh.enter(server.serve("unicast/echo", lambda request: request.body))
        await mesh.settle()
        before = sequences(mesh)
        for number in range(20):
            async with cogwork.connect(mesh.containers["a"].endpoints[0]) as client:
                reply = await client.request("unicast/echo", number, timeout_s=5)
                assert reply.body == number
        assert sequences(mesh) == before
        reach = mesh.containers["c"].mesh.reaches[""]
        assert len(reach.reply_routes._entries) == 1


@story
async def test_reply_addresses_that_somebody_invents_cost_no_links() -> None:
    async with linked("a-b") as mesh:
        client = await mesh.client("a")
        invented = [f"_reply/b.{life:x}/1" for life in range(200)]
        invented += [f"_reply/nobody-{number}.1/1" for number in range(200)]
        async with client.publisher() as publisher:
            outcomes = await publisher.send_batch(cogwork.Message(1, to=each) for each in invented)
        assert {outcome.state for outcome in outcomes} == {cogwork.OutcomeState.RELEASED}
        service = mesh.containers["a"].mesh
        assert set(service.reaches[""].reply_routes._entries) == {"b"}
        session = service.tunnels.to("b")
        assert session is not None
        assert len(session.links) == 1


@story
async def test_a_tunnel_that_is_full_harms_nobody_who_has_a_link_in_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked("a-b") as mesh:
        client = await mesh.client("a")
        there = await mesh.enter((await mesh.client("b")).subscribe("topic/#"))
        await mesh.settle()
        first = await mesh.enter(client.publisher("topic/first"))
        await first.send("1")
        session = mesh.containers["a"].mesh.tunnels.to("b")
        assert session is not None
        session.handle_max = len(session.links) - 1
        for number in range(2):
            async with client.publisher(f"topic/more-{number}") as publisher:
                with pytest.raises(cogwork.InDoubt):
                    await publisher.send("lost")
        await first.send("2")
        assert client.connections == 1
        assert [(await anext(there)).body for _ in range(2)] == ["1", "2"]
        told = [each.getMessage() for each in caplog.records if "the limit of" in each.msg]
        assert len(told) == 1
        assert told[0].startswith("container b: ")
        session.handle_max += 1
        publisher = await mesh.enter(client.publisher("topic/later"))
        async with asyncio.timeout(30):
            while True:
                try:
                    await publisher.send("3")
                except cogwork.InDoubt:
                    await asyncio.sleep(0.05)
                else:
                    break
        assert (await anext(there)).body == "3"


@asynccontextmanager
async def reply_source(mesh: Linked, name: str) -> AsyncIterator[str]:
    """Give a reply address of a client that goes with it."""
    async with cogwork.connect(mesh.containers[name].endpoints[0]) as client:
        replies = Replies(client)
        await replies.open()
        yield replies.reply_to


@story
async def test_a_named_sender_reaches_a_reply_address_and_learns_that_it_has_gone() -> None:
    async with linked(*LINE) as mesh:
        client = await mesh.client("a")
        async with reply_source(mesh, "c") as address, client.publisher(address) as publisher:
            await asyncio.wait_for(publisher.ready(), 5)
            await publisher.send(cogwork.Message("unasked"))
        with pytest.raises(cogwork.Released):
            await client.publish(address, "too late")
        mesh.containers["a"].vhosts[""].drop(address)
        await mesh.enter(client.publisher(address))
        reach = mesh.containers["a"].mesh.reaches[""]
        await eventually(lambda: address in reach._gone, "it is known to have gone")
        await asyncio.sleep(0.3)
        before = mesh.data_frames("a", "b")
        await asyncio.sleep(1)
        assert mesh.data_frames("a", "b") - before <= 2, "it is asked for again and again"


@story
async def test_ways_that_nobody_uses_any_more_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.container.mesh.reply_routes.IDLE_S", 0.2)
    monkeypatch.setattr("cogwork.container.vhost.virtual_host.IDLE_S", 0.2)
    async with linked("a-b") as mesh:
        client = await mesh.client("a")
        there = await consumer(mesh, "b", "unicast/a")
        await mesh.settle()
        server = await mesh.client("b")
        await mesh.enter(server.serve("unicast/echo", lambda request: request.body))
        await mesh.settle()
        async with client.publisher("unicast/a") as publisher:
            await publisher.send(1)
        assert (await client.request("unicast/echo", 2, timeout_s=5)).body == 2

        def links() -> int:
            return sum(
                len(session.links)
                for each in mesh.containers.values()
                for connection in each.mesh.data_connections()
                for session in connection.sessions
            )

        assert links() >= 4
        await eventually(lambda: links() == 0, "all links between containers are closed")
        await client.publish("unicast/a", 3)
        assert (await client.request("unicast/echo", 4, timeout_s=5)).body == 4
        assert await rest(there) == [1, 3]


@story
async def test_names_that_are_too_long_to_be_told_are_refused_clearly() -> None:
    async with linked("a-b") as mesh:
        client = await mesh.client("a")
        for address in ("topic/" + "x" * 2100, "unicast/" + "ä" * 1100, "work/" + "x" * 2100):
            with pytest.raises(cogwork.LinkRefused, match="at most 2048 are allowed"):
                await mesh.enter(client.subscribe(address))
        good = await mesh.enter(client.subscribe("topic/a"))
        with pytest.raises(cogwork.CogworkError, match="at most 2048 are allowed"):
            await good.bind("x" * 2100)
        await client.publish("topic/a", "still there")
        assert await rest(good) == ["still there"]


@story
async def test_an_address_that_was_a_queue_here_reaches_consumers_elsewhere() -> None:
    async with linked("a-b") as mesh:
        client = await mesh.client("a")
        queue = {"type": "queue", "name": "jobs"}
        await client.manage("CREATE", queue, {"durability": "memory"})
        await client.publish("jobs", "goes with the queue")
        await client.manage("DELETE", queue)
        there = await consumer(mesh, "b", "jobs")
        await mesh.settle()
        await client.publish("jobs", "passed on", timeout_s=5)
        assert await rest(there) == ["passed on"]
