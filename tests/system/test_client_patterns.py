"""Patterns of a subscription that change while its connection breaks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import cogwork

from .proxy import FaultyProxy
from .stories import QUICKLY, eventually, reconnected, story


@pytest.mark.parametrize("topic", ["#", "*", "a.*", "#.a", "a.#.b"])
@story
async def test_a_pattern_is_no_topic_to_send_to(url: str, topic: str) -> None:
    async with cogwork.connect(url) as client, client.subscribe("topic/#") as messages:
        for timeout_s in (None, 10.0):
            with pytest.raises(cogwork.LinkRefused, match="wildcards, which only subscribers may"):
                await client.publish(f"topic/{topic}", 1, timeout_s=timeout_s)
        with pytest.raises(cogwork.LinkRefused, match="wildcards, which only subscribers may"):
            await client.request(f"topic/{topic}", 1)
        await client.publish(f"topic/{topic}", 2, settled=True)
        for literal in ("a*", "#a.b", "**", "a.*#"):
            await client.publish(f"topic/{literal}", 3)
        bodies = [(await anext(messages)).body for _ in range(4)]
        assert bodies == [3, 3, 3, 3]


@story
async def test_what_is_unbound_while_nothing_is_connected_is_not_bound_again(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.subscribe("topic/unbound.a") as messages,
    ):
        await messages.bind("unbound.b")
        await messages.bind("topic/unbound.c")
        await messages.bind("unbound.end")
        proxy.refuse(True)
        proxy.cut()
        await eventually(lambda: not client.is_connected, "the loss is noticed")
        unbinding = [
            asyncio.ensure_future(messages.unbind(pattern))
            for pattern in ("unbound.a", "topic/unbound.b", "unbound.c")
        ]
        await asyncio.sleep(0.05)
        proxy.refuse(False)
        await asyncio.gather(*unbinding)
        for count in range(3, 5):
            while await patterns_of(other, "topic/unbound.a") != ["unbound.end"]:
                await asyncio.sleep(0.01)
            for pattern in ("unbound.a", "unbound.b", "unbound.c"):
                await other.publish(f"topic/{pattern}", pattern)
            await other.publish("topic/unbound.end", "end")
            assert (await anext(messages)).body == "end"
            proxy.cut()
            await reconnected(client, count)


async def unanswered(*_: object) -> None:
    raise cogwork.CallTimeout("$management", 1.0)


async def patterns_of(client: cogwork.Client, address: str) -> list[Any]:
    """Return the patterns of a subscription's link, as the container has them."""
    reply = await client.manage("QUERY", {"type": "link"})
    assert isinstance(reply.body, dict)
    names = reply.body["attributeNames"]
    rows = [dict(zip(names, row, strict=True)) for row in reply.body["results"]]
    return [each for row in rows if row["address"] == address for each in row["patterns"]]


@story
async def test_an_unbinding_that_fails_leaves_the_pattern_bound(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cogwork.connect(url) as client, client.subscribe("topic/kept.a") as messages:
        await messages.bind("kept.b")
        with monkeypatch.context() as patch:
            patch.setattr(client, "manage", unanswered)
            with pytest.raises(cogwork.CallTimeout):
                await messages.unbind("kept.b")
        await client.publish("topic/kept.b", "b")
        assert (await anext(messages)).body == "b"
