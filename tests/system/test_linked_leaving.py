"""What goes with the items of a container that leaves: what they have been through there."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.amqp.types import Symbol, UInt, ULong
from cogwork.container.federation import move_intake
from cogwork.container.federation.move_link import MoveWay
from cogwork.container.federation.moving import BATCH
from cogwork.nodes.queue import QueueNode

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from pathlib import Path

QUEUE, DEAD = "queue/moved", "queue/dead"
DELAY_S = 1000.0
COUNT = 1200
CONFIGURATION = f"""
[[queue]]
address = "{QUEUE}"
dead_letter = "{DEAD}"
maximum_delivery_count = 3
ttl_s = 2000
"""
DELAYED: dict[str, object] = {"x-opt-delivery-delay": UInt(1_000_000)}


def node(mesh: Linked, name: str, address: str = QUEUE) -> QueueNode:
    found = mesh.containers[name].vhosts[""].nodes.get(address)
    assert isinstance(found, QueueNode)
    return found


async def leave(mesh: Linked, name: str) -> str | None:
    """Have a container leave; return what it says that was wrong."""
    container = mesh.containers[name]
    container.leave()
    await eventually(lambda: container.has_left, f"{name} has left")
    assert container.leaving is not None
    problem = container.leaving.facts["problem"]
    assert problem is None or isinstance(problem, str)
    return problem


async def send(mesh: Linked, name: str, *messages: cogwork.Message) -> None:
    client = await mesh.client(name)
    async with client.publisher(QUEUE) as publisher:
        await publisher.send_batch(messages)


@pytest.mark.parametrize("durability", ["memory", "disk"])
@story
async def test_delayed_items_are_due_when_they_would_have_been(
    durability: str, tmp_path: Path
) -> None:
    configuration = f"""{CONFIGURATION}durability = "{durability}"\n"""
    async with linked(configuration=configuration) as mesh:
        for name in "ab":
            head = f'data_dir = "{tmp_path}/{name}"\n'
            await mesh.start(name, list(mesh.containers), head=head)
        await mesh.settle()
        began_s = time.monotonic()
        later = [cogwork.Message(number, annotations=DELAYED) for number in range(COUNT)]
        await send(mesh, "b", *later)
        assert await leave(mesh, "b") is None
        ended_s = time.monotonic()
        other = node(mesh, "a")
        assert other.store.counts()["delayed"] == COUNT
        other.tick(began_s + DELAY_S)
        assert other.store.counts()["delayed"] == COUNT, "none is due too early"
        other.tick(ended_s + DELAY_S)
        assert other.store.counts()["delayed"] == 0
        assert bodies(mesh, "a") == list(range(COUNT)), "in the order that they had"


@story
async def test_what_is_delayed_for_ever_moves_too() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        for key in ("x-opt-delivery-delay", "x-opt-delivery-time"):
            await send(mesh, "b", cogwork.Message("x", annotations={key: ULong(2**63 - 1)}))
        assert node(mesh, "b").store.counts()["delayed"] == 2
        assert await leave(mesh, "b") is None
        assert node(mesh, "a").store.counts()["delayed"] == 2


async def fail(mesh: Linked, name: str) -> cogwork.Item:
    """Have a consumer fail with an item once."""
    client = await mesh.client(name)
    async with client.consume(QUEUE, credit=1) as items:
        item = await anext(items)
        await item.modify(failed=True)
    return item


@story
async def test_an_item_that_has_failed_has_as_many_attempts_left() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        await send(mesh, "b", cogwork.Message("x"))
        assert [(await fail(mesh, "b")).delivery_count for _ in range(2)] == [0, 1]
        assert await leave(mesh, "b") is None
        assert (await fail(mesh, "a")).delivery_count == 2
        await eventually(lambda: node(mesh, "a", DEAD).store.depth == 1, "it is dead")
        ((letter, _),) = node(mesh, "a", DEAD).store.peek(9)
        annotations = cogwork.Message.decode(letter).annotations
        assert annotations["x-opt-dead-letter-failures"] == 3
        assert annotations["x-opt-dead-letter-reason"] == "delivery-count-exceeded"


@story
async def test_an_item_does_not_live_longer_as_it_moves() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        await send(mesh, "b", cogwork.Message("new"))
        message = cogwork.Message("old").encode()
        past = (time.monotonic() - 1500.0, 0.0, 0, 0)
        assert node(mesh, "b").store.put(message, 0, past)
        assert await leave(mesh, "b") is None
        new, old = (facts["expires_in_s"] for _, facts in node(mesh, "a").store.peek(9))
        assert isinstance(new, float)
        assert isinstance(old, float)
        assert old <= 500.0 < new


@story
async def test_an_earlier_version_gets_what_is_delayed_once_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(move_intake, "PAST", Symbol("not known to earlier versions"))
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        here, there = node(mesh, "b"), node(mesh, "a")
        await send(mesh, "b", cogwork.Message("ready"))
        await fail(mesh, "b")
        await send(mesh, "b", cogwork.Message("later", annotations=DELAYED))
        mesh.containers["b"].leave()
        await eventually(lambda: there.store.depth == 1, "what is ready has moved")
        assert here.store.counts()["delayed"] == 1
        here.tick(time.monotonic() + DELAY_S)
        assert await leave(mesh, "b") is None
        assert there.store.waiting == 2
        assert (await fail(mesh, "a")).delivery_count == 1


FULL = 10


def limited(policy: str, in_doubt: str) -> str:
    """Configure the queue where there is no room for all."""
    return f"""
[[queue]]
address = "{QUEUE}"
maximum_length = {FULL}
maximum_length_policy = "{policy}"
in_doubt = "{in_doubt}"
"""


def bodies(mesh: Linked, name: str, count: int = COUNT) -> list[object]:
    return [cogwork.Message.decode(each).body for each, _ in node(mesh, name).store.peek(count)]


@pytest.mark.parametrize("in_doubt", ["redeliver", "park"])
@pytest.mark.parametrize("policy", ["block", "reject"])
@story
async def test_what_one_has_no_room_for_another_one_gets(policy: str, in_doubt: str) -> None:
    async with linked() as mesh:
        rule = f'[[queue]]\naddress = "{QUEUE}"\nin_doubt = "{in_doubt}"\n'
        await mesh.start("a", (), limited(policy, in_doubt))
        await mesh.start("b", "a", rule)
        await mesh.start("c", "ab", rule)
        await mesh.settle()
        await send(mesh, "b", *map(cogwork.Message, range(30)))
        assert await leave(mesh, "b") is None
        assert bodies(mesh, "a") == list(range(FULL))
        assert bodies(mesh, "c") == list(range(FULL, 30))


@story
async def test_what_nobody_has_room_for_waits_until_there_is_some() -> None:
    async with linked() as mesh:
        await mesh.start("a", (), limited("block", "park"))
        await mesh.start("b", "a", f'[[queue]]\naddress = "{QUEUE}"\n')
        await mesh.settle()
        await send(mesh, "b", *map(cogwork.Message, range(30)))
        container = mesh.containers["b"]
        container.leave()
        leaving = container.leaving
        assert leaving is not None

        def is_stuck() -> bool:
            facts = leaving.facts
            return (facts["moved"], facts["left"]) == (FULL, 30 - FULL)

        await eventually(is_stuck, "what fits is known to have moved")
        client = await mesh.client("a")
        async with client.consume(QUEUE, credit=1) as items:
            for number in range(30):
                item = await anext(items)
                assert item.body == number
                await item.accept()
        assert await leave(mesh, "b") is None
        assert leaving.facts["moved"] == 30


@pytest.mark.parametrize("in_doubt", ["redeliver", "park"])
@pytest.mark.parametrize("step", ["prepare", "activate"])
@story
async def test_one_that_leaves_too_takes_nothing_that_it_would_take_with_it(
    monkeypatch: pytest.MonkeyPatch, step: str, in_doubt: str
) -> None:
    rule = f'[[queue]]\naddress = "{QUEUE}"\nin_doubt = "{in_doubt}"\n'
    async with linked("a-b", "b-c", "a-c", configuration=rule) as mesh:
        act = getattr(MoveWay, step)
        other = mesh.containers["a"]

        async def as_it_leaves(way: MoveWay, *arguments: object) -> object:
            if other.leaving is None:
                other.leave()
                assert other.leaving is not None
                leaving = other.leaving
                await eventually(lambda: leaving.phase in {"links", "done"}, "it has moved all")
            return await act(way, *arguments)

        monkeypatch.setattr(MoveWay, step, as_it_leaves)
        await send(mesh, "b", *map(cogwork.Message, range(30)))
        assert await leave(mesh, "b") is None
        assert (bodies(mesh, "a"), bodies(mesh, "c")) == ([], list(range(30)))


@pytest.mark.parametrize("durability", ["memory", "disk"])
@pytest.mark.parametrize(("step", "arrived"), [("opened", 0), ("prepare", 0), ("activate", BATCH)])
@story
async def test_a_queue_that_is_deleted_meanwhile_comes_back_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str, arrived: int, durability: str
) -> None:
    rule = f'[[queue]]\naddress = "{QUEUE}"\ndurability = "{durability}"\n'
    async with linked(configuration=rule) as mesh:
        for name in "ab":
            head = f'data_dir = "{tmp_path}/{name}"\n'
            await mesh.start(name, list(mesh.containers), head=head)
        await mesh.settle()
        await send(mesh, "b", *map(cogwork.Message, range(COUNT)))
        url = mesh.containers["b"].endpoints[0]
        client = await mesh.enter(cogwork.connect(url, force=True))
        deleted: list[QueueNode] = []
        act = getattr(MoveWay, step)

        async def then_delete(way: MoveWay, *arguments: object) -> object:
            outcome = await act(way, *arguments)
            if not deleted:
                deleted.append(node(mesh, "b"))
                await client.manage("DELETE", {"type": "queue", "name": QUEUE})
            return outcome

        monkeypatch.setattr(MoveWay, step, then_delete)
        assert await leave(mesh, "b") is None
        assert deleted
        assert bodies(mesh, "a") == list(range(arrived)), "what was there before stays"
        leaving = mesh.containers["b"].leaving
        assert leaving is not None
        assert (leaving.facts["moved"], leaving.facts["left"]) == (arrived, 0)


@story
async def test_what_a_client_that_stays_sends_to_the_end_moves_too() -> None:
    rule = f'[[queue]]\naddress = "{QUEUE}"\n'
    async with linked("a-b", configuration=rule) as mesh:
        container = mesh.containers["b"]
        client = await mesh.enter(cogwork.connect(container.endpoints[0], force=True))
        accepted: list[int] = []

        async def send_on() -> None:
            async with client.publisher(QUEUE) as publisher:
                while True:
                    await publisher.send(len(accepted))
                    accepted.append(len(accepted))
                    await asyncio.sleep(0.005)

        sending = asyncio.ensure_future(send_on())
        await eventually(lambda: bool(accepted), "it sends")
        assert await leave(mesh, "b") is None
        await mesh.stop("b")
        sending.cancel()
        assert container.leaving is not None
        assert container.leaving.facts["left"] == 0
        assert bodies(mesh, "a", len(accepted)) == accepted


@story
async def test_a_queue_that_is_none_elsewhere_keeps_no_other_waiting() -> None:
    rule = '[[queue]]\naddress = "odd/one"\n[[address]]\nprefix = "odd/"\nkind = "queue"\n'
    async with linked() as mesh:
        await mesh.start("a", ())
        await mesh.start("b", "a", rule)
        await mesh.settle()
        odd = node(mesh, "b", "odd/one")
        assert odd.store.put(cogwork.Message("odd").encode())
        await send(mesh, "b", *map(cogwork.Message, range(30)))
        container = mesh.containers["b"]
        names = [*container.vhosts[""].nodes]
        assert names.index(odd.address) < names.index(QUEUE), "it comes first"
        container.leave()
        there = mesh.containers["a"].vhosts[""].nodes
        await eventually(lambda: QUEUE in there, "something has come")
        await eventually(lambda: bodies(mesh, "a") == list(range(30)), "the others have moved")
        assert container.leaving is not None
        assert "'odd/one' is not a queue" in str(container.leaving.facts["problem"])
        assert odd.store.purge() == 1
        assert await leave(mesh, "b") is None
