"""Topics and other multicast over linked containers, in one event loop."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE = ("a-b", "b-c")
RING = ("a-b", "b-c", "c-d", "d-a", "a-c")
BIG = b"x" * 300_000
IMPATIENT = '[[address]]\nprefix = "topic"\nkind = "topic"\nblock_timeout_s = 0.5\n'
QUIET_S = 0.1
"""What has not come by then does not come: everything here is in one process."""


async def bodies(messages: cogwork.client.Subscription, count: int) -> list[Any]:
    """Take so many messages, and see that no more come."""
    taken: list[object] = []
    async with asyncio.timeout(30):
        while len(taken) < count:
            taken += [each.body for each in await messages.take()]
    await asyncio.sleep(QUIET_S)
    return taken + await rest(messages)


async def rest(messages: cogwork.client.Subscription) -> list[Any]:
    """Take what is there."""
    taken: list[object] = []
    while messages.waiting:
        taken += [each.body for each in await messages.take()]
    return taken


@pytest.mark.parametrize("edges", [LINE, RING], ids=["line", "ring"])
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@story
async def test_every_subscriber_everywhere_gets_one_copy_in_order(
    edges: tuple[str, ...], is_named: bool
) -> None:
    async with linked(*edges) as mesh:
        subscriptions = [
            await mesh_subscription(mesh, name, pattern)
            for name in mesh.containers
            for pattern in ("topic/red.#", "topic/*.green", "topic/red.green")
        ]
        await mesh_subscription(mesh, "c", "topic/blue")
        await mesh.settle()
        for name in mesh.containers:
            client = await mesh.client(name)
            address = "topic/red.green" if is_named else None
            async with client.publisher(address) as publisher:
                for number in range(20):
                    to: dict[str, Any] = {} if is_named else {"to": "topic/red.green"}
                    await publisher.send([name, number], **to)
        for each in subscriptions:
            got = await bodies(each, 20 * len(mesh.containers))
            assert got == [[name, number] for name in mesh.containers for number in range(20)]


async def mesh_subscription(
    mesh: Linked, name: str, address: str, **options: Any
) -> cogwork.client.Subscription:
    """Subscribe at a container until the test ends."""
    client = await mesh.client(name)
    return await mesh.enter(client.subscribe(address, **options))


@story
async def test_presettled_messages_come_too() -> None:
    async with linked(*LINE) as mesh:
        there = await mesh_subscription(mesh, "c", "topic/a", settled=True)
        await mesh.settle()
        client = await mesh.client("a")
        async with client.publisher("topic/a") as publisher:
            for number in range(500):
                await publisher.send(number, settled=True)
        assert await bodies(there, 500) == list(range(500))


@pytest.mark.parametrize("address", ["topic/a", None], ids=["named", "anonymous"])
@story
async def test_big_messages_pass_between_small_ones_in_order(address: str | None) -> None:
    async with linked(*LINE) as mesh:
        there = await mesh_subscription(mesh, "c", "topic/#")
        near = await mesh_subscription(mesh, "a", "topic/a")
        await mesh.settle()
        client = await mesh.client("a")
        sent = [BIG if number % 3 == 1 else b"%d" % number for number in range(30)]
        async with client.publisher(address) as publisher:
            to: dict[str, Any] = {} if address else {"to": "topic/a"}
            posts = [publisher.post(body, **to) for body in sent]
            for post in posts:
                await post
        assert await bodies(there, 30) == sent
        assert await bodies(near, 30) == sent


@pytest.mark.parametrize("address", ["broadcast/news", "multicast/news"])
@story
async def test_plain_multicast_reaches_all(address: str) -> None:
    configuration = '[[address]]\nprefix = "multicast"\ndistribution = "multicast"\n'
    async with linked(*LINE, configuration=configuration) as mesh:
        there = [await mesh_subscription(mesh, name, address) for name in "abbc"]
        await mesh.settle()
        for name in "abc":
            client = await mesh.client(name)
            await client.publish(address, name)
            async with client.publisher(address) as publisher:
                for number in range(5):
                    await publisher.send([name, number])
                await publisher.send(BIG)
        expected = [body for name in "abc" for body in (name, *([name, n] for n in range(5)), BIG)]
        for each in there:
            assert await bodies(each, len(expected)) == expected


@story
async def test_no_local_leaves_out_what_the_same_connection_sent() -> None:
    async with linked(*LINE) as mesh:
        own = await mesh_subscription(mesh, "a", "topic/a", no_local=True)
        second = await mesh.client("a", is_new=True)
        other = await mesh.enter(second.subscribe("topic/a", no_local=True))
        far = await mesh_subscription(mesh, "c", "topic/a", no_local=True)
        await mesh.settle()
        await (await mesh.client("a")).publish("topic/a", "from a")
        await (await mesh.client("c")).publish("topic/a", "from c")
        assert await bodies(own, 1) == ["from c"]
        assert await bodies(other, 2) == ["from a", "from c"]
        assert await bodies(far, 1) == ["from a"]


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@story
async def test_no_local_holds_while_others_publish_in_both_containers(is_named: bool) -> None:
    async with linked("a-b") as mesh:
        own = await mesh_subscription(mesh, "a", "topic/#", no_local=True)
        all_there = await mesh_subscription(mesh, "b", "topic/#")
        await mesh.settle()
        clients = {
            "own": await mesh.client("a"),
            "second": await mesh.client("a", is_new=True),
            "far": await mesh.client("b", is_new=True),
        }

        async def publish(name: str) -> None:
            async with clients[name].publisher("topic/a" if is_named else None) as publisher:
                to: dict[str, Any] = {} if is_named else {"to": "topic/a"}
                for number in range(20):
                    await publisher.send([name, number], **to)

        await asyncio.gather(*map(publish, clients))
        got = await bodies(own, 40)
        for name in ("second", "far"):
            assert [each for each in got if each[0] == name] == [[name, n] for n in range(20)]
        assert len(await bodies(all_there, 60)) == 60


@story
async def test_patterns_bound_at_run_time_are_told() -> None:
    async with linked(*LINE) as mesh:
        there = await mesh_subscription(mesh, "c", "topic/")
        client = await mesh.client("a")
        await client.publish("topic/red.one", 1)
        await there.bind("red.*")
        await there.bind("#")
        await mesh.settle()
        await client.publish("topic/red.one", 2)
        await there.unbind("#")
        await mesh.settle()
        await client.publish("topic/blue.one", 3)
        await client.publish("topic/red.one", 4)
        await there.unbind("red.*")
        await mesh.settle()
        await client.publish("topic/red.one", 5)
        assert await bodies(there, 2) == [2, 4]


@story
async def test_virtual_hosts_are_worlds_of_their_own() -> None:
    async with linked(*LINE, configuration='[[vhost]]\nname = "blue"\n') as mesh:
        blue = {name: await mesh.client(name, "blue") for name in "ac"}
        in_blue = await mesh.enter(blue["c"].subscribe("topic/a"))
        outside = await mesh_subscription(mesh, "c", "topic/a")
        await mesh.settle()
        await blue["a"].publish("topic/a", "blue")
        await (await mesh.client("a")).publish("topic/a", "plain")
        assert await bodies(in_blue, 1) == ["blue"]
        assert await bodies(outside, 1) == ["plain"]


@story
async def test_links_behind_which_nobody_wants_a_topic_carry_none_of_it() -> None:
    async with linked("a-b", "b-c", "b-d") as mesh:
        there = await mesh_subscription(mesh, "c", "topic/red")
        local = await mesh_subscription(mesh, "a", "topic/blue")
        await mesh.settle()
        client = await mesh.client("a")
        await client.publish("topic/red", 0)
        await client.publish("topic/blue", 0)
        await asyncio.sleep(QUIET_S)
        links = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("b", "d"), ("d", "b")]
        before = {link: mesh.data_frames(*link) for link in links}
        async with client.publisher() as publisher:
            for number in range(1, 100):
                await publisher.send(number, to="topic/blue")
                await publisher.send(number, to="topic/green")
        assert {link: mesh.data_frames(*link) for link in links} == before
        async with client.publisher() as publisher:
            for number in range(1, 100):
                await publisher.send(number, to="topic/red")
        after = {link: mesh.data_frames(*link) for link in links}
        assert after["b", "d"] == before["b", "d"]
        assert after["d", "b"] == before["d", "b"]
        assert after["a", "b"] - before["a", "b"] >= 99
        assert after["b", "c"] - before["b", "c"] >= 99
        assert await bodies(there, 100) == list(range(100))
        assert await bodies(local, 100) == list(range(100))


@story
async def test_many_subscribers_at_one_container_cost_one_copy_on_the_way() -> None:
    async with linked(*LINE) as mesh:
        there = [await mesh_subscription(mesh, "c", "topic/#") for _ in range(8)]
        await mesh.settle()
        client = await mesh.client("a")
        await client.publish("topic/red", 0)
        before = mesh.data_frames("a", "b")
        async with client.publisher() as publisher:
            for number in range(1, 51):
                await publisher.send(number, to="topic/red")
        assert 50 <= mesh.data_frames("a", "b") - before <= 60
        for each in there:
            assert await bodies(each, 51) == list(range(51))


@pytest.mark.parametrize("address", ["topic/a", "broadcast/a", None])
@story
async def test_traffic_goes_another_way_when_a_transit_container_dies(address: str | None) -> None:
    async with linked("a-b", "b-c", "a-d", "d-c") as mesh:
        there = await mesh_subscription(mesh, "c", address or "topic/#")
        await mesh.settle()
        client = await mesh.client("a")
        accepted: list[int] = []
        doubtful: list[int] = []
        transit = "b" if mesh.containers["a"].mesh.mesh.next_hop("c") == "b" else "d"
        to: dict[str, Any] = {} if address else {"to": "topic/a"}
        async with client.publisher(address) as publisher:
            for number in range(300):
                if number == 100:
                    mesh.cut_off(transit)
                try:
                    await publisher.send(number, **to)
                    accepted.append(number)
                except cogwork.InDoubt:
                    doubtful.append(number)
                await asyncio.sleep(0.001)
        assert set(range(100)) <= set(accepted)
        assert accepted[-1] == 299, f"in doubt to the last: {doubtful[-5:]}"
        await asyncio.sleep(QUIET_S)
        got = await rest(there)
        assert got == sorted(set(got)), "twice, or out of order"
        assert set(accepted) <= set(got)


@story
async def test_a_container_whose_clock_went_back_is_heard_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with linked("a-b") as mesh:
        there = await mesh_subscription(mesh, "a", "topic/#")
        await mesh.settle()
        await (await mesh.client("b")).publish("topic/x", "before")
        await mesh.stop("b")
        mesh.clients.pop(("b", ""))
        true = time.time
        with monkeypatch.context() as past:
            past.setattr(time, "time", lambda: true() - 3600)
            await mesh.start("b", dials=["a"])
        await mesh.settle()
        await (await mesh.client("b")).publish("topic/x", "after")
        assert await bodies(there, 2) == ["before", "after"]


@story
async def test_a_container_that_is_lost_leaves_publishers_in_doubt_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.container.mesh.reach.LOST_HOLD_S", 0.5)
    async with linked(*LINE) as mesh:
        await mesh_subscription(mesh, "c", "topic/#")
        await mesh_subscription(mesh, "c", "broadcast/a")
        local = await mesh_subscription(mesh, "a", "topic/a")
        await mesh.settle()
        client = await mesh.client("a")
        topics = [
            await mesh.enter(client.publisher(address)) for address in ("topic/a", "broadcast/a")
        ]
        for each in topics:
            await each.send("before")
        mesh.cut_off("c")
        await eventually(
            lambda: mesh.containers["a"].mesh.mesh.next_hop("c") is None, "it is known to be lost"
        )
        for each in topics:
            with pytest.raises(cogwork.InDoubt):
                await each.send("in doubt")
        with pytest.raises(cogwork.InDoubt):
            await client.publish("topic/a", "in doubt")
        await asyncio.sleep(2.5)
        for each in topics:
            await each.send("after")
        await client.publish("topic/a", "after")
        assert await bodies(local, 5) == ["before", "in doubt", "in doubt", "after", "after"]


@pytest.mark.parametrize("patterns", [("topic/a", "topic/#"), ("topic/a",)])
@story
async def test_a_subscriber_that_goes_stops_the_copies(patterns: Iterable[str]) -> None:
    async with linked(*LINE) as mesh:
        first = [await mesh_subscription(mesh, "c", pattern) for pattern in patterns]
        await mesh.settle()
        client = await mesh.client("a")
        await client.publish("topic/a", 1)
        for each in first:
            assert await bodies(each, 1) == [1]
            await each.shut()
        await mesh.settle()
        before = mesh.data_frames("a", "b")
        await client.publish("topic/a", 2)
        assert mesh.data_frames("a", "b") == before
        again = await mesh_subscription(mesh, "c", "topic/a")
        await mesh.settle()
        await client.publish("topic/a", 3)
        assert await bodies(again, 1) == [3]


RESTRICTED = """
[anonymous]
mesh = true
permissions = [{ address = "topic/ok.#", rights = ["send", "receive"] }]
"""


@story
async def test_a_user_who_may_send_only_to_some_topics_keeps_the_order_over_all_of_them() -> None:
    async with linked(*LINE, configuration=RESTRICTED) as mesh:
        there = await mesh_subscription(mesh, "c", "topic/ok.#")
        await mesh.settle()
        client = await mesh.client("a")
        sent: list[object] = []
        async with client.publisher() as publisher:
            posts = []
            for number in range(60):
                body = BIG if number % 10 == 5 else number
                posts.append(publisher.post(body, to=f"topic/ok.{number % 3}"))
                sent.append(body)
                if number % 20 == 7:
                    with pytest.raises(cogwork.Rejected):
                        await publisher.post(number, to="topic/bad")
                    with pytest.raises(cogwork.Rejected):
                        await publisher.post(BIG, to="topic/bad")
            for post in posts:
                await post
        assert await bodies(there, 60) == sent


@pytest.mark.parametrize("address", ["topic/flood", None], ids=["named", "anonymous"])
@story
async def test_a_stuck_subscriber_behind_a_link_costs_the_others_behind_it_nothing(
    address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.container.mesh.reach.BACKLOG_BYTES_MAX", 50_000)
    monkeypatch.setattr("cogwork.container.mesh.tunnel_acceptor.WINDOW", 100)
    count = 1500
    async with linked("a-b", configuration=IMPATIENT) as mesh:
        stuck = await mesh.enter((await mesh.client("b")).subscribe("topic/flood", credit=1))
        other = await mesh.client("b", is_new=True)
        fine = await mesh.enter(other.subscribe("topic/flood", credit=2 * count))
        await mesh.settle()
        client = await mesh.client("a")
        async with client.publisher(address) as publisher:
            to: dict[str, Any] = {} if address else {"to": "topic/flood"}
            for number in range(count):
                publisher.post(cogwork.Message(number, subject="x" * 200, **to), settled=True)
            await publisher.flush()
            assert await bodies(fine, count) == list(range(count))
        await eventually(lambda: stuck.failure is not None, "who takes nothing is detached")
        assert "too slow" in str(stuck.failure)


@story
async def test_a_pattern_that_no_topic_takes_harms_nobody_else() -> None:
    async with linked("a-b", "b-c") as mesh:
        mesh.containers["b"].mesh.subscribe("", "topic/" + ".".join(["x"] * 129))
        here, there = await mesh.client("a"), await mesh.client("c")
        news = await mesh.enter(there.subscribe("topic/news"))
        await mesh.settle()
        await here.publish("topic/news", "before")
        mesh.cut_off("b")
        mesh.join_again("b")
        await mesh.settle()
        async with asyncio.timeout(10):
            await here.publish("topic/news", "after")
            assert [each.body for each in await news.take(2)] == ["before", "after"]


@pytest.mark.parametrize("address", ["topic/x", "broadcast/x"])
def test_publishers_hear_nothing_of_subscribers_that_go(address: str) -> None:
    @story
    async def told() -> None:
        async with linked("a-b") as mesh:
            here, there = await mesh.client("a"), await mesh.client("b")
            stays = await mesh.enter(here.subscribe(address, credit=1000))
            is_over = False

            async def publish(publisher: cogwork.client.Publisher) -> None:
                while not is_over:
                    await publisher.send(cogwork.Message("news", to=address))

            async with here.publisher() as publisher:
                publishing = [asyncio.create_task(publish(publisher)) for _ in range(20)]
                had: list[object] = []
                draining = asyncio.create_task(_drain(stays, had))
                for _ in range(8):
                    async with there.subscribe(address, credit=1000) as goes:
                        await goes.take(20)
                    before = len(had)
                    await eventually(partial(_is_longer, had, before + 50), "who stays gets more")
                is_over = True
                await asyncio.gather(*publishing)
                draining.cancel()

    told()


def _is_longer(had: list[object], count: int) -> bool:
    return len(had) > count


async def _drain(messages: cogwork.client.Subscription, had: list[object]) -> None:
    """Take all that comes: who took nothing for five seconds would have to go."""
    async for batch in messages.batches():
        had += batch


AWAITED = '[[address]]\nprefix = "topic"\nkind = "topic"\naccept = "settled"\n'


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@pytest.mark.parametrize("address", ["topic/red.one", "broadcast/news"])
@story
async def test_a_publisher_waits_for_no_application_anywhere(address: str, is_named: bool) -> None:
    async with linked(*LINE) as mesh:
        idle = [await mesh_subscription(mesh, name, address, credit=10) for name in "abc"]
        await mesh.settle()
        client = await mesh.client("a")
        to: dict[str, Any] = {} if is_named else {"to": address}
        async with client.publisher(address if is_named else None) as publisher:
            for number in range(5):
                await publisher.send(number, timeout_s=30, **to)
        for each in idle:
            assert await bodies(each, 5) == list(range(5))


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@pytest.mark.parametrize("worst_at", ["a", "c"])
@story
async def test_where_settlement_is_awaited_the_worst_outcome_comes_from_anywhere(
    worst_at: str, is_named: bool
) -> None:
    async with linked(*LINE, configuration=AWAITED) as mesh:
        takers = {}
        for name in "abc":
            client = await mesh.client(name)
            takers[name] = await mesh.enter(client.consume("topic/red", credit=10))
        await mesh.settle()
        client = await mesh.client("a")
        to: dict[str, Any] = {} if is_named else {"to": "topic/red"}
        async with client.publisher("topic/red" if is_named else None) as publisher:
            for outcome in ("accept", "release", "modify", "reject"):
                post = publisher.post(outcome, **to)
                for name in sorted(takers, key=lambda each: each == worst_at):
                    item = await anext(takers[name])
                    assert not post.is_done
                    if name != worst_at or outcome == "accept":
                        await item.accept()
                    elif outcome == "release":
                        await item.release()
                    elif outcome == "modify":
                        await item.modify(failed=True)
                    else:
                        await item.reject("not like this")
                assert await told_outcome(post) == outcome


async def told_outcome(post: Any) -> str:
    """Wait for a post's outcome; return what a consumer did to bring it about."""
    doings = {cogwork.Rejected: "reject", cogwork.Released: "release", cogwork.InDoubt: "modify"}
    try:
        async with asyncio.timeout(30):
            await post
    except tuple(doings) as error:
        done = doings[type(error)]
        return done if done != "reject" or error.description == "not like this" else str(error)
    return "accept"
