"""What a service is at work on: a request runs, or waits because as many as may run do."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.message import MessageId
    from cogwork.client.rpc.outlet import Outlet
    from cogwork.client.rpc.work import Work

__all__ = ("Works",)

LEFT_MAX = 4_096
"""Of so many calls that are unknown it is remembered that they were cancelled, the latest ones."""


class Works:
    """The works of one service, from their beginning or their wait for it to their end."""

    def __init__(
        self, concurrency: int, begin: Callable[[Work], None], flush: Callable[[], object]
    ) -> None:
        """Has nothing to do yet.

        Args:
            concurrency: How many may run at once.
            begin: Runs a work, which may end at once.
            flush: Sends what was written; there is no other reply that the last one could leave
                with.
        """
        self._concurrency = concurrency
        self._begin = begin
        self._flush = flush
        self._known: dict[tuple[str | None, MessageId | None], Work] = {}
        self._left: OrderedDict[tuple[str | None, MessageId | None], None] = OrderedDict()
        self._running: set[Work] = set()
        self._backlog: deque[Work] = deque()
        self._is_idle = asyncio.Event()
        self._is_beginning = False

    def __contains__(self, work: Work) -> bool:
        """Whether something is under work, and does not wait."""
        return work in self._running

    @property
    def running(self) -> int:
        """Counts those that are under work."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Counts those that wait because too many are under work."""
        return len(self._backlog)

    @property
    def left(self) -> int:
        """Counts the calls that were cancelled and have not come."""
        return len(self._left)

    def take(self, work: Work) -> None:
        """Begins a work, or has it wait for its turn."""
        if len(self._running) >= self._concurrency:
            self._backlog.append(work)
            self.know(work)
        else:
            self._running.add(work)
            self._begin(work)

    def know(self, work: Work) -> None:
        """Lets its caller cancel a work, and its deadline end it."""
        if not work.is_watched:
            work.watch(0.0, 0.0, 0)
        if work.reply_to is not None:
            self._known[work.reply_to, work.number] = work

    def find(self, reply_to: str | None, number: MessageId | None) -> Work | None:
        """Returns what is known of a call; None where it is over, or was never known."""
        return self._known.get((reply_to, number))

    def leave(self, reply_to: str | None, number: MessageId | None) -> None:
        """Takes note that a call is cancelled that may come yet: the two go different ways."""
        self._left[reply_to, number] = None
        if len(self._left) > LEFT_MAX:
            self._left.popitem(last=False)

    def was_left(self, reply_to: str | None, number: MessageId | None) -> bool:
        """Tells whether a call that comes now was cancelled before; it comes once."""
        if (reply_to, number) not in self._left:
            return False
        del self._left[reply_to, number]
        return True

    def ended(self, work: Work) -> None:
        """A work is done: lets the next one begin."""
        if work.is_watched:
            self._known.pop((work.reply_to, work.number), None)
        if work in self._running:
            self._running.discard(work)
        else:
            self._backlog.remove(work)
        work.let_go()
        if self._backlog and not self._is_beginning:
            self._begin_next()
        if not self._running:
            self._is_idle.set()
            self._flush()

    def _begin_next(self) -> None:
        self._is_beginning = True  # what ends at once must not begin the next one within itself
        try:
            while self._backlog and len(self._running) < self._concurrency:
                work = self._backlog.popleft()
                self._running.add(work)
                self._begin(work)
        finally:
            self._is_beginning = False

    # -- ending early

    def lost(self, outlet: Outlet) -> None:
        """A caller that came directly has gone: nobody waits for what it asked, without a key.

        With one it asks again through the mesh, and is to find what it has begun.
        """
        known = list(self._known.values())
        for work in known:
            if work.outlet is outlet and work.key is None:
                work.cancel()

    def cancel_waiting(self) -> None:
        """Cancels what has not begun."""
        for work in list(self._backlog):
            work.cancel()

    def cancel(self) -> list[asyncio.Future[Any]]:
        """Cancels everything; returns the tasks that have yet to come to their end."""
        tasks = [work.task for work in self._running if work.task is not None]
        for work in [*self._backlog, *self._running]:
            work.cancel()
        return tasks

    async def idle(self, timeout_s: float) -> None:
        """Waits until nothing is under work.

        Raises:
            TimeoutError: Something still is.
        """
        if self._running:
            self._is_idle.clear()
            await asyncio.wait_for(self._is_idle.wait(), timeout_s)
