"""A reader's end: asks its container about streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.pipeline.arrow.errors import ArrowError
from cogwork.pipeline.arrow.serving.frames import LIVE, Ask, Told

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.pipeline.arrow.serving.frames import Frames

__all__ = ("Asker",)


class Asker:
    """Asks, and takes the answers apart. Owned by the reader's process."""

    def __init__(self, frames: Frames, on_live: Callable[[], object]) -> None:
        """Initialize it; it has asked nothing.

        Args:
            frames: The way to the container.
            on_live: Called when the container says that it has traffic.
        """
        self._on_live = on_live
        self._frames = frames
        self._waiting: dict[int, asyncio.Future[Told]] = {}
        self._number = 0

    async def run(self) -> None:
        """Take answers until the container has gone."""
        while (told := await self._frames.receive(Told)) is not None:
            if told.number == LIVE:
                self._on_live()
            waiting = self._waiting.pop(told.number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(told)

    async def say_ready(self) -> None:
        """Tell the container that the reader listens."""
        await self._frames.send(Ask(0, "ready"))

    async def ask(self, what: str, vhost: str, stream: str, offset: int) -> Told:
        """Ask, and return the answer.

        Raises:
            ArrowError: The container has gone.
        """
        self._number += 1
        number = self._number
        waiting: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            await self._frames.send(Ask(number, what, vhost, stream, offset))
            return await waiting
        except OSError as error:
            raise ArrowError(stream, "the container has gone") from error
        finally:
            self._waiting.pop(number, None)
