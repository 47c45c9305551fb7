"""A mesh that is parted for long: who has missed what was accepted does not stay, and is told."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from call_ends import caller_of

import cogwork

from .linked import Linked, linked
from .stories import eventually, story

CONDITION = "cogwork:messages-missed"
HOLD_S = 0.3


@pytest.fixture(autouse=True)
def _short_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.container.mesh.reach.LOST_HOLD_S", HOLD_S)


async def subscribed(mesh: Linked, name: str, address: str) -> cogwork.client.Subscription:
    client = await mesh.client(name)
    return await mesh.enter(client.subscribe(address))


def sees(mesh: Linked, name: str, other: str) -> bool:
    return mesh.containers[name].mesh.mesh.next_hop(other) is not None


async def parted(mesh: Linked, name: str, *others: str) -> None:
    """Cut a container off, until all others know that."""
    mesh.cut_off(name)
    await eventually(
        lambda: not any(sees(mesh, other, name) for other in others), f"{name} is seen by none"
    )


async def given_up(publisher: cogwork.client.Publisher, body: object, **to: Any) -> None:
    """Publish until nobody waits for those who cannot be reached any more."""
    async with asyncio.timeout(30):
        while True:
            try:
                await publisher.send(body, **to)
            except cogwork.InDoubt:
                await asyncio.sleep(0.05)
            else:
                return


async def told(messages: cogwork.client.Subscription) -> cogwork.LinkDetached:
    """Wait until a subscription has ended; return why."""
    async with asyncio.timeout(30):
        with pytest.raises(cogwork.LinkDetached) as caught:
            async for _ in messages:
                pass
    return caught.value


async def got(messages: cogwork.client.Subscription) -> object:
    """Return the next message's body."""
    async with asyncio.timeout(30):
        return (await messages.__anext__()).body


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@pytest.mark.parametrize("address", ["topic/red.one", "broadcast/news"])
@story
async def test_who_has_missed_what_was_accepted_is_detached_and_nobody_else(
    address: str, is_named: bool
) -> None:
    async with linked("a-b") as mesh:
        lacking = [await subscribed(mesh, "b", address) for _ in range(2)]
        if address.startswith("topic"):
            lacking.append(await subscribed(mesh, "b", "topic/red.#"))
        other = [await subscribed(mesh, "b", each) for each in ("topic/blue", "broadcast/other")]
        await mesh.settle()
        publisher = await mesh.enter(
            (await mesh.client("a")).publisher(address if is_named else None)
        )
        to: dict[str, Any] = {} if is_named else {"to": address}
        await publisher.send("before", **to)
        await parted(mesh, "b", "a")
        with pytest.raises(cogwork.InDoubt):
            await publisher.send("in doubt", **to)
        await given_up(publisher, "missed", **to)
        mesh.join_again("b")
        for each in lacking:
            error = await told(each)
            assert error.condition == CONDITION
            assert "container a" in error.description
        again = await subscribed(mesh, "b", address)
        await mesh.settle()
        await publisher.send("after", **to)
        assert await got(again) == "after"
        client = await mesh.client("a")
        for each, name in zip(other, ("topic/blue", "broadcast/other"), strict=True):
            await client.publish(name, "still here")
            assert await got(each) == "still here"


@story
async def test_who_has_missed_something_is_told_though_nobody_publishes_there_any_more() -> None:
    async with linked("a-b") as mesh:
        there = await subscribed(mesh, "b", "broadcast/news")
        await mesh.settle()
        async with (await mesh.client("a")).publisher("broadcast/news") as publisher:
            await publisher.send("before")
            await parted(mesh, "b", "a")
            await given_up(publisher, "missed")
        mesh.containers["a"].vhosts[""].drop("broadcast/news")
        mesh.join_again("b")
        assert (await told(there)).condition == CONDITION
        ends = mesh.containers["a"].mesh.data_connections()
        open_links = [link for each in ends for end in each.sessions for link in end.links.values()]
        await eventually(lambda: not any(link.is_attached for link in open_links), "it is closed")


@story
async def test_nobody_is_detached_when_nothing_was_accepted_meanwhile() -> None:
    async with linked("a-b") as mesh:
        there = await subscribed(mesh, "b", "topic/#")
        await mesh.settle()
        publisher = await mesh.enter((await mesh.client("a")).publisher("topic/a"))
        await publisher.send("before")
        await parted(mesh, "b", "a")
        with pytest.raises(cogwork.InDoubt):
            await publisher.send("in doubt")
        await asyncio.sleep(4 * HOLD_S + 1.0)
        await publisher.send("settled: nobody is told that it is accepted", settled=True)
        mesh.join_again("b")
        await mesh.settle()
        await publisher.send("after")
        assert [await got(there) for _ in range(2)] == ["before", "after"]


@story
async def test_each_container_that_gave_up_tells_and_who_came_later_stays() -> None:
    async with linked("a-b", "a-c", "b-c") as mesh:
        there = await subscribed(mesh, "c", "topic/#")
        await mesh.settle()
        publishers = [
            await mesh.enter((await mesh.client(name)).publisher("topic/a")) for name in "ab"
        ]
        await parted(mesh, "c", "a", "b")
        for each in publishers:
            await given_up(each, "missed")
        await asyncio.sleep(0.2)
        later = await subscribed(mesh, "c", "topic/#")
        mesh.join_again("c")
        assert (await told(there)).condition == CONDITION
        await mesh.settle()
        for each in publishers:
            await each.send("after")
        assert [await got(later) for _ in range(2)] == ["after", "after"]


@story
async def test_who_was_forgotten_altogether_has_missed_everything() -> None:
    async with linked("a-b") as mesh:
        there = [await subscribed(mesh, "b", each) for each in ("topic/#", "broadcast/news")]
        await mesh.settle()
        await parted(mesh, "b", "a")
        await asyncio.sleep(0.1)
        database = mesh.containers["a"].mesh.mesh.database
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(database, "_max_age_s", 0.0)
            await eventually(lambda: "b" not in database.records, "it is forgotten")
        await (await mesh.client("a")).publish("topic/a", "missed")
        mesh.join_again("b")
        for each in there:
            assert (await told(each)).condition == CONDITION
        again = await subscribed(mesh, "b", "topic/#")
        await mesh.settle()
        await (await mesh.client("a")).publish("topic/a", "after")
        assert await got(again) == "after"


@story
async def test_a_container_that_starts_anew_has_missed_nothing() -> None:
    async with linked("a-b") as mesh:
        await subscribed(mesh, "b", "topic/#")
        await mesh.settle()
        publisher = await mesh.enter((await mesh.client("a")).publisher("topic/a"))
        await mesh.stop("b")
        await given_up(publisher, "missed")
        mesh.clients.clear()
        await mesh.start("b", ["a"])
        there = await subscribed(mesh, "b", "topic/#")
        await mesh.settle()
        await publisher.send("after")
        assert await got(there) == "after"


@pytest.mark.parametrize("is_direct", [False, True], ids=["routed", "direct"])
@story
async def test_a_service_hears_fanouts_and_questions_again(is_direct: bool) -> None:
    async with linked("a-b") as mesh:
        heard: list[int] = []
        service = (await mesh.client("b")).service("cut", server="b", direct=is_direct)

        @service.method
        def note(number: int) -> None:
            heard.append(number)

        await mesh.enter(service)
        await mesh.settle()
        caller = await mesh.client("a")
        publisher = await mesh.enter(caller.publisher())
        await caller.fanout("cut", "note", settled=False, number=1)
        await parted(mesh, "b", "a")
        for address in ("broadcast/rpc/cut", "broadcast/rpc/$direct"):
            await given_up(publisher, None, to=address)
        mesh.join_again("b")
        await mesh.settle()
        async with asyncio.timeout(30):
            while 2 not in heard:  # the link has gone, or has not come back yet
                with suppress(cogwork.InDoubt):  # or it goes while it has the message
                    await caller.fanout("cut", "note", settled=False, number=2)
                await asyncio.sleep(0.05)
        if is_direct:
            url = f"{mesh.containers['a'].endpoints[0]}/"
            newcomer = await mesh.enter(cogwork.connect(url, direct=True))
            directory = caller_of(newcomer).directory
            assert directory is not None
            await eventually(lambda: len(directory) == 1, "the service answers who asks")
        assert heard[0] == 1


@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "anonymous"])
@story
async def test_who_resends_what_is_in_doubt_is_told_accepted_and_nobody_lacks_it(
    is_named: bool, is_batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mesh is in doubt for as long as it waits for a container that it has lost."""
    monkeypatch.setattr("cogwork.container.mesh.reach.LOST_HOLD_S", 60.0)
    async with linked("a-b") as mesh:
        here, there = [await subscribed(mesh, name, "topic/red") for name in "ab"]
        await mesh.settle()
        await parted(mesh, "b", "a")
        client = await mesh.client("a")
        to: dict[str, Any] = {} if is_named else {"to": "topic/red"}
        made = client.publisher("topic/red" if is_named else None, on_doubt="resend")
        async with asyncio.timeout(60), made as publisher:
            messages = [cogwork.Message(body, **to) for body in ("one", "two")]
            sent: list[asyncio.Future[Any]]
            if is_batch:
                sent = [asyncio.ensure_future(publisher.send_batch(messages))]
            else:
                sent = [asyncio.ensure_future(publisher.send(each)) for each in messages]
            seen: list[object] = []
            while len(seen) < 4 or set(seen) != {"one", "two"}:
                seen.append(await got(here))
            assert not any(each.done() for each in sent)
            mesh.join_again("b")
            outcomes = await asyncio.gather(*sent)
            if is_batch:
                assert all(each.is_accepted for each in outcomes[0])
            arrived: set[object] = set()
            while arrived != {"one", "two"}:
                arrived.add(await got(there))


@story
async def test_who_leaves_what_is_sent_again_and_again_is_told_that_it_is_in_doubt() -> None:
    async with linked("a-b") as mesh:
        await subscribed(mesh, "b", "topic/red")
        await mesh.settle()
        client = await mesh.client("a")
        async with client.publisher("topic/red", on_doubt="resend") as publisher:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("cogwork.container.mesh.reach.LOST_HOLD_S", 60.0)
                await parted(mesh, "b", "a")
                with pytest.raises(cogwork.InDoubt):
                    await publisher.send("left", timeout_s=0.5)
                (outcome,) = await publisher.send_batch(["left"], timeout_s=0.5)
                assert outcome.state is cogwork.OutcomeState.IN_DOUBT
                await asyncio.wait_for(publisher.flush(), 10)
