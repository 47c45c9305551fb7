"""Multicast that waits for every subscriber, and subscribers that end while they hold messages."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from proton.utils import BlockingConnection

import cogwork
from cogwork.testing import container

from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator

AWAITED = """
[[address]]
prefix = "topic"
kind = "topic"
accept = "settled"
[[address]]
prefix = "all"
distribution = "multicast"
accept = "settled"
"""
ADDRESSES = ["topic/red", "all/red"]
TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A container whose topics wait for every subscriber."""
    with container(AWAITED) as found:
        yield found


class Holder:
    """A stock subscriber that takes a message and does not settle it."""

    def __init__(self, url: str, address: str) -> None:
        self.bus = BlockingConnection(url, timeout=TIMEOUT_S)
        name = str(uuid.uuid4())
        self.receiver = self.bus.create_receiver(address, credit=10, name=name)

    def hold(self) -> None:
        self.receiver.receive(TIMEOUT_S)

    def close_link(self) -> None:
        self.receiver.close()

    def close_connection(self) -> None:
        self.bus.close()


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("end", ["close_link", "close_connection"])
@pytest.mark.parametrize("has_others", [False, True])
@story
async def test_an_orderly_end_releases(url: str, address: str, end: str, has_others: bool) -> None:
    holder = await asyncio.to_thread(Holder, url, address)
    async with (
        cogwork.connect(url) as client,
        client.publisher(address) as publisher,
        client.consume(address, credit=10) if has_others else nullcontext() as taker,
    ):
        post = publisher.post("x")
        await asyncio.to_thread(holder.hold)
        if taker is not None:
            await (await anext(taker)).accept()
        assert not post.is_done
        await asyncio.to_thread(getattr(holder, end))
        async with asyncio.timeout(TIMEOUT_S):
            with pytest.raises(cogwork.Released):
                await post
    if end == "close_link":
        await asyncio.to_thread(holder.bus.close)


@pytest.mark.parametrize("address", ADDRESSES)
@story
async def test_so_does_our_client_whatever_its_application_was_handed(
    url: str, address: str
) -> None:
    async with (
        cogwork.connect(url) as client,
        client.publisher(address) as publisher,
        client.consume(address, credit=10) as taker,
    ):
        async with client.consume(address, credit=10) as holder:
            post = publisher.post("x")
            await anext(holder)
            await (await anext(taker)).accept()
            assert not post.is_done
        async with asyncio.timeout(TIMEOUT_S):
            with pytest.raises(cogwork.Released):
                await post
