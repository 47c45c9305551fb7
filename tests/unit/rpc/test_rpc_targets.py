"""Sending links are opened once, kept while they are used, and given up when they are not."""

from __future__ import annotations

import asyncio

import pytest
from call_ends import caller_of

import cogwork
from cogwork.rpc.calling import targets
from cogwork.testing import container


def test_links_that_carry_nothing_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "IDLE_S", 0.1)
    with container() as url:
        asyncio.run(_idle(url))


async def _idle(url: str) -> None:
    async with cogwork.connect(url) as client:
        service = client.service("idle")

        @service.method
        def nothing() -> None: ...

        async with service:
            await asyncio.gather(*(client.call("idle", "nothing") for _ in range(5)))
            assert len(caller_of(client).routed.targets) <= 1  # none where the calls took so long
            waiting = asyncio.create_task(client.call("nobody", "x", timeout_s=20))
            async with asyncio.timeout(30):
                while caller_of(client).routed.targets.get("unicast/rpc/nobody") is None:
                    await asyncio.sleep(0.01)
                while len(caller_of(client).routed.targets) > 1:
                    await asyncio.sleep(0.01)
            # What waits for credit keeps its link.
            assert caller_of(client).routed.targets.get("unicast/rpc/nobody") is not None
            await client.call("idle", "nothing")
            waiting.cancel()


def test_a_refused_link_is_told_to_everybody_who_waits_for_it() -> None:
    with container() as url:
        asyncio.run(_refused(url))


async def _refused(url: str) -> None:
    async with cogwork.connect(url, rpc=cogwork.RpcOptions(unicast="topic")) as client:
        calls = [asyncio.create_task(client.call("x.*", "y", timeout_s=5)) for _ in range(3)]
        for call in calls:
            with pytest.raises(cogwork.LinkRefused, match=r"topic/rpc/x\.\*"):
                await call
