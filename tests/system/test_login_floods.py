"""A flood of wrong logins from one address, and those who log in from others meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from cogwork.amqp.sasl import SaslCode
from cogwork.container import users
from cogwork.container.config import parse
from cogwork.container.container import Container

from .raw_logins import log_in
from .stories import story

if TYPE_CHECKING:
    import pytest

CONFIGURATION = """
id = "north"
[[listen]]
port = 0
[[user]]
name = "honest"
password_hash = "HASH"
[[user]]
name = "mesh"
password_hash = "HASH"
mesh = true
"""

FLOOD = 60
"""Connections of the attacker, each with a wrong password under way all the time."""


async def timed(port: int, host: str, user: str) -> float:
    began_s = time.perf_counter()
    assert await log_in(port, host, user, "right") is SaslCode.OK
    return time.perf_counter() - began_s


async def flood(port: int, host: str) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await log_in(port, host, "honest", "wrong")
        await asyncio.sleep(0.1)  # in this process: who is refused at once would spin


@story
async def test_others_log_in_as_quickly_as_before(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR, "cogwork")
    monkeypatch.setattr(users, "PARALLELISM_P", 1)  # a fifth, so that the test is over sooner
    text = CONFIGURATION.replace("HASH", users.hash_password("right"))
    container = Container(parse(text, "test"))
    await container.start()
    port = int(container.endpoints[0].rpartition(":")[2])
    peers = (("127.0.0.3", "honest"), ("127.0.0.4", "mesh"))
    quiet_s = max([await timed(port, *peer) for peer in peers for _ in range(3)])
    floods = [asyncio.create_task(flood(port, "127.0.0.2")) for _ in range(FLOOD)]
    try:
        await asyncio.sleep(2 * quiet_s)
        attacked_s = [await timed(port, *peer) for _ in range(3) for peer in peers]
    finally:
        for each in floods:
            each.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
        await container.stop(drain_timeout_s=0)
    assert max(attacked_s) <= 5 * quiet_s + 1.0, "the slowest of all, not one in a hundred"
