"""Time between ticks: what lives for milliseconds does not wait for the next one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.config.reading import parse
from cogwork.container import container as container_module
from cogwork.container.container import Container

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CONFIGURATION = """
id = "a"
[[listen]]
port = 0
[[address]]
prefix = "queue/brief"
ttl_s = 0.001
dead_letter = "queue/short"
[[address]]
prefix = "queue/short"
ttl_s = 0.001
dead_letter = "queue/dead"
"""


def play(story: Callable[[str], Awaitable[None]]) -> None:
    """Play a story with a container by its URL."""

    async def run() -> None:
        container = Container(parse(CONFIGURATION))
        await container.start()
        try:
            async with asyncio.timeout(30):
                await story(container.endpoints[0])
        finally:
            await container.stop(drain_timeout_s=0)

    asyncio.run(run())


@pytest.fixture(autouse=True)
def _hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the next tick come in an hour."""
    monkeypatch.setattr(container_module, "TICK_S", 3600)


def test_items_expire_one_queue_after_the_other() -> None:
    async def story(url: str) -> None:
        async with cogwork.connect(url) as client:
            await client.publish("queue/brief", b"short-lived")
            async with client.consume("queue/dead") as dead:
                item = await anext(dead)
                assert item.body == b"short-lived"

    play(story)
