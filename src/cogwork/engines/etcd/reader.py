"""Who reads the log of a stream on etcd."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from cogwork.engines.etcd.gateway import entry_of
from cogwork.engines.shared.pace import READ_BYTES_MAX, Pace
from cogwork.engines.shared.server import ServerDown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.engines.etcd.log import EtcdLog

__all__ = ("EtcdReader",)

READ_ENTRIES_MAX = 512


class EtcdReader:
    """Reads a log from a position on, and follows it.

    Args:
        log: The log.
        position: Where to begin.
    """

    def __init__(self, log: EtcdLog, position: int) -> None:
        self._log = log
        self._position = position
        safe_count = max(1, READ_BYTES_MAX // log.entry_bytes_max)
        self._pace = Pace(safe_count, READ_ENTRIES_MAX, log.fetch)
        self._watch: aiohttp.ClientResponse | None = None
        self._rest = b""

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Return what follows; nothing where nothing came in time."""
        if self._watch is None:
            count = await self._pace.count(self._position)
            entries, revision = await self._log.range(self._position, count)
            self._pace.plan(entries, count)
            if entries:
                return self._noted(entries)
            self._watch = await self._log.watch(self._position, revision + 1)
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    entries = await self._watched(self._watch)
                    if entries:
                        return self._noted(entries)
        except TimeoutError:
            # A watch that is silent may be dead: the next call asks.
            await self.close()
            return ()
        except (aiohttp.ClientError, OSError) as error:
            await self.close()
            raise ServerDown(f"etcd: {error}") from error

    async def close(self) -> None:
        """End it."""
        watch, self._watch = self._watch, None
        self._rest = b""
        if watch is not None:
            watch.close()

    def _noted(self, entries: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        self._position = entries[-1][0] + 1
        return entries

    async def _watched(self, watch: aiohttp.ClientResponse) -> list[tuple[int, bytes]]:
        """Return the entries of the next lines of a watch.

        Raises:
            ServerDown: It has ended.
        """
        data = await watch.content.readany()
        if not data:
            raise ServerDown("etcd: the watch has ended")
        *lines, self._rest = (self._rest + data).split(b"\n")
        entries: list[tuple[int, bytes]] = []
        for line in lines:
            try:
                answer = msgspec.json.decode(line)
                result = answer.get("result", {})
            except (msgspec.DecodeError, AttributeError) as error:
                raise ServerDown(f"etcd answers nonsense: {line[:80]!r}") from error
            if "error" in answer or result.get("canceled"):
                raise ServerDown(f"etcd ends the watch: {line[:200]!r}")
            entries.extend(entry_of(each["kv"]) for each in result.get("events", ()))
        return [each for each in entries if each[0] >= self._position]
