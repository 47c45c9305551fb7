"""Follows the stream of a virtual host's schemas, and keeps the registry that comes of it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.engine.contract import CaughtUp, Origin, Snapshot
from cogwork.plugin.stream_options import StreamOptions
from cogwork.schema import SCHEMAS, Registry, SchemaError
from cogwork.schema.bodies import content_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.engine.batch import Chunk
    from cogwork.plugin.engine.contract import Engine

__all__ = ("Follower",)

TURN_COUNT = 64
"""Records that are applied in one turn of the event loop."""

PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.1, 5.0

log = logging.getLogger("cogwork")


class Follower:
    """Reads the stream from its beginning, and goes on with what comes.

    Attributes:
        problem: Why it cannot be read; None where it can.
        next: The offset of the record that comes next.
        ignored: Counts records that changed nothing: no events, or made for another version.
    """

    def __init__(self, vhost: VirtualHost, know: Callable[[Registry], None]) -> None:
        """Initialize it; it has read nothing yet.

        Args:
            vhost: Whose schemas they are.
            know: Is told of a registry when it is as it was when it was begun to be read.
        """
        self.problem: str | None = None
        self.next = 0
        self.ignored = 0
        self._vhost = vhost
        self._know = know
        self._start = Origin.SNAPSHOT
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()

    async def closed(self) -> None:
        """Wait until it does not."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                await self._follow()
            except Exception as error:  # a plug-in's, too: it must not stop the container
                pause_s = min(pause_s * 2, PAUSE_LONGEST_S) if self.problem else PAUSE_FIRST_S
                self._note(str(error) if isinstance(error, CogworkError) else repr(error))
            await asyncio.sleep(pause_s)

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            log.warning("cannot read the schemas in %s: %s", SCHEMAS, problem)

    async def _follow(self) -> None:
        engines = self._vhost.engines
        if engines is None:
            return
        options = StreamOptions.of(SCHEMAS, self._vhost.rule_of(SCHEMAS)[1].options)
        name = SCHEMAS.partition("/")[2]
        engine = await engines.open(options.engine, name, options.rest, options.capture)
        try:
            await self._read(engine)
        finally:
            with suppress(CogworkError):
                await engine.close()

    async def _read(self, engine: Engine) -> None:
        registry = Registry()
        self.next = 0
        async with aclosing(engine.subscribe(self._start)) as records:
            async for each in records:
                if isinstance(each, Snapshot):
                    registry = self._restored(each)
                    self.next = each.offset
                elif isinstance(each, CaughtUp):
                    self.problem = None
                    self._know(registry)
                else:
                    await self._apply(registry, each)

    def _restored(self, snapshot: Snapshot) -> Registry:
        """Read a snapshot.

        Raises:
            InvalidSchema: It is none; what is read next begins with the first record.
        """
        try:
            return Registry.from_bytes(snapshot.data)
        except SchemaError:
            self._start = Origin.FIRST
            raise

    async def _apply(self, registry: Registry, chunk: Chunk) -> None:
        for offset, record in enumerate(chunk.batch.records(), chunk.offset):
            if offset < self.next:
                continue
            self.next = offset + 1
            if offset % TURN_COUNT == 0:
                await asyncio.sleep(0)
            try:
                registry.apply(content_of(Message.decode(record))[1])
            except (SchemaError, CogworkError) as error:
                self.ignored += 1
                log.info("ignoring record %s of %s: %s", offset, SCHEMAS, error)
