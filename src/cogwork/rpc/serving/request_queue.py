"""What a service is at work on: a request runs, or waits because as many as may run do."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.message import MessageId
    from cogwork.rpc.serving.reply_sender import ReplySender
    from cogwork.rpc.serving.request_task import RequestTask

__all__ = ("RequestQueue",)

LEFT_MAX = 4_096
"""Of so many calls that are unknown it is remembered that they were cancelled, the latest ones."""


SLICE_S = 0.005
"""So long methods that do not wait run before the event loop reads what has come meanwhile: what
waits in a socket gets older, and nobody sees it."""

FULL_S = 0.25
"""So long a service counts as full after it had no room: the next request is on its way."""


class RequestQueue:
    """The requests of one service, from their beginning or their wait for it to their end.

    Attributes:
        begin_s: How long beginning one takes: all of its method, where that does not wait.
    """

    def __init__(
        self,
        concurrency: int,
        *,
        begin: Callable[[RequestTask], None],
        ended: Callable[[], object],
        flush: Callable[[], object],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Start with nothing to do yet.

        Args:
            concurrency: How many may run at once.
            begin: Runs a request, which may end at once.
            ended: Called when one has ended.
            flush: Sends what was written; there is no other reply that the last one could leave
                with.
            loop: Gets its turn when methods that do not wait have run for a while.
        """
        self.begin_s = 0.0
        self._loop = loop
        self._time = loop.time
        self._spent_s = 0.0
        self._is_paused = False
        self._is_full = False
        self._full_s = 0.0
        self._concurrency = concurrency
        self._begin = begin
        self._on_ended = ended
        self._flush = flush
        self._known: dict[tuple[str | None, MessageId | None], RequestTask] = {}
        self._left: OrderedDict[tuple[str | None, MessageId | None], None] = OrderedDict()
        self._running: set[RequestTask] = set()
        self._backlog: deque[RequestTask] = deque()
        self._is_idle = asyncio.Event()
        self._is_beginning = False

    def __contains__(self, task: RequestTask) -> bool:
        """Whether something is under work, and does not wait."""
        return task in self._running

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

    @property
    def load(self) -> int:
        """Counts those that are under work, and those that wait for it."""
        return len(self._running) + len(self._backlog)

    def is_pressed(self, now_s: float) -> bool:
        """Return whether more is asked than can be done at once, or was a moment ago."""
        return self._is_full or bool(self._backlog) or now_s - self._full_s < FULL_S

    def take(self, task: RequestTask) -> None:
        """Begin a request, or have it wait for its turn."""
        if self._is_paused or self._backlog or len(self._running) >= self._concurrency:
            self._backlog.append(task)
            self.know(task)
        else:
            self._start(task)

    def _start(self, task: RequestTask) -> None:
        """Begin a request; leave the next ones to a later turn of the loop where that is due."""
        began_s = self._time()
        self._running.add(task)
        self._begin(task)
        taken_s = self._time() - began_s
        self.begin_s += (taken_s - self.begin_s) / 8
        self._spent_s += taken_s
        if len(self._running) >= self._concurrency:
            self._is_full = True
        if self._spent_s > SLICE_S:
            self._spent_s = 0.0
            self._full_s = self._time()
            if not self._is_paused:
                self._is_paused = True
                self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_paused = False
        if self._backlog:
            self._begin_next()

    def know(self, task: RequestTask) -> None:
        """Let its caller cancel a request, and its deadline end it."""
        if not task.is_watched:
            task.watch(0.0, 0.0, 0)
        if task.reply_to is not None:
            self._known[task.reply_to, task.number] = task

    def find(self, reply_to: str | None, number: MessageId | None) -> RequestTask | None:
        """Return what is known of a call; None where it is over, or was never known."""
        return self._known.get((reply_to, number))

    def leave(self, reply_to: str | None, number: MessageId | None) -> None:
        """Take note that a call is cancelled that may come yet: the two go different ways."""
        self._left[reply_to, number] = None
        if len(self._left) > LEFT_MAX:
            self._left.popitem(last=False)

    def was_left(self, reply_to: str | None, number: MessageId | None) -> bool:
        """Return whether a call that comes now was cancelled before; it comes once."""
        if (reply_to, number) not in self._left:
            return False
        del self._left[reply_to, number]
        return True

    def ended(self, task: RequestTask) -> None:
        """A request is done: lets the next one begin."""
        if task.is_watched:
            self._known.pop((task.reply_to, task.number), None)
        if task in self._running:
            self._running.discard(task)
        else:
            self._backlog.remove(task)
        if self._is_full:
            self._is_full = False
            self._full_s = self._time()
        task.settle()
        if self._backlog and not self._is_beginning:
            self._begin_next()
        self._on_ended()
        if not self._running:
            if not self._backlog:
                self._is_idle.set()
            self._flush()

    def _begin_next(self) -> None:
        self._is_beginning = True  # what ends at once must not begin the next one within itself
        try:
            while self._backlog and not self._is_paused and len(self._running) < self._concurrency:
                self._start(self._backlog.popleft())
        finally:
            self._is_beginning = False

    # -- ending early

    def lost(self, sender: ReplySender) -> None:
        """A caller that came directly has gone: nobody waits for what it asked, without a key.

        With one it asks again through the mesh, and is to find what it has begun.
        """
        known = list(self._known.values())
        for task in known:
            if task.sender is sender and task.key is None:
                task.cancel()

    def hand_back(self) -> None:
        """Leave what has not begun to other servers."""
        self._is_paused = True  # nothing else begins
        for task in list(self._backlog):
            task.hand_back()

    def cancel(self) -> list[asyncio.Future[Any]]:
        """Cancel everything; return the tasks that have yet to come to their end."""
        tasks = [task.runner for task in self._running if task.runner is not None]
        self.hand_back()
        for task in list(self._running):
            task.cancel()
        return tasks

    async def idle(self, timeout_s: float) -> None:
        """Wait until nothing is under work, or wait for that.

        Raises:
            TimeoutError: Something still is.
        """
        if self._running or self._backlog:
            self._is_idle.clear()
            await asyncio.wait_for(self._is_idle.wait(), timeout_s)
