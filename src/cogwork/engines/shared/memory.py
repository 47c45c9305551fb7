"""What a reader remembers of the entries that it has read: it may have to say which are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.engines.shared.entry import Entry
from cogwork.plugin.engine.errors import Malformed

if TYPE_CHECKING:
    from cogwork.engines.shared.server import ServerLog

__all__ = ("Memory", "has")

KEPT = 128
"""So many at most: that is some 20 KiB for a stream."""

NEWEST = 32
"""All of so many positions, and of older ones some: each is half as far back again as the next."""


class _Step(NamedTuple):
    position: int
    id: bytes
    next_offset: int


class Memory:
    """Some of the entries that were read: all of the newest, and fewer the older they are."""

    def __init__(self) -> None:
        """Initialize it; it remembers nothing."""
        self._steps: list[_Step] = []

    def add(self, position: int, entry: Entry) -> None:
        """Take the entry that was read last."""
        self._steps.append(_Step(position, entry.id, entry.next_offset))
        if len(self._steps) > KEPT:
            self._thin()

    def _thin(self) -> None:
        """Forget each step between two of which the older is not half as far back again."""
        newest = self._steps[-1].position
        kept: list[_Step] = [self._steps[-1]]
        for older, step in zip(self._steps[-3::-1], self._steps[-2:0:-1], strict=True):
            behind = newest - kept[-1].position
            if newest - step.position < NEWEST or (newest - older.position) * 2 > behind * 3:
                kept.append(step)
        kept.append(self._steps[0])
        self._steps = kept[::-1]

    async def is_true(self, log: ServerLog) -> bool:
        """Return whether the log has the entry that was read last.

        Raises:
            ServerDown: Try again later.
        """
        return not self._steps or await _has(log, self._steps[-1])

    async def end(self, log: ServerLog) -> int:
        """Return the offset up to which the log surely has what was read from it.

        Raises:
            ServerDown: Try again later.
        """
        _, last = await log.ends()
        for step in reversed(self._steps):
            if step.position <= last and await _has(log, step):
                return step.next_offset
        return 0


async def has(log: ServerLog, position: int, entry_id: bytes) -> bool:
    """Return whether a log has this very entry at a position.

    Raises:
        ServerDown: Try again later.
    """
    got = await log.fetch(position)
    if got is None or got[0] != position:
        return False
    try:
        return Entry.from_bytes(got[1]).id == entry_id
    except Malformed:
        return False


async def _has(log: ServerLog, step: _Step) -> bool:
    return await has(log, step.position, step.id)
