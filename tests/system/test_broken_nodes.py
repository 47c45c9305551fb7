"""Nodes of one's own that cannot be made, or fail later."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, cast

import pytest

import cogwork
from cogwork.client.errors import Rejected
from cogwork.plugin import MessageNode
from cogwork.testing import container

from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cogwork.plugin import Effect

BROKEN = '[[node]]\naddress = "words"\nkind = "os:getcwd"\n'
"""A function that takes no context: calling it with one is a TypeError."""


@story
async def test_they_refuse_links_with_the_reason_and_the_connection_stays() -> None:
    with container(BROKEN) as url:
        async with cogwork.connect(url) as client, client.consume("queue/a") as items:
            with pytest.raises(Rejected, match="cannot create the node at 'words' of kind 'os"):
                await client.publish("words", "a b")
            await client.publish("queue/a", "still here")
            assert (await anext(items)).body == "still here"


class Exiting(MessageNode):
    """Leaves the process wherever its option says."""

    def _exit_in(self, place: str) -> None:
        if self.context.options["place"] == place:
            sys.exit(3)

    def on_messages(self, messages: Sequence[cogwork.Message]) -> Iterable[Effect]:
        self._exit_in("on_messages")
        return ()

    def tick(self, now_s: float) -> Iterable[Effect]:
        self._exit_in("tick")
        return super().tick(now_s)

    def status(self) -> Mapping[str, object]:
        self._exit_in("status")
        return super().status()


def exiting(place: str) -> str:
    """Configure one."""
    table = f'address = "words"\nkind = "{__name__}:Exiting"'
    return f'[[node]]\n{table}\noptions = {{ place = "{place}" }}\n'


@story
async def test_one_that_exits_has_its_message_rejected_and_the_container_goes_on() -> None:
    with container(exiting("on_messages")) as url:
        async with cogwork.connect(url) as client, asyncio.timeout(20):
            with pytest.raises(cogwork.Rejected, match="SystemExit: 3"):
                await client.publish("words", "a b")
            await client.publish("queue/a", "still here")


@story
async def test_one_that_exits_as_time_passes_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with container(exiting("tick")) as url:
        async with cogwork.connect(url) as client, asyncio.timeout(20):
            await client.publish("words", "a b")
            while "the node at 'words' failed: SystemExit(3)" not in caplog.text:
                await asyncio.sleep(0.05)
            await client.publish("queue/a", "still here")


@story
async def test_one_that_exits_when_it_is_looked_at_shows_that() -> None:
    with container(exiting("status")) as url:
        async with cogwork.connect(url) as client, asyncio.timeout(20):
            await client.publish("words", "a b")
            reply = await client.manage("READ", {"type": "node", "name": "words"})
            problem = "its status cannot be told: SystemExit(3)"
            assert cast("dict[str, object]", reply.body)["status"] == {"problem": problem}
