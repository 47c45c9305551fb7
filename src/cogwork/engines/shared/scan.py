"""Reads a stream's chunks from an offset on, in step with the server's log."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from cogwork.engines.shared.chain import Chain, Forked, Gap
from cogwork.engines.shared.memory import Memory
from cogwork.engines.shared.server import ServerDown
from cogwork.plugin.engine.errors import Malformed, RecordsLost, Truncated

if TYPE_CHECKING:
    from cogwork.engines.shared.search import Search
    from cogwork.engines.shared.server import Reader, ServerLog
    from cogwork.plugin.engine.batch import Chunk

__all__ = ("Scan",)

TRUSTED_S = 1.0
"""What has come since is given out as it came: to ask for it again costs the server as much."""


class Scan:
    """One reader's place in a stream.

    It holds what one call of the server's reader gave, and no more. After `ServerDown` the next
    call goes on at the same place.

    Args:
        log: What to read.
        search: Finds things in it.
        offset: Where to begin; at most the next one.

    Attributes:
        next_offset: Of the chunk that comes next.
        ready: Chunks that have come and not been taken.
    """

    def __init__(self, log: ServerLog, search: Search, offset: int) -> None:
        self._log = log
        self._search = search
        self._chain: Chain | None = None
        self._reader: Reader | None = None
        self._memory = Memory()
        self._fork: Forked | None = None
        self._came_s = 0.0
        self.next_offset = offset
        self.ready: deque[Chunk] = deque()

    async def more(self, wait_s: float) -> None:
        """Have more chunks ready, if there are any within some time.

        Raises:
            Malformed: The log is damaged.
            RecordsLost: The server has lost what was read from it.
            ServerDown: Try again later.
            Truncated: What comes next has been given up.
        """
        if self._fork is None:
            try:
                await self._read(wait_s)
            except Forked as error:
                self._fork = error
                await self.rest()
        if self._fork is not None:
            raise RecordsLost(await self._memory.end(self._log)) from self._fork

    async def check(self) -> None:
        """See whether the server still has what is ready, where that came a while ago.

        Raises:
            RecordsLost: It has lost some of that.
            ServerDown: Try again later.
            Truncated: What comes next has been given up.
        """
        if not self.ready or _now_s() - self._came_s < TRUSTED_S:
            return
        if await self._memory.is_true(self._log):
            self._came_s = _now_s()
            return
        first = await self._search.first()
        if first is not None and first.entry.offset > self.next_offset:
            raise Truncated(first.entry.offset)
        raise RecordsLost(await self._memory.end(self._log))

    async def _read(self, wait_s: float) -> None:
        if self._chain is None:
            self._chain = await self._find()
        if self._reader is None:
            await self._check_loss()
            self._reader = await self._log.reader(self._chain.seen + 1)
        try:
            got = await self._reader.next(wait_s)
            self._came_s = _now_s()
            for position, data in got:
                self._take(self._chain, position, data)
            if not got:
                await self._check_end(self._chain)
        except Gap:
            await self.rest()
            if not self.ready:
                await self._close_gap(self._chain)
        except ServerDown:
            await self.rest()
            raise

    def take(self) -> Chunk:
        """Return the next chunk of those that are ready."""
        chunk = self.ready.popleft()
        self.next_offset = chunk.next_offset
        return chunk

    async def rest(self) -> None:
        """End the server's reader; `more` begins another."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    def _take(self, chain: Chain, position: int, data: bytes) -> None:
        entry = chain.take(position, data)
        if entry is None:
            return
        self._memory.add(position, entry)
        wanted = self.ready[-1].next_offset if self.ready else self.next_offset
        for chunk in entry.chunks():
            if chunk.next_offset > wanted:
                self.ready.append(chunk.since(wanted))
                wanted = chunk.next_offset

    async def _find(self) -> Chain:
        """Find the entry that holds the offset, or the one after which it will come."""
        while True:
            found = await self._search.last_with(lambda entry: entry.offset <= self.next_offset)
            if found is not None:
                return Chain.before(*found)
            first = await self._search.first()
            if first is None:
                return Chain()
            if first.entry.offset > self.next_offset:
                raise Truncated(first.entry.offset)
            # The first entry has come between the two questions.

    async def _close_gap(self, chain: Chain) -> None:
        """Take what is next from the server itself: the reader may have lost something."""
        got = await self._log.fetch(chain.seen + 1)
        if got is None:
            return
        chain.skip_to(got[0])
        try:
            self._take(chain, *got)
        except Gap:
            await self._explain_gap(chain)

    async def _check_end(self, chain: Chain) -> None:
        """See, when nothing has come for a while, whether there really is nothing.

        Raises:
            Forked: There is less than has been read.
            Gap: There is.
        """
        last = (await self._log.ends())[1]
        if last > chain.seen:
            raise Gap
        self._compare(chain, last)

    async def _explain_gap(self, chain: Chain) -> None:
        """Say why something is missing."""
        first = await self._search.first()
        if first is not None and first.position > chain.position + 1:
            raise Truncated(first.entry.offset)
        if not await self._memory.is_true(self._log):
            raise Forked(chain.position)
        raise Malformed(
            "a whole log",
            f"the server's entry behind position {chain.position} is damaged: restore it from a "
            "backup, or trim the stream beyond it",
        )

    async def _check_loss(self) -> None:
        """See, before a reader begins again, whether the server has what was read from it."""
        if self._chain is not None:
            self._compare(self._chain, (await self._log.ends())[1])

    @staticmethod
    def _compare(chain: Chain, last: int) -> None:
        if last < chain.position:
            raise Forked(last + 1)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
