"""The way to a stream that is open on an engine, in this process."""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING

from cogwork.cast.canonical import CanonicalBatch
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.errors import Busy, NotLeader, Unavailable, Unknown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from cogwork.plugin.engine.contract import CaughtUp, Engine, Snapshot, Start

__all__ = ("EngineLine",)

RETRY_MIN_S = 0.01
RETRY_MAX_S = 1.0

log = logging.getLogger("cogwork.cast")


class EngineLine:
    """Appends with a producer id of its own, and again until there is an answer.

    Args:
        engine: The stream; it stays open.

    Attributes:
        producer: The id.
    """

    def __init__(self, engine: Engine) -> None:
        self.producer = uuid.uuid4().bytes
        self._engine = engine
        self._sequence = 0

    @property
    def batch_bytes_max(self) -> int:
        """How much can be appended at once."""
        return self._engine.capabilities.batch_bytes_max

    async def open(self) -> None:
        """Is open already."""

    async def close(self) -> None:
        """Leave the engine to whom it belongs."""

    async def append(self, bodies: Sequence[bytes]) -> int | None:
        """Append messages, each once; return the offset after the last one."""
        batch = Batch.of(bodies, self.producer, self._sequence)
        self._sequence += batch.count
        pause_s = RETRY_MIN_S
        while True:
            try:
                answer = await self._engine.append(batch)
            except (Busy, NotLeader, Unavailable, Unknown) as error:
                log.info("cannot append, retrying in %s s: %s", pause_s, error)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, RETRY_MAX_S)
            else:
                break
        return None if answer.first_offset is None else answer.first_offset + batch.count

    async def end(self) -> int:
        """Return the offset after the newest message."""
        return (await self._engine.bounds()).next

    async def read(
        self, start: Start
    ) -> AsyncGenerator[CanonicalBatch | CaughtUp | Snapshot, None]:
        """Yield messages from a place on, without an end."""
        async with aclosing(self._engine.subscribe(start)) as subscription:
            async for found in subscription:
                yield CanonicalBatch.of(found) if isinstance(found, Chunk) else found

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in the stream."""
        await self._engine.save_snapshot(snapshot)
