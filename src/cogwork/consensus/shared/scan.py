"""Reads a stream's chunks from an offset on, in step with the server's log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.consensus.errors import Malformed, Truncated
from cogwork.consensus.shared.chain import Chain, Gap
from cogwork.consensus.shared.server import ServerDown

if TYPE_CHECKING:
    from cogwork.consensus.batch import Chunk
    from cogwork.consensus.shared.search import Search
    from cogwork.consensus.shared.server import Reader, ServerLog

__all__ = ("Scan",)


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
        self._gaps = 0
        self.next_offset = offset
        self.ready: deque[Chunk] = deque()

    async def more(self, wait_s: float) -> None:
        """Has more chunks ready, if there are any within some time.

        Raises:
            Malformed: The log is damaged.
            ServerDown: Try again later.
            Truncated: What comes next has been given up.
        """
        if self._chain is None:
            self._chain = await self._find()
        if self._reader is None:
            self._reader = await self._log.reader(self._chain.seen + 1)
        try:
            got = await self._reader.next(wait_s)
            for position, data in got:
                self._take(self._chain, position, data)
        except Gap:
            await self.rest()
            await self._explain_gap()
        except ServerDown:
            await self.rest()
            await self._check_loss()
            raise

    def take(self) -> Chunk:
        """Returns the next chunk of those that are ready."""
        chunk = self.ready.popleft()
        self.next_offset = chunk.next_offset
        return chunk

    async def rest(self) -> None:
        """Ends the server's reader; `more` begins another."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    def _take(self, chain: Chain, position: int, data: bytes) -> None:
        entry = chain.take(position, data)
        if entry is None:
            return
        self._gaps = 0
        wanted = self.ready[-1].next_offset if self.ready else self.next_offset
        for chunk in entry.chunks():
            if chunk.next_offset > wanted:
                self.ready.append(chunk.since(wanted))
                wanted = chunk.next_offset

    async def _find(self) -> Chain:
        """Finds the entry that holds the offset, or the one after which it will come."""
        found = await self._search.last_with(lambda entry: entry.offset <= self.next_offset)
        if found is not None:
            return Chain.before(*found)
        first = await self._search.first()
        if first is not None:
            raise Truncated(first.entry.offset)
        return Chain()

    async def _explain_gap(self) -> None:
        """Says why something is missing; at first it may have got lost on the way."""
        self._gaps += 1
        if self._gaps == 1 or self._chain is None:
            return
        first = await self._search.first()
        if first is not None and first.position > self._chain.position + 1:
            raise Truncated(first.entry.offset)
        raise Malformed(
            "a whole log",
            f"the server's entry behind position {self._chain.position} is damaged: restore it "
            "from a backup, or trim the stream beyond it",
        )

    async def _check_loss(self) -> None:
        """Sees whether the server still has what was read from it; raises if it says it has not."""
        if self._chain is None:
            return
        last = (await self._log.ends())[1]
        if last < self._chain.position:
            raise Malformed(
                "the log that was read before",
                f"the server has lost what was between positions {last} and "
                f"{self._chain.position}; start again from the first record",
            )
