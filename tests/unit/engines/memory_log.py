"""A log in memory that does what servers do: repeats, loses answers, lets strangers write."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from cogwork.engines.shared.host import SharedHost
from cogwork.engines.shared.server import Moved, ServerDown
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.contract import Members
from cogwork.plugin.engine.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MemoryLog:
    """One server.

    Args:
        compares: Whether it compares before it appends; else it appends whatever comes.
        chance: Where its troubles come from; None for none.
    """

    def __init__(
        self,
        compares: bool = True,
        chance: random.Random | None = None,
        entry_bytes_max: int = 4096,
    ) -> None:
        self.entry_bytes_max = entry_bytes_max
        self.capabilities = Capabilities(durability=Durability.MEMORY, is_uniform=False)
        self.entries: dict[int, bytes] = {}
        self.last = 0
        self.trouble = 0.0
        self._compares = compares
        self._chance = chance or random.Random(0)
        self._grown = asyncio.Event()
        self._late: list[bytes] = []

    def put(self, entry: bytes) -> int:
        """Append octets, whoever's they are."""
        self.last += 1
        self.entries[self.last] = entry
        self._grown.set()
        self._grown = asyncio.Event()
        return self.last

    async def append(self, expected: int, entry: bytes) -> int:
        await self._delay()
        if self._is_unlucky():
            raise ServerDown("lost on the way", may_have_happened=self._chance.random() < 0.5)
        if self._compares and expected != self.last:
            raise Moved(self.last)
        if not self._compares and self._is_unlucky():
            self._late.append(entry)
            raise ServerDown("it will come later")
        while self._late and self._chance.random() < 0.3:
            self.put(self._late.pop())
        position = self.put(entry)
        if not self._compares and self._is_unlucky():
            self.put(entry)
        if self._is_unlucky():
            raise ServerDown("the answer was lost")
        if position != expected + 1:
            raise Moved(position)
        return position

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        await self._delay()
        for each in range(max(position, 1), self.last + 1):
            if each in self.entries:
                return each, self.entries[each]
        return None

    async def ends(self) -> tuple[int, int]:
        await self._delay()
        return min(self.entries, default=self.last + 1), self.last

    async def reader(self, position: int) -> MemoryReader:
        return MemoryReader(self, position)

    async def trim(self, before: int) -> None:
        for position in [each for each in self.entries if each < before]:
            del self.entries[position]

    async def members(self) -> Members:
        return Members(("memory",), (), "memory")

    async def close(self) -> None:
        pass

    async def wait(self, wait_s: float) -> None:
        """Wait until something is appended."""
        try:
            async with asyncio.timeout(wait_s):
                await self._grown.wait()
        except TimeoutError:
            return

    def is_unlucky(self) -> bool:
        return self._is_unlucky()

    def _is_unlucky(self) -> bool:
        return self._chance.random() < self.trouble

    async def _delay(self) -> None:
        for _ in range(self._chance.randrange(3)):
            await asyncio.sleep(0)


class MemoryReader:
    """Gives what is there; in trouble it repeats, leaves out, and breaks."""

    def __init__(self, log: MemoryLog, position: int) -> None:
        self._log = log
        self._position = position

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        if self._log.is_unlucky():
            raise ServerDown("the reader broke")
        if self._position > self._log.last:
            await self._log.wait(wait_s)
        found = [each for each in self._log.entries.items() if each[0] >= self._position][:5]
        if found:
            self._position = found[-1][0] + 1
        if self._log.is_unlucky():
            found = found[1:]
        return [*found, *found[:1]] if self._log.is_unlucky() else found

    async def close(self) -> None:
        pass


class MemoryHost(SharedHost):
    """Has a log for each stream."""

    engine = "memory"
    declared = MemoryLog().capabilities
    compares = True
    logs: dict[str, MemoryLog]

    async def make_log(self, stream: str, options: Mapping[str, object]) -> MemoryLog:
        return self.logs.setdefault(stream, MemoryLog(self.compares, entry_bytes_max=1 << 20))

    async def drop_log(self, stream: str) -> None:
        self.logs.pop(stream, None)

    async def reach(self) -> None:
        pass

    async def disconnect(self) -> None:
        pass
