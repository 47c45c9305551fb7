"""Nearcast: the order is made in this thread.

Theory of operation. Whoever sends gets a place at once, and if nobody is being pushed to, all cogs
are pushed to before `send` returns. A cog that sends while it is pushed to only gets its place: its
message is pushed when all cogs have had the one before. So all cogs see one order, and no cog is
called while it is being called. On an event loop what cogs make each other do is cut into turns, so
that others run too; without one it runs to its end.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, Self

from cogwork.cast.canonical import CanonicalBatch
from cogwork.cast.cast import Cast, octets_in
from cogwork.plugin.engine.batch import BATCH_BYTES_MAX, CHUNK_OVERHEAD_BYTES
from cogwork.plugin.engine.chunk_list import ChunkList
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin, Snapshot, Start
from cogwork.plugin.engine.errors import BeyondEnd, Busy, InvalidAppend, Truncated, Unavailable
from cogwork.plugin.engine.retention import Retention
from cogwork.plugins import PLUGIN_FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.cast.cog import Cog

__all__ = ("RETENTION", "Orb")

RETENTION = Retention(size_bytes=256 << 20)
"""What cogs that are added late are given, where nothing else is said."""

UNDER_WAY_BYTES_MAX = 16 << 20
"""How much may have a place but wait for the cogs."""

TURN_BATCHES = 1000
"""How many batches are pushed before others on the event loop run."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Orb(Cast):
    """Distributes messages among cogs of one thread; works without an event loop, too."""

    def __init__(
        self, retention: Retention = RETENTION, now_ms: Callable[[], int] = _now_ms
    ) -> None:
        """Start with no cogs yet.

        Args:
            retention: How much is kept for cogs that are added later.
            now_ms: Tells the time, in milliseconds since 1970.
        """
        super().__init__()
        self._producer = uuid.uuid4().bytes
        self._retention = retention
        self._now_ms = now_ms
        self._log: ChunkList[CanonicalBatch] = ChunkList()
        self._next_offset = 0
        self._first_offset = 0
        self._time_ms = 0
        self._snapshot: Snapshot | None = None
        self._cogs: tuple[Cog, ...] = ()
        self._joining: list[tuple[int, Cog]] = []
        self._behind: list[tuple[int, Cog]] = []
        self._pushed = 0
        self._pushed_offset = 0
        self._is_closed = False
        self._under_way_bytes = 0
        self._is_pushing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: asyncio.Future[None] | None = None

    @property
    def producer(self) -> bytes:
        """Whom the messages that this cast sends come from."""
        return self._producer

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return self

    # -- messages

    def send(self, *bodies: bytes) -> None:
        """Send messages; unless a cog is being pushed to, they have reached all on return."""
        if not bodies:
            return
        size_bytes = octets_in(bodies) + CHUNK_OVERHEAD_BYTES
        if size_bytes > BATCH_BYTES_MAX:
            raise InvalidAppend(
                f"{size_bytes} octets are more than {BATCH_BYTES_MAX}: send them in parts"
            )
        if self._is_closed:
            raise Unavailable("the cast was closed")
        if self._under_way_bytes > UNDER_WAY_BYTES_MAX:
            raise Busy(f"{self._under_way_bytes} octets wait for the cogs")
        self._time_ms = time_ms = max(self._time_ms, self._now_ms())
        batch = CanonicalBatch(bodies, self._next_offset, time_ms, self._producer, size_bytes)
        self._next_offset += len(bodies)
        self._under_way_bytes += size_bytes
        self._log.append(batch)
        if not self._is_pushing:
            self._push()

    def _push(self) -> None:
        """Push what has a place, in its order; on an event loop, no more than a turn's worth."""
        log = self._log
        self._is_pushing = True
        end = self._pushed + TURN_BATCHES
        try:
            while self._pushed < log.next and (self._loop is None or self._pushed < end):
                self._push_batch(log[self._pushed])
        finally:
            self._is_pushing = False
        if self._pushed < log.next:
            self._is_pushing = True
            asyncio.get_running_loop().call_soon(self._push)
        elif self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _push_batch(self, batch: CanonicalBatch) -> None:
        self._pushed += 1
        self._pushed_offset = batch.next_offset
        self._under_way_bytes -= batch.size_bytes
        cogs = self._cogs
        if self._joining:
            self._join(batch)
        for cog in cogs:
            if self._cogs is not cogs and cog not in self._cogs:
                continue
            try:
                cog.on_batch(batch)
            except PLUGIN_FAULTS as error:
                self._fail(cog, error)
        if self._behind:
            self._tell()
        self._retain()

    def _retain(self) -> None:
        """Give up what is too old, of that which has been pushed."""
        log, limits = self._log, self._retention
        oldest_ms = self._now_ms() - int(limits.age_s * 1000) if limits.age_s is not None else 0
        while log.first < self._pushed:
            first = log[log.first]
            is_kept = (
                (limits.size_bytes is None or log.size_bytes <= limits.size_bytes)
                and (limits.records is None or self._next_offset - first.offset <= limits.records)
                and first.time_ms >= oldest_ms
            )
            if is_kept:
                return
            self._first_offset = log.drop_first().next_offset

    async def sync(self) -> None:
        """Wait until all that was sent has reached all cogs."""
        while self._pushed < self._log.next:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)
        self._raise_failure()

    # -- cogs

    def add(self, cog: Cog, start: Start = Origin.FIRST) -> None:
        """Add a cog, and give it what has been pushed since its start before it returns.

        Args:
            cog: Which is in no cast yet.
            start: Where it begins.

        Raises:
            ValueError: It is in a cast already.
        """
        self._take_in(cog)
        was_pushing = self._is_pushing
        self._is_pushing = True
        end = self._next_offset
        try:
            self._joining.append((self._catch_up(cog, start), cog))
            self._behind.append((end, cog))
        except PLUGIN_FAULTS as error:
            self._fail(cog, error)
        finally:
            self._is_pushing = was_pushing
        self._join(None)
        self._tell()
        if not was_pushing:
            self._push()

    def __contains__(self, cog: object) -> bool:
        """Whether a cog is in this cast."""
        joining = (each for _, each in self._joining)
        return any(each is cog for each in (*self._cogs, *joining))

    def _catch_up(self, cog: Cog, start: Start) -> int:
        """Give a cog what has been pushed since its start; return the offset that follows."""
        self._retain()
        offset = self._find(start)
        if offset < self._first_offset:
            raise Truncated(self._first_offset)
        if offset > self._next_offset:
            raise BeyondEnd(offset, self._next_offset)
        if start is Origin.SNAPSHOT and self._snapshot is not None:
            cog.on_snapshot(self._snapshot)
        ordinal = self._log.find(offset)
        while ordinal < self._pushed:
            batch = self._log[ordinal]
            cog.on_batch(batch.since(offset))
            offset = batch.next_offset
            ordinal += 1
        return offset

    def _join(self, batch: CanonicalBatch | None) -> None:
        """Have those take part whose start has come; in the middle of a batch, from there."""
        for offset, cog in self._joining[:]:
            if offset <= self._pushed_offset:
                self._joining.remove((offset, cog))
                self._cogs = (*self._cogs, cog)
                if batch is not None and offset < batch.next_offset:
                    try:
                        cog.on_batch(batch.since(offset))
                    except PLUGIN_FAULTS as error:
                        self._fail(cog, error)

    def _tell(self) -> None:
        """Tell those that have caught up."""
        for end, cog in self._behind[:]:
            if end <= self._pushed_offset:
                self._behind.remove((end, cog))
                try:
                    cog.on_caught_up()
                except PLUGIN_FAULTS as error:
                    self._fail(cog, error)

    def _find(self, start: Start) -> int:
        if isinstance(start, FromOffset):
            return start.offset
        if isinstance(start, FromTime):
            ordinal = self._log.find_time(start.time_ms)
            return self._log[ordinal].offset if ordinal < self._log.next else self._next_offset
        if start is Origin.NEXT:
            return self._next_offset
        if start is Origin.LAST:
            return max(self._first_offset, self._next_offset - 1)
        if start is Origin.SNAPSHOT and self._snapshot is not None:
            return self._snapshot.offset
        return self._first_offset

    def remove(self, cog: Cog) -> None:
        """Take a cog out; it is given nothing more."""
        self._cogs = tuple(each for each in self._cogs if each is not cog)
        self._joining = [each for each in self._joining if each[1] is not cog]
        self._behind = [each for each in self._behind if each[1] is not cog]

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a state that cogs may begin with instead of all that led to it."""
        if snapshot.offset > self._next_offset:
            raise BeyondEnd(snapshot.offset, self._next_offset)
        self._retain()
        if self._snapshot is None or snapshot.offset >= self._snapshot.offset:
            if snapshot.offset < self._first_offset:
                raise Truncated(self._first_offset)
            self._snapshot = snapshot

    async def close(self) -> None:
        """End it; no cog is given anything more."""
        self._is_closed = True
        self._cogs = ()
        self._joining.clear()
        self._behind.clear()
