"""Foreign nodes over linked containers, each with a capability of those that share."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from foreign_nodes import ForeignStream, OwnedItems, PartitionedItems, SharedItems

import cogwork
from cogwork.plugin.capabilities import Storing
from cogwork.testing import container

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

COUNT = 60
CONFIGURATION = """
[[node]]
address = "shared/"
kind = "foreign_nodes:SharedItems"

[[node]]
address = "parts/"
kind = "foreign_nodes:PartitionedItems"

[[node]]
address = "owned/"
kind = "foreign_nodes:OwnedItems"
options = { owner = "b" }

[[node]]
address = "copies/"
kind = "foreign_nodes:PatternCopies"
"""
AUDITED = """
[[node]]
address = "local/"
kind = "foreign_nodes:LocalItems"

[[node]]
address = "tape"
kind = "foreign_nodes:ForeignStream"

[[audit]]
queue = "local/#"
"""


def depth(mesh: Linked, name: str, address: str) -> int:
    """Count the items of a container's node."""
    node = mesh.containers[name].vhosts[""].nodes.get(address)
    assert isinstance(node, Storing)
    return node.store.depth


async def take(items: cogwork.client.Consumer, count: int) -> set[object]:
    """Take and accept so many items; return their bodies."""
    found: set[object] = set()
    async with asyncio.timeout(20):
        while len(found) < count:
            for item in await items.take():
                found.add(item.body)
                await item.accept()
    return found


async def publish(mesh: Linked, name: str, address: str, messages: Iterable[object]) -> None:
    client = await mesh.client(name)
    async with client.publisher(address) as publisher:
        await publisher.send_batch(list(messages))


@story
async def test_consumers_of_one_container_get_the_items_of_another_ones_node() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        await publish(mesh, "a", "shared/x", range(COUNT))
        assert depth(mesh, "a", "shared/x") == COUNT
        client = await mesh.client("b")
        items = await mesh.enter(client.consume("shared/x", credit=10))
        assert await take(items, COUNT) == set(range(COUNT))
        await eventually(lambda: depth(mesh, "a", "shared/x") == 0, "all is confirmed")


@story
async def test_a_container_that_leaves_moves_the_items_of_a_foreign_node() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        await publish(mesh, "a", "shared/x", range(COUNT))
        leaver = mesh.containers["a"]
        leaver.leave()
        await eventually(lambda: leaver.has_left, "a has left")
        node = mesh.containers["b"].vhosts[""].nodes["shared/x"]
        assert isinstance(node, SharedItems)
        assert node.store.depth == COUNT


@story
async def test_one_of_several_containers_takes_each_message_of_a_partitioned_node() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        for name in "ab":
            await publish(mesh, name, "parts/x", [])

        def is_divided() -> bool:
            nodes = [mesh.containers[name].vhosts[""].nodes.get("parts/x") for name in "ab"]
            parts = [node for node in nodes if isinstance(node, PartitionedItems)]
            inlets = [node.inlet for node in parts if node.inlet is not None]
            owners = [set(inlet.owners) for inlet in inlets]
            return len(owners) == 2 and all(len(each - {None}) == 2 for each in owners)

        await eventually(is_divided, "both own partitions")
        messages = [cogwork.Message(number, group_id=str(number)) for number in range(COUNT)]
        await publish(mesh, "a", "parts/x", messages)
        counts = [depth(mesh, name, "parts/x") for name in "ab"]
        assert sum(counts) == COUNT
        assert min(counts) > 0


@story
async def test_the_items_of_a_replicated_node_are_with_its_owner() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        for name in "ba":
            await publish(mesh, name, "owned/x", [])
        owned = mesh.containers["a"].vhosts[""].nodes["owned/x"]
        assert isinstance(owned, OwnedItems)
        inlet = owned.inlet
        assert inlet is not None
        await eventually(lambda: inlet.owners != [None], "messages lead to the owner")
        await publish(mesh, "a", "owned/x", range(COUNT))
        assert (depth(mesh, "a", "owned/x"), depth(mesh, "b", "owned/x")) == (0, COUNT)
        client = await mesh.client("a")
        items = await mesh.enter(client.consume("owned/x", credit=10))
        assert await take(items, COUNT) == set(range(COUNT))


@story
async def test_copies_go_to_subscribers_of_other_containers() -> None:
    async with linked("a-b", configuration=CONFIGURATION) as mesh:
        client = await mesh.client("b")
        messages = await mesh.enter(client.subscribe("copies/news.*"))
        await mesh.settle()
        await publish(mesh, "a", "copies/news.a", ["first"])
        async with asyncio.timeout(20):
            (message,) = await messages.take(1)
        assert message.body == "first"


@story
async def test_items_are_audited_and_can_be_looked_into() -> None:
    with container(AUDITED) as url:
        async with cogwork.connect(url) as mesh, mesh.stream("$audit") as audit:
            await mesh.publish("local/a", "x")
            reply = await mesh.manage("PEEK", {"type": "queue", "name": "local/a"})
            assert reply.properties["statusCode"] == 200
            async with mesh.consume("local/a") as items:
                await (await anext(items)).accept()
            events: list[Any] = []
            async with asyncio.timeout(20):
                async for record in audit.read("first"):
                    assert isinstance(record.body, bytes)
                    events.append(json.loads(record.body))
                    if events[-1]["event"] == "accepted":
                        break
            assert {each["queue"] for each in events} == {"local/a"}


@story
async def test_a_foreign_stream_is_managed_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForeignStream, "asked", [])
    with container(AUDITED) as url:
        async with cogwork.connect(url) as mesh:
            await mesh.publish("tape", "x")
            reply = await mesh.manage("TRIM", {"type": "stream", "name": "tape", "before": 3})
            assert reply.body == {"first": 3, "next": 3}
    assert ForeignStream.asked == ["trim below 3", "give back"]
