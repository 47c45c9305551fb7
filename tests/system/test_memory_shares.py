"""The container's memory under attack: it stays below its limit, and who holds most has to go.

Each attack would take several times the limit. It comes from other addresses of the loopback
network than the honest client, which goes on beside it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .attackers import ATTACKER, HELPER, Stranger, refusal
from .honest import undisturbed
from .served import Served, served
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
HELD_BYTES = 64 * MIB
RESIDENT_MAX_BYTES = HELD_BYTES + 128 * MIB

FRAME = b"\x00" * 32_000
PARTS = 400
"""Of an unfinished delivery: 12 MiB."""

PUBLISHERS = 40

CONFIGURATION = f"""
[limits]
held_bytes = {HELD_BYTES}
delivery_timeout_s = 600.0

[[address]]
prefix = "topic"
slow_subscriber = "block"
block_timeout_s = 600.0
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("memory"), CONFIGURATION) as running:
        yield running


def most_resident_bytes(container: Served) -> int:
    """Return how much memory the process had at worst."""
    status = Path(f"/proc/{container.process.pid}/status").read_text()
    (line,) = (each for each in status.splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


async def begin_delivery(url: str, host: str, address: str) -> Stranger:
    """Send most of a delivery, and never its end."""
    stranger = await Stranger.opened(url, host)
    stranger.publish_to(address)
    for part in range(PARTS):
        stranger.send_part(0, FRAME, is_first=not part, more=True)
        if not await stranger.drain():
            break
    return stranger


async def errors(found: list[Stranger]) -> list[str]:
    """Return what those were told that the container has disconnected."""

    async def error(stranger: Stranger) -> str | None:
        try:
            async with asyncio.timeout(0.5):
                return refusal(await stranger.error())
        except (TimeoutError, AssertionError):
            return None

    told = await asyncio.gather(*map(error, found))
    for each in found:
        each.leave()
    return [each for each in told if each is not None]


@pytest.mark.parametrize("address", ["unfinished/a", "queue/a"])
@story
async def test_unfinished_deliveries(container: Served, address: str) -> None:
    """Those that cut through to a consumer who does not read, and those that are assembled."""
    async with undisturbed(container.url):
        consumer = await Stranger.opened(container.url, HELPER, window=0)
        consumer.receive_from(address, credit=2 * PUBLISHERS)
        found = await asyncio.gather(
            *(begin_delivery(container.url, ATTACKER, address) for _ in range(PUBLISHERS))
        )
        told = await errors([*found, consumer])
    assert told
    assert all("limits.held_bytes = 67108864" in each for each in told)
    assert most_resident_bytes(container) < RESIDENT_MAX_BYTES


@story
async def test_output_that_nobody_reads(container: Served) -> None:
    count, size_bytes, messages = 200, 30_000, 250
    async with undisturbed(container.url):
        found = []
        for _ in range(count):
            subscriber = await Stranger.opened(
                container.url, ATTACKER, window=1_000_000, receive_bytes=4096
            )
            subscriber.receive_from("topic/unread", credit=1000)
            found.append(subscriber)
        await asyncio.sleep(0.5)
        publisher = await Stranger.opened(container.url, HELPER)
        publisher.publish_to("topic/unread")
        for number in range(messages):
            publisher.send_part(number, b"\x00" * size_bytes, is_first=True, more=False)
            await publisher.drain()
        await asyncio.sleep(1.0)
        for each in (*found, publisher):
            each.leave()
    assert most_resident_bytes(container) < RESIDENT_MAX_BYTES


@story
async def test_a_delivery_has_a_deadline(tmp_path: Path) -> None:
    with served(tmp_path, "[limits]\ndelivery_timeout_s = 1.0") as container:
        async with undisturbed(container.url):
            stranger = await Stranger.opened(container.url, ATTACKER)
            stranger.publish_to("queue/slow")
            stranger.send_part(0, FRAME, is_first=True, more=True)
            assert refusal(await stranger.error()) == (
                "a delivery has not ended within 1 s (limits.delivery_timeout_s)"
            )
            stranger.leave()
