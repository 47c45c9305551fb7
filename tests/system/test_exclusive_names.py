"""A server's name, and a ZeroMQ peer's, is one receiver's alone, over all linked containers."""

from __future__ import annotations

import asyncio

import pytest

import cogwork

from .linked import linked
from .stories import QUICKLY, eventually, reconnected, story


@story
async def test_a_name_that_a_server_holds_is_refused_until_it_goes(url: str) -> None:
    async with cogwork.connect(url) as first, cogwork.connect(url) as second:
        async with first.service("names", server="1"):
            with pytest.raises(cogwork.LinkRefused, match=r"exclusive/rpc/names/1.* is held"):
                await second.service("names", server="1").__aenter__()
            async with second.service("names", server="2"), second.service("others", server="1"):
                pass
            with pytest.raises(cogwork.LinkRefused, match="is held"):
                async with second.consume("exclusive/rpc/names/1"):
                    pass
        async with second.service("names", server="1"):
            pass


@story
async def test_a_name_is_held_over_linked_containers() -> None:
    async with linked("a-b", "b-c") as mesh:
        first, second = await mesh.client("a"), await mesh.client("c")
        async with first.service("names", server="1"):
            await mesh.settle()
            with pytest.raises(cogwork.LinkRefused, match="is held at container"):
                await second.service("names", server="1").__aenter__()
        await mesh.settle()
        async with second.service("names", server="1"):
            pass


@story
async def test_a_server_that_reconnects_keeps_its_name(url: str) -> None:
    async with cogwork.connect(url, retry=QUICKLY) as mesh, cogwork.connect(url) as caller:
        service = mesh.service("names", server="back")

        @service.method
        def hello() -> str:
            return "hello"

        async with service:
            assert await caller.call("names", "hello", server="back") == "hello"
            assert mesh._uplink is not None
            mesh._uplink.connection.on_lost(104)
            await reconnected(mesh)
            await eventually(lambda: service._inlets[1].link is not None, "it is attached again")
            assert await caller.call("names", "hello", server="back", timeout_s=20) == "hello"
            await asyncio.sleep(0)
            with pytest.raises(cogwork.LinkRefused, match="is held"):
                await caller.service("names", server="back").__aenter__()
