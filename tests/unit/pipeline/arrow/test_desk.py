"""What a container tells a reader without being asked."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from cogwork.pipeline.arrow.serving.asker import Asker
from cogwork.pipeline.arrow.serving.desk import Desk
from cogwork.pipeline.arrow.serving.frames import Frames
from cogwork.pipeline.arrow.serving.traffic import LIVE_FRAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 10.0
STEPS = 3


async def told_of(frames_in: Iterator[int]) -> int:
    """Count how often a reader hears of traffic until there are no numbers left."""
    ours, its = socket.socketpair()
    container, reader = Frames(ours), Frames(its)
    heard = 0
    is_over = asyncio.Event()

    def on_live() -> None:
        nonlocal heard
        heard += 1

    def count() -> tuple[int, int, int]:
        number = next(frames_in, None)
        if number is None:
            is_over.set()
        return number or 0, 0, 0

    desk = Desk({}, container, lambda: None, count)
    tasks = [asyncio.create_task(desk.run()), asyncio.create_task(Asker(reader, on_live).run())]
    async with asyncio.timeout(PATIENCE_S):
        await is_over.wait()
        container.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    reader.close()
    return heard


def test_a_reader_hears_of_traffic_while_there_is_some() -> None:
    steps = iter(range(0, LIVE_FRAMES * (STEPS + 1), LIVE_FRAMES))
    assert asyncio.run(told_of(steps)) == STEPS


def test_a_reader_hears_nothing_of_little_traffic() -> None:
    assert asyncio.run(told_of(iter(range(0, LIVE_FRAMES, LIVE_FRAMES // STEPS)))) == 0
