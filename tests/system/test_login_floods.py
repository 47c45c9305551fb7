"""A flood of wrong logins from one address, and those who log in from others meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from cogwork.amqp.sasl import SaslCode
from cogwork.config import password_hash
from cogwork.config.reading import parse
from cogwork.container.container import Container

from .honest import FLOOR_S, RATIO_MAX, undisturbed
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
permissions = [{ address = "topic/honest", rights = ["send", "receive"] }]
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
    monkeypatch.setattr(
        password_hash, "PARALLELISM_P", 1
    )  # a fifth, so that the test is over sooner
    text = CONFIGURATION.replace("HASH", password_hash.hash_password("right"))
    container = Container(parse(text, "test"))
    await container.start()
    port = int(container.endpoints[0].rpartition(":")[2])
    mesh = ("127.0.0.4", "mesh")
    quiet_s = max([await timed(port, *mesh) for _ in range(3)])
    try:
        async with undisturbed(f"amqp://honest:right@127.0.0.1:{port}", "logins"):
            floods = [asyncio.create_task(flood(port, "127.0.0.2")) for _ in range(FLOOD)]
            await asyncio.sleep(2 * quiet_s)
            attacked_s = [await timed(port, *mesh) for _ in range(3)]
            await asyncio.sleep(1.0)
            for each in floods:
                each.cancel()
            await asyncio.gather(*floods, return_exceptions=True)
    finally:
        await container.stop(drain_timeout_s=0)
    assert max(attacked_s) <= RATIO_MAX * quiet_s + FLOOR_S, "the slowest of all"
