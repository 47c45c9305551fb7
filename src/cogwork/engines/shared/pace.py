"""How many entries to read at once from a server that bounds a read by their number alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.engines.shared.entry import Entry
from cogwork.plugin.engine.errors import Malformed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    Fetch = Callable[[int], Awaitable[tuple[int, bytes] | None]]

__all__ = ("READ_BYTES_MAX", "Pace")

READ_BYTES = 2 << 20
"""Of so many octets a read is to be, if the entries that come are like those that came."""

READ_BYTES_MAX = 8 << 20
"""No read of more than the safe number is larger, whatever comes."""


class Pace:
    """One reader's.

    Theory of operation. A few entries are safe whatever their size. More are read only once it is
    known what they have together: each says how much was written before it, so one that lies ahead
    tells. That works only where a position follows the other.

    Args:
        safe_count: So many are safe.
        most_count: No more are read at once.
        fetch: Gets the first entry at a position or above.
    """

    def __init__(self, safe_count: int, most_count: int, fetch: Fetch) -> None:
        self._safe_count = safe_count
        self._most_count = most_count
        self._fetch = fetch
        self._count = safe_count
        self._written: int | None = None

    def plan(self, entries: Sequence[tuple[int, bytes]], count: int) -> None:
        """Decide how many are wanted next, by those that were read now.

        Args:
            entries: These.
            count: How many could have been read; where there were fewer, that is the end.
        """
        self._count = self._safe_count
        self._written = None
        if len(entries) < count:
            return
        size_bytes = sum(len(data) for _, data in entries) // count
        wanted = READ_BYTES // max(1, size_bytes)
        self._count = max(1, min(wanted, count * 2, self._most_count))
        last = _entry(entries[-1][1])
        if last is not None:
            self._written = last.written + last.size_bytes

    async def count(self, position: int) -> int:
        """Return how many to read from a position on, so that they are no more than some MiB.

        Raises:
            ServerDown: The server does not answer.
        """
        count = self._count
        while count > self._safe_count:
            if await self._fits(position + count - 1):
                return count
            count //= 2
        return min(self._count, self._safe_count)

    async def _fits(self, last: int) -> bool:
        """Return whether the entries up to this one are there, and small enough."""
        got = await self._fetch(last) if self._written is not None else None
        entry = _entry(got[1]) if got is not None and got[0] == last else None
        if entry is None or self._written is None:
            return False
        return 0 <= entry.written + entry.size_bytes - self._written <= READ_BYTES_MAX


def _entry(data: bytes) -> Entry | None:
    try:
        return Entry.from_bytes(data)
    except Malformed:
        return None
