"""Finds entries in a log by what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.engines.shared.chain import Chain, Gap, is_stray
from cogwork.engines.shared.entry import Entry
from cogwork.plugin.engine.errors import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.engines.shared.server import ServerLog

__all__ = ("Found", "Search")


class Found(NamedTuple):
    """An entry that counts.

    Attributes:
        position: Where it is.
        entry: What it is.
    """

    position: int
    entry: Entry


class Search:
    """Looks entries up, one by one.

    Theory of operation. An entry that names the one directly before it counts: there is none
    between that could have been first. From such an *anchor* on, a chain tells which ones count.
    Where the server compares before it appends every entry is an anchor.

    Args:
        log: Where to look.
    """

    def __init__(self, log: ServerLog) -> None:
        self._log = log

    async def first(self) -> Found | None:
        """Return the oldest entry that counts."""
        first, last = await self._log.ends()
        position = first
        while position <= last:
            found = await self.at(position)
            if found is None:
                return None
            if isinstance(found, Found):
                return found
            position = found + 1
        return None

    async def last(self) -> Found | None:
        """Return the newest entry that counts."""
        first, last = await self._log.ends()
        return await self.until(last, first)

    async def until(self, position: int, first: int) -> Found | None:
        """Return the last entry that counts up to a position, and not below `first`."""
        anchor = await self._anchor(position, first)
        if anchor is None or anchor.position == position:
            return anchor
        chain = Chain.before(*anchor)
        newest = anchor
        where = anchor.position
        while where <= position:
            got = await self._log.fetch(where)
            if got is None or got[0] > position:
                break
            chain.skip_to(got[0])
            try:
                entry = chain.take(*got)
            except Gap:
                break
            if entry is not None:
                newest = Found(got[0], entry)
            where = got[0] + 1
        return newest

    async def last_with(self, test: Callable[[Entry], bool]) -> Found | None:
        """Return the last entry that passes a test, which all up to it do and none after it."""
        first, last = await self._log.ends()
        best = await self.first()
        if best is None or not test(best.entry):
            return None
        low, high = best.position, last + 1
        while high - low > 1:
            middle = (low + high) // 2
            found = await self.until(middle, first)
            if found is None or found.position <= best.position:
                low = middle
            elif test(found.entry):
                best, low = found, middle
            else:
                high = found.position
        return best

    async def at(self, position: int) -> Found | int | None:
        """Return the entry at a position or above; its position alone where it cannot count."""
        got = await self._log.fetch(position)
        if got is None:
            return None
        try:
            entry = Entry.from_bytes(got[1])
        except Malformed:
            return got[0]
        return got[0] if is_stray(got[0], entry) else Found(got[0], entry)

    async def _anchor(self, position: int, first: int) -> Found | None:
        """Return the last anchor up to a position."""
        oldest: Found | None = None
        while position >= first:
            found = await self.at(position)
            if isinstance(found, Found) and found.position <= position:
                oldest = found
                if found.entry.previous == found.position - 1:
                    break
            position -= 1
        return oldest
