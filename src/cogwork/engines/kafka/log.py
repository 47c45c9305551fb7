"""One topic as a log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cogwork.engines.kafka.absence import Absence, Absent
from cogwork.engines.kafka.errors import translated
from cogwork.engines.kafka.reader import KafkaReader
from cogwork.engines.kafka.sender import ENTRY_BYTES_MAX
from cogwork.engines.shared.server import Moved
from cogwork.plugin.engine.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.engines.kafka.host import KafkaHost
    from cogwork.plugin.engine.contract import Members
    from cogwork.plugin.engine.durability import Durability

__all__ = ("KafkaLog",)


class KafkaLog:
    """The log of one stream.

    Args:
        host: Whose it is.
        topic: Its topic.
        settings: librdkafka's.
        durability: As the topic is set up.
    """

    entry_bytes_max = ENTRY_BYTES_MAX

    def __init__(
        self, host: KafkaHost, topic: str, settings: Mapping[str, Any], durability: Durability
    ) -> None:
        self.capabilities = Capabilities(durability=durability, is_uniform=False)
        self._host = host
        self._topic = topic
        self._settings = settings
        self._last = 0
        self._fetcher: KafkaReader | None = None
        self._fetching = asyncio.Lock()
        self._absence = Absence()

    async def append(self, expected: int, entry: bytes) -> int:
        """Append an entry, which counts if it is behind the one at position `expected`."""
        with self._absence.judged(), translated():
            position = await self._host.sender.send(self._topic, entry) + 1
        self._absence.end()
        if position != expected + 1:
            raise Moved(position)
        return position

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Return the first entry at a position or above."""
        async with self._fetching:
            if position > self._last:
                await self._look()
            return await self._opened().fetch(position) if position <= self._last else None

    async def ends(self) -> tuple[int, int]:
        """Return the positions of the first and the last entry."""
        async with self._fetching:
            return await self._look()

    async def reader(self, position: int) -> KafkaReader:
        """Return a reader that begins at a position."""
        reader = KafkaReader(self._settings, self._topic, self._absence)
        try:
            await reader.seek(position)
        except BaseException:
            await reader.close()
            raise
        return reader

    async def trim(self, before: int) -> None:
        """Give up the entries below a position."""
        with self._absence.judged():
            await self._host.delete_records(self._topic, before - 1)

    async def members(self) -> Members:
        """Return which brokers hold the log."""
        with self._absence.judged():
            return await self._host.members(self._topic)

    async def close(self) -> None:
        """Let go of it."""
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            await fetcher.close()

    async def _look(self) -> tuple[int, int]:
        """Ask for the ends."""
        try:
            first, self._last = await self._opened().ends()
        except Absent:
            # A client that was told of no such topic may go on believing it; another one asks.
            await self.close()
            raise
        return first, self._last

    def _opened(self) -> KafkaReader:
        if self._fetcher is None:
            self._fetcher = KafkaReader(self._settings, self._topic, self._absence, is_single=True)
        return self._fetcher
