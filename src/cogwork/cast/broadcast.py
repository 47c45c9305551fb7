"""Broadcast: the order is made by a stream, for cogs in many processes (*plants*).

Theory of operation. What is sent waits in a list; one task appends all that waits at once and takes
the next when that is answered, so that batches grow with the load. All cogs that have caught up are
pushed to by one reader; one that is added late has its own until it has come to the same place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

from cogwork.cast.cast import Cast, octets_in
from cogwork.cast.feed import Feed
from cogwork.plugin.engine.batch import LENGTH_BYTES
from cogwork.plugin.engine.contract import Origin, Snapshot, Start
from cogwork.plugin.engine.errors import Busy, InvalidAppend, Unavailable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from cogwork.cast.cog import Cog
    from cogwork.cast.line import Line

__all__ = ("Broadcast",)

BATCH_BYTES = 256 << 10
"""What is appended at once, about."""

UNDER_WAY_BYTES_MAX = 16 << 20
"""How much may wait for its place."""


class Broadcast(Cast):
    """A cast whose order is made by a stream.

    Args:
        line: The way to the stream.
    """

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line
        self._waiting: deque[tuple[bytes, ...]] = deque()
        self._under_way_bytes = 0
        self._end = 0
        self._is_end_known = True
        self._sender: asyncio.Task[None] | None = None
        self._feeds: dict[Feed, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress: asyncio.Future[None] | None = None
        self._is_closed = False
        self._broken: Exception | None = None

    @property
    def producer(self) -> bytes:
        """Whom the messages that this cast sends come from."""
        return self._line.producer

    async def __aenter__(self) -> Self:
        await self._line.open()
        return self

    # -- messages

    def send(self, *bodies: bytes) -> None:
        """Send messages, in this order; return before they have their places."""
        if not bodies:
            return
        if self._broken is not None:
            raise self._broken
        if self._is_closed:
            raise Unavailable("the cast was closed")
        size_bytes = octets_in(bodies) + LENGTH_BYTES * len(bodies)
        if size_bytes > self._line.batch_bytes_max:
            raise InvalidAppend(f"{size_bytes} octets are too many at once: send them in parts")
        if self._under_way_bytes > UNDER_WAY_BYTES_MAX:
            raise Busy(f"{self._under_way_bytes} octets wait for their place")
        self._under_way_bytes += size_bytes
        self._waiting.append(bodies)
        if self._sender is None or self._sender.done():
            self._sender = self._begin(self._append_all())

    async def _append_all(self) -> None:
        """Append what waits, until nothing does."""
        try:
            while self._waiting:
                # Whoever sends in this turn of the loop is in the same batch.
                await asyncio.sleep(0)
                bodies, size_bytes = self._take()
                end = await self._line.append(bodies)
                self._is_end_known = end is not None
                self._end = end or 0
                self._under_way_bytes -= size_bytes
                self._tell_progress()
        except Exception as error:
            self._broken = error
            self._tell_progress()

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _take(self) -> tuple[list[bytes], int]:
        """Take as much as is appended at once; what was sent together stays together."""
        limit = min(BATCH_BYTES, self._line.batch_bytes_max)
        bodies = list(self._waiting.popleft())
        size_bytes = _size(bodies)
        while self._waiting and size_bytes + (more := _size(self._waiting[0])) <= limit:
            bodies += self._waiting.popleft()
            size_bytes += more
        return bodies, size_bytes

    async def sync(self) -> None:
        """Wait until what was sent here, and what cogs sent in answer, has reached all cogs."""
        while self._broken is None and (self._is_behind() or not self._is_end_known):
            if not self._under_way_bytes and not self._is_end_known:
                self._is_end_known = True
                self._end = await self._line.end()
                continue
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._progress)
        self._raise_failure()
        if self._broken is not None:
            raise self._broken

    def _is_behind(self) -> bool:
        if self._under_way_bytes:
            return True
        return any(not feed.has_caught_up or (feed.offset or 0) < self._end for feed in self._feeds)

    def _tell_progress(self) -> None:
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None

    # -- cogs

    def add(self, cog: Cog, start: Start = Origin.FIRST) -> None:
        """Add a cog, which is pushed to from its start on.

        Args:
            cog: Which is in no cast yet.
            start: Where it begins.

        Raises:
            ValueError: It is in a cast already.
        """
        self._take_in(cog)
        feed = Feed(cog, start, self._fail, self._on_progress)
        self._feeds[feed] = self._begin(feed.run(self._line))

    def __contains__(self, cog: object) -> bool:
        """Whether a cog is in this cast."""
        return any(each is cog for feed in self._feeds for each in feed.cogs)

    def _on_progress(self, feed: Feed) -> None:
        """Join feeds that are at the same place: the one that is older goes on."""
        self._tell_progress()
        if not feed.has_caught_up or len(self._feeds) == 1:
            return
        same = [each for each in self._feeds if each.has_caught_up and each.offset == feed.offset]
        for other in same[1:]:
            same[0].cogs += other.cogs
            other.cogs = ()
            self._end_feed(other)

    def _end_feed(self, feed: Feed) -> None:
        task = self._feeds.pop(feed)
        if task is not asyncio.current_task():
            task.cancel()

    def remove(self, cog: Cog) -> None:
        """Take a cog out; it is given nothing more."""
        for feed in list(self._feeds):
            if any(each is cog for each in feed.cogs):
                feed.cogs = tuple(each for each in feed.cogs if each is not cog)
                if not feed.cogs:
                    self._end_feed(feed)
        self._tell_progress()

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a state that cogs may begin with instead of all that led to it."""
        await self._line.save_snapshot(snapshot)

    async def close(self) -> None:
        """End it; what is under way may still get its place."""
        self._is_closed = True
        self._feeds.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._line.close()


def _size(bodies: Sequence[bytes]) -> int:
    return sum(map(len, bodies)) + LENGTH_BYTES * len(bodies)
