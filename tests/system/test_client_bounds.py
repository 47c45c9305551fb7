"""The client at what a container bounds, and with containers that leave it in the lurch."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.dataplane.connection import Connection
from cogwork.testing import container

from .proxy import FaultyProxy
from .redirects import QUICKLY, containers, url_of
from .stories import eventually, story

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Close

NARROW = "[limits]\nlinks_per_session = 4\nsessions_per_connection = 3\n"


@story
async def test_more_links_than_a_session_takes_are_all_attached_again() -> None:
    with container(NARROW) as url:
        async with (
            FaultyProxy(url) as proxy,
            cogwork.connect(proxy.url, retry=QUICKLY) as mesh,
            cogwork.connect(url) as other,
            AsyncExitStack() as stack,
        ):
            received = [
                await stack.enter_async_context(mesh.subscribe(f"topic/all.{number}"))
                for number in range(12)
            ]
            proxy.cut()
            await eventually(lambda: mesh.connections == 2, "it is connected again")
            for number, messages in enumerate(received):
                got = asyncio.ensure_future(anext(messages))
                while not got.done():
                    await other.publish(f"topic/all.{number}", number)
                    await asyncio.sleep(0.01)
                assert (await got).body == number
            assert mesh.connections == 2


@story
async def test_a_link_too_many_is_refused_and_harms_nobody() -> None:
    with container(NARROW) as url:
        async with cogwork.connect(url, retry=QUICKLY) as mesh, AsyncExitStack() as stack:
            for number in range(11):
                await stack.enter_async_context(mesh.subscribe(f"topic/full.{number}"))
            last = await stack.enter_async_context(mesh.publisher("topic/full.0"))
            with pytest.raises(cogwork.LinkRefused, match="12 links are attached") as caught:
                await mesh.subscribe("topic/one-too-many").open()
            assert caught.value.condition == cogwork.Condition.RESOURCE_LIMIT_EXCEEDED
            await last.send("still here")
            assert mesh.connections == 1
            await last.shut()
            await mesh.publish("topic/full.1", "there is room again")


@story
async def test_a_link_that_is_left_without_an_error_is_told_to_be_over() -> None:
    async with (
        containers("a") as (there,),
        cogwork.connect(url_of(there)) as mesh,
        mesh.subscribe("topic/left") as messages,
    ):
        (link,) = there._attachments.links.values()
        link.detach(closed=False)
        there.core.flush()
        with pytest.raises(cogwork.LinkDetached, match="ended by the container"):
            async with asyncio.timeout(5):
                await anext(messages)


@story
async def test_a_container_that_does_not_answer_a_close_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.client.uplink.CLOSE_TIMEOUT_S", 0.1)
    answer = Connection._on_close

    def ignore(connection: Connection, close: Close) -> None:
        if connection.is_client:
            answer(connection, close)

    monkeypatch.setattr(Connection, "_on_close", ignore)
    async with (
        containers("a") as (there,),
        cogwork.connect(url_of(there), retry=QUICKLY) as mesh,
        mesh.subscribe("topic/again") as messages,
    ):
        (connection,) = there.peers.connections
        connection.sessions[0].close()
        connection.flush()
        await eventually(lambda: mesh.connections == 2, "it has come again", timeout_s=10)
        got = asyncio.ensure_future(anext(messages))
        while not got.done():
            await mesh.publish("topic/again", "here")
            await asyncio.sleep(0.01)
        assert (await got).body == "here"


@story
async def test_a_mesh_whose_closing_is_left_is_closed_all_the_same() -> None:
    async with containers("a") as (there,), FaultyProxy(url_of(there)) as proxy:
        mesh = await cogwork.connect(proxy.url).__aenter__()
        uplink = mesh._uplink
        assert uplink is not None
        proxy.hold_replies()
        closing = asyncio.create_task(mesh.close())
        await eventually(lambda: uplink.connection.is_over, "it has said so")
        assert not uplink.closed.done()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert uplink.closed.done()
