"""A consumer whose handler blocks: it says what it is given, and is killed in the middle.

Arguments: the URL, the address, the shape in which items are taken, how many items are handled
quickly before one blocks, for how long it blocks, and the credit. It prints a line for each item
that the application is given, `given BODY COUNT`, and for each that it has settled, `done BODY` or
`stale BODY`. A shape may name how long a quick item takes, and a bound: `iterate/0.001/1`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

import cogwork
import cogwork.sync

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from cogwork.client import Consumer, Item

DIES = -1.0
"""For how long a handler blocks that ends its process."""


def say(*words: object) -> None:
    """Tell the test, at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Handler:
    """What an application does with its items."""

    def __init__(self, quick: int, blocks_s: float, each_s: float) -> None:
        self._quick = quick
        self._blocks_s = blocks_s
        self._each_s = each_s

    def handle(self, item: Item) -> None:
        """Work on an item, in the event loop's own thread."""
        say("given", item.body, item.delivery_count)
        if self._quick > 0:
            self._quick -= 1
            time.sleep(self._each_s)
        elif self._blocks_s == DIES:
            os._exit(9)
        else:
            time.sleep(self._blocks_s)


async def batches(items: Consumer, shape: str) -> AsyncIterator[list[Item]]:
    """Yield what is handed over, in one of the shapes that there are."""
    if shape == "iterate":
        async for item in items:
            yield [item]
    while shape == "anext":
        yield [await anext(items)]
    if shape == "batches":
        async for batch in items.batches(2):
            yield batch
    while shape == "take":
        yield await items.take(2)
    while shape == "drain":
        yield await items.drain()
    if shape == "awaits":
        async for item in items:
            await asyncio.sleep(0.01)
            yield [item]


async def consume(url: str, address: str, shape: str, handler: Handler, credit: int) -> None:
    """Handle items until it is killed."""
    shape, _, ahead = shape.partition("/")
    async with (
        cogwork.connect(url) as client,
        client.consume(address, credit=credit, mark_ahead=int(ahead or 256)) as items,
    ):
        say("ready")
        async for batch in batches(items, shape):
            for item in batch:
                handler.handle(item)
                if shape == "iterate" and ahead:
                    item.accept_nowait()
                    continue
                with contextlib.suppress(cogwork.StaleAttempt):
                    await item.accept()
                say("stale" if item.stage == "stale" else "done", item.body)


def taken(items: cogwork.sync.Consumer, shape: str) -> Iterator[Item]:
    """Yield what the synchronous facade hands over."""
    if shape == "sync":
        yield from items
    while shape == "sync-receive":
        if (item := items.receive(1.0)) is not None:
            yield item
    while shape == "sync-drain":
        yield from items.drain()


def main(words: list[str]) -> None:
    """Begin as it is told."""
    url, address, shape, quick, blocks_s, credit = words
    shape, _, rest = shape.partition("/")
    each_s, _, ahead = rest.partition("/")
    handler = Handler(int(quick), float(blocks_s), float(each_s or 0))
    if not shape.startswith("sync"):
        asyncio.run(consume(url, address, f"{shape}/{ahead}", handler, int(credit)))
        return
    with (
        cogwork.sync.connect(url) as client,
        client.consume(address, credit=int(credit)) as items,
    ):
        say("ready")
        for item in taken(items, shape):
            handler.handle(item)
            items.accept(item)
            say("done", item.body)


if __name__ == "__main__":
    main(sys.argv[1:])
