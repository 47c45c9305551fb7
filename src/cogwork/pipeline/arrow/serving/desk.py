"""The container's end: answers what a reader's process asks about streams."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cogwork.amqp.errors import CogworkError
from cogwork.pipeline.arrow.serving.frames import LIVE, Ask, Told
from cogwork.pipeline.arrow.serving.traffic import WATCH_S, Traffic
from cogwork.plugin.engine.chunks import encode_chunk
from cogwork.plugin.engine.errors import BeyondEnd, Truncated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.pipeline.arrow.serving.frames import Frames
    from cogwork.plugin.engine.contract import Engine

__all__ = ("Desk",)

READ_BYTES = 128 * 1024
"""What is read for a reader at a time: a tenth of a millisecond or two, for which others wait."""

OPENING_S = 5.0
PAUSE_S = 0.05


@runtime_checkable
class Sealed(Protocol):
    """An engine that keeps segments on this machine."""

    def sealed_here(self) -> tuple[str, int] | None:
        """Return where they are, and the offset after them."""


class Desk:
    """Answers one reader. Owned by the crew.

    Attributes:
        is_ready: Whether the reader listens.
    """

    def __init__(
        self,
        vhosts: Mapping[str, VirtualHost],
        frames: Frames,
        on_ready: Callable[[], object],
        counts: Callable[[], tuple[int, int, int]],
    ) -> None:
        """Answer nothing yet.

        Args:
            vhosts: The container's, by name.
            frames: The way to the reader.
            on_ready: Called when it listens.
            counts: Returns how many frames and connections the container has taken, and how many
                containers are linked.
        """
        self.is_ready = False
        self._vhosts = vhosts
        self._frames = frames
        self._on_ready = on_ready
        self._counts = counts
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Lock()

    async def run(self) -> None:
        """Answer until the reader has gone."""
        self._keep(self._watch())
        try:
            while (ask := await self._frames.receive(Ask)) is not None:
                if ask.what == "ready":
                    self.is_ready = True
                    self._on_ready()
                    continue
                self._keep(self._answer(ask))
        finally:
            self.is_ready = False
            for task in self._tasks:
                task.cancel()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Tell the reader while there is traffic."""
        traffic = Traffic()
        with suppress(OSError):
            while True:
                if traffic.is_live(*self._counts()):
                    await self._frames.send(Told(LIVE))
                await asyncio.sleep(WATCH_S)

    async def _answer(self, ask: Ask) -> None:
        try:
            told = await self._told(ask)
        except Truncated as error:
            told = Told(ask.number, "truncated", str(error), first=error.first)
        except Unavailable as error:
            told = Told(ask.number, "unavailable", str(error))
        except (CogworkError, ValueError, OSError) as error:
            told = Told(ask.number, "failed", str(error))
        with suppress(OSError):
            await self._frames.send(told)

    async def _told(self, ask: Ask) -> Told:
        engine = await self._engine_of(ask)
        if engine is None:
            return Told(ask.number, "unknown", "there is no such stream here")
        told = Told(ask.number)
        if ask.what == "read":
            told.chunks = await self._read(engine, ask.offset)
        else:
            bounds = await engine.bounds()
            told.first, told.next = bounds.first, bounds.next
        sealed = engine.sealed_here() if isinstance(engine, Sealed) else None
        if sealed is not None:
            told.directory, told.sealed = str(Path(sealed[0]).absolute()), sealed[1]
        return told

    async def _read(self, engine: Engine, offset: int) -> list[bytes]:
        """Read a piece of a stream. One at a time: between two, the loop looks at its sockets."""
        async with self._reading:
            await asyncio.sleep(0)
            # What is beyond the end of a replica may be committed elsewhere already.
            with suppress(BeyondEnd):
                return list(map(encode_chunk, await engine.read(offset, READ_BYTES)))
        return []

    async def _engine_of(self, ask: Ask) -> Engine | None:
        """Find a stream, and wait a while for it to be open."""
        until_s = asyncio.get_running_loop().time() + OPENING_S
        while True:
            vhost = self._vhosts.get(ask.vhost)
            view = vhost.view if vhost is not None else None
            stream = view.stream(f"stream/{ask.stream}") if view is not None else None
            if stream is None:
                return None
            if stream.engine is not None:
                return stream.engine
            if asyncio.get_running_loop().time() > until_s:
                raise Unavailable(stream.problem or "the stream is being opened")
            await asyncio.sleep(PAUSE_S)
