"""How evenly a queue's items are shared out among consumers in three containers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import cogwork

if TYPE_CHECKING:
    from fleet import Fleet

__all__ = ("balance",)

EACH: Final = 4
"""Consumers at each container."""

PACE_S: Final = 0.008
"""What an item takes a consumer of speed 1."""

CREDIT: Final = 10
ITEMS: Final = 6000
TIMEOUT_S: Final = 120.0


def balance(fleet: Fleet, address: str, speeds: tuple[int, ...]) -> tuple[float, list[str]]:
    """Post items at the first container and has slow consumers at all of them take them.

    Args:
        fleet: The containers.
        address: The queue.
        speeds: Of the consumers, over and over.

    Returns:
        How far the share of the consumer that is furthest from its ideal one is from that, and
        what was wrong.
    """
    return asyncio.run(asyncio.wait_for(_balance(fleet, address, speeds), TIMEOUT_S))


async def _balance(fleet: Fleet, address: str, speeds: tuple[int, ...]) -> tuple[float, list[str]]:
    urls = [member.url for member in fleet.members.values() for _ in range(EACH)]
    # Each speed is at each container: it is not the place that decides.
    paces = [speeds[at % len(speeds)] for at in range(len(urls))]
    counts = [0] * len(urls)
    done = asyncio.Event()

    async def consume(at: int) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        async with (
            cogwork.connect(urls[at], force=True) as client,
            client.consume(address, credit=CREDIT, confirms=False) as items,
        ):
            async for item in items:
                due_s = max(due_s, loop.time() - PACE_S) + PACE_S / paces[at]
                await asyncio.sleep(due_s - loop.time())
                item.accept()
                counts[at] += 1
                if sum(counts) == ITEMS:
                    done.set()

    tasks = [asyncio.create_task(consume(at)) for at in range(len(urls))]
    async with cogwork.connect(urls[0], force=True) as client, client.publisher(address) as out:
        await out.send_batch([b"x" * 100] * ITEMS)
        await done.wait()
        await asyncio.sleep(0.2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    total = sum(counts)
    ideals = [ITEMS * pace / sum(paces) for pace in paces]
    skew = max(abs(count / ideal - 1) for count, ideal in zip(counts, ideals, strict=True))
    return skew, [] if total == ITEMS else [f"{total} items were done, of {ITEMS}"]
