"""Links for one address each, as a client has them where the broker is no relay."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import cogwork
from cogwork.client.publishing import senders

from .stories import eventually, story

if TYPE_CHECKING:
    import pytest


@story
async def test_a_link_on_which_something_waits_is_nobody_elses_business(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cogwork.Client, "has_relay", False)
    monkeypatch.setattr(senders, "NAMED_MAX", 3)
    async with cogwork.connect(url) as client:
        waiting = asyncio.ensure_future(client.publish("unicast/nobody-there-yet", "late"))
        await asyncio.sleep(0.05)
        for number in range(10):
            async with asyncio.timeout(30):
                await client.publish(f"sink/{number}", number)
        assert not waiting.done()
        async with client.consume("unicast/nobody-there-yet", confirms=False) as items:
            item = await anext(items)
            assert item.body == "late"
            await item.accept()
            await waiting
        for number in range(4):
            await client.publish(f"sink/{number}", number)
        await eventually(lambda: len(client._ends) == 3, "the others are closed")
        assert not client._senders._awaited


@story
async def test_many_requests_at_once_to_as_many_services_are_all_answered(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cogwork.Client, "has_relay", False)
    monkeypatch.setattr(senders, "NAMED_MAX", 3)
    async with cogwork.connect(url) as serving, cogwork.connect(url) as client:
        addresses = [f"unicast/service-{number}" for number in range(12)]
        async with contextlib.AsyncExitStack() as stack:
            for address in addresses:
                await stack.enter_async_context(serving.serve(address, lambda each: each.body))
            replies = await asyncio.gather(*(client.request(each, each) for each in addresses))
        assert [reply.body for reply in replies] == addresses
