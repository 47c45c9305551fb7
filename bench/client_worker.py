"""One Python client under measurement: publishes, or consumes, and prints what it took.

python bench/client_worker.py publish|consume|feed URL batches|singly COUNT
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

import cogwork

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BODY = b"x" * 100
BATCH = 1000
TOPIC = "topic/bench.client"
SINK = "sink/bench.client"


async def publish(client: cogwork.Client, manner: str, count: int) -> int:
    """Publish presettled messages to a sink."""
    await _send(client, SINK, manner, count)
    return count


async def feed(client: cogwork.Client, manner: str, count: int) -> int:
    """Publish to whoever consumes."""
    await _send(client, TOPIC, manner, count)
    return count


async def _send(client: cogwork.Client, address: str, manner: str, count: int) -> None:
    async with client.publisher(address) as out:
        if manner == "singly":
            for _ in range(count):
                await out.send(BODY, settled=True)
        else:
            batch = [BODY] * BATCH
            for _ in range(count // BATCH):
                await out.send_batch(batch, settled=True)
        await out.flush()


async def consume(client: cogwork.Client, manner: str, count: int) -> int:
    """Take messages, and read each one's body."""
    taken = 0
    async with client.subscribe(TOPIC) as messages:
        print("ready", flush=True)
        if manner == "singly":
            async for message in messages:
                taken += message.body == BODY
                if taken == count:
                    break
        else:
            async for batch in messages.batches():
                taken += sum(message.body == BODY for message in batch)
                if taken >= count:
                    break
    return taken


ROLES: dict[str, Callable[[cogwork.Client, str, int], Awaitable[int]]] = {
    "publish": publish,
    "consume": consume,
    "feed": feed,
}


async def main(role: str, url: str, manner: str, count: int) -> None:
    """Play one role and print its figures."""
    async with cogwork.connect(url) as client:
        started_s, cpu_s = time.perf_counter(), time.process_time()
        done = await ROLES[role](client, manner, count)
        figures = {
            "count": done,
            "seconds": time.perf_counter() - started_s,
            "cpu_s": time.process_time() - cpu_s,
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
