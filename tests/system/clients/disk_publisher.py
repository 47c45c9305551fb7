"""Publishes numbered items until SIGTERM, each once at most, and writes down what became of each.

Arguments: the URL, the queue, a prefix for the items' ids, the file, and how many to send. Lines:
`accepted ITEM`, `doubt ITEM` where a lost connection hides the outcome, and `ended`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import cogwork
from cogwork.client import InDoubt, Released

if TYPE_CHECKING:
    from cogwork.client import Publisher

TOGETHER = 500


async def publish(publisher: Publisher, items: list[str], file: int) -> None:
    """Publish items at once; those that were released certainly did not arrive: again."""

    async def one(item: str) -> str:
        while True:
            try:
                await publisher.post(item, durable=True)
            except Released:
                await asyncio.sleep(0.01)
            except InDoubt:
                return f"doubt {item}\n"
            else:
                return f"accepted {item}\n"

    lines = "".join(await asyncio.gather(*map(one, items))).encode()
    assert os.write(file, lines) == len(lines)


async def main(url: str, queue: str, prefix: str, path: str, count: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    async with cogwork.connect(url) as client, client.publisher(queue) as publisher:
        for first in range(0, int(count), TOGETHER):
            if ending.is_set():
                break
            numbers = range(first, min(first + TOGETHER, int(count)))
            await publish(publisher, [f"{prefix}{number}" for number in numbers], file)
    os.write(file, b"ended\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
