"""What a running container takes over of a new configuration, and what it says it does not."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.config.reading import parse

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from cogwork.container.container import Container

HEAD = 'id = "a"\n[[listen]]\nport = 0\n'


async def running(mesh: Linked, configuration: str = "") -> tuple[Container, cogwork.Client]:
    """Start a container, and a client of it."""
    await mesh.start("a", configuration=configuration)
    return mesh.containers["a"], await mesh.client("a")


def reconfigure(container: Container, configuration: str) -> None:
    container.reconfigure(parse(f"{HEAD}{configuration}", "test"))


async def is_sent_to(container: Container, urls: list[str]) -> bool:
    """Return whether a newcomer comes to a container that has no other client."""
    async with cogwork.connect(urls):
        return container.peers.clients == 1


@story
async def test_newcomers_are_sent_away_by_the_new_margin() -> None:
    async with linked("a-b") as mesh:
        mesh_of_a = mesh.containers["a"].mesh
        await eventually(lambda: bool(mesh_of_a.hosts.get("b")), "a knows where b takes clients")
        urls = [mesh.containers["a"].endpoints[0]]
        stay = [await mesh.enter(cogwork.connect(urls)) for _ in range(3)]
        assert mesh.containers["a"].peers.clients == 3
        reconfigure(mesh.containers["a"], "[mesh]\nredirect_margin = 1")
        while not await is_sent_to(mesh.containers["b"], urls):
            await asyncio.sleep(0.01)  # a does not know yet that b has fewer
        await eventually(
            lambda: mesh.containers["a"].peers.clients == len(stay), "who was there has stayed"
        )


@story
async def test_neighbours_hear_of_another_advertised_address() -> None:
    async with linked("a-b") as mesh:
        at = mesh.containers["b"].mesh
        await eventually(lambda: bool(at.hosts.get("a")), "b knows where a takes clients")
        text = HEAD.replace("port = 0", 'port = 0\nadvertise = "broker.example:7"')
        mesh.containers["a"].reconfigure(parse(text, "test"))
        await eventually(
            lambda: at.hosts["a"] == ("amqp://broker.example:7",), "b hears of the new address"
        )


@story
async def test_addresses_in_use_take_over_what_they_can(caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as mesh:
        container, client = await running(mesh)
        async with client.publisher("broadcast/x") as publisher:
            await publisher.send("accepted, as nobody needs to listen")
            rule = '[[address]]\nprefix = "broadcast"\ndistribution = "multicast"\n'
            reconfigure(container, f'{rule}unmatched = "release"')
            assert "in use" not in caplog.text
            with pytest.raises(cogwork.Released):
                await publisher.send("released, as somebody has to listen")


@story
async def test_rights_that_are_taken_away_are_gone_for_new_links() -> None:
    allow = '[anonymous]\npermissions = [{ address = "queue/#", rights = ["send"] }]\n'
    async with linked() as mesh:
        container, client = await running(mesh, allow)
        await client.publish("queue/a", 1)
        reconfigure(container, "[anonymous]\npermissions = []\n")
        with pytest.raises(cogwork.CogworkError, match="permission"):
            async with client.publisher("queue/b") as other:
                await other.send(1)
        reconfigure(container, allow)
        async with client.publisher("queue/b") as other:
            await other.send(1)


@story
async def test_what_stays_as_it_was_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as mesh:
        container, client = await running(mesh)
        await client.publish("queue/x", 1)
        async with client.subscribe("unicast/x"):
            reconfigure(
                container,
                '[[address]]\nprefix = "queue"\nkind = "queue"\npriorities = 3\n'
                '[[address]]\nprefix = "unicast"\ndistribution = "balanced"\n'
                '[[address]]\nprefix = "topic"\nkind = "topic"\nunmatched = "release"\n',
            )
            (warned,) = [each for each in caplog.records if each.levelno == logging.WARNING]
            assert warned.getMessage().endswith(": queue/x, topic, unicast/x")


@story
async def test_linked_containers_carry_a_new_virtual_host_at_once() -> None:
    """Whichever of them has it first, and whatever was subscribed to in it by then."""
    blue = '[[vhost]]\nname = "blue"'
    async with linked("a-b") as mesh:
        default = await mesh.client("b")
        reconfigure(mesh.containers["a"], blue)
        here = await mesh.client("a", "blue")
        async with here.subscribe("topic/x") as mine, default.subscribe("topic/x") as others:
            await mesh.settle()
            reconfigure(mesh.containers["b"], blue)
            there = await mesh.client("b", "blue")
            await mesh.settle()
            await there.publish("topic/x", "to blue")
            await default.publish("topic/x", "to all others")
            assert (await anext(aiter(mine))).body == "to blue"
            assert (await anext(aiter(others))).body == "to all others"
            async with there.consume("queue/y") as items:
                await mesh.settle()
                await here.publish("queue/y", 1)
                assert (await anext(items)).body == 1
        assert all(len(each.mesh.peer_links) == 1 for each in mesh.containers.values())
