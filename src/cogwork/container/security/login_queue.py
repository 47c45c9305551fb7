"""Password checks in turns: a source of many waits behind itself, and mesh users behind nobody.

Theory of operation. A check takes a core for a quarter of a second, so few run at once and the rest
waits. Each source address has a queue of its own, and the queues take turns: an attacker fills its
own. Where too many wait in all, the longest queue loses its newest. Users who are other containers
have queues and a thread besides: a mesh must come together again whatever clients do.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from cogwork.sasl.sides import LoginBusyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

__all__ = ("LoginQueue",)

Job = tuple["asyncio.Future[bool]", "Callable[[], bool]"]


@dataclass
class _Lane:
    """Queues by source, in the order of their turns.

    Attributes:
        threads: How many checks of it may run at once.
        waiting: Those that wait; no queue is empty.
        running: Those that run.
    """

    threads: int
    waiting: OrderedDict[str, deque[Job]] = field(default_factory=OrderedDict)
    running: int = 0

    def next(self) -> Job | None:
        """Take the first of the source whose turn it is; it has its next turn after the others."""
        if not self.waiting:
            return None
        source, jobs = self.waiting.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self.waiting[source] = jobs
        return job


class LoginQueue:
    """Owned by an event loop."""

    def __init__(self, executor: Executor, threads: int, reserve: int, waiting_max: int) -> None:
        """Start with nothing to do yet.

        Args:
            executor: Runs the checks; has as many threads as both numbers together.
            threads: Checks of ordinary users that run at once.
            reserve: Checks of mesh users that run besides.
            waiting_max: Those that may wait, together; a source may have a quarter of them.
        """
        self._executor = executor
        self._lanes = (_Lane(threads), _Lane(reserve))
        self._waiting_max = waiting_max

    async def run(self, source: str, work: Callable[[], bool], *, is_reserved: bool) -> bool:
        """Run a check when it is its turn.

        Args:
            source: Where it comes from.
            work: The check.
            is_reserved: Whether it is of a mesh user.

        Raises:
            LoginBusyError: Too many wait already.
        """
        lane = self._lanes[is_reserved]
        waits = len(lane.waiting.get(source, ()))
        if waits >= max(1, self._waiting_max // 4):
            raise LoginBusyError(f"{waits} logins from {source} wait for their password check")
        if sum(map(len, lane.waiting.values())) >= self._waiting_max:
            self._make_room(lane, waits)
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        job = (future, work)
        lane.waiting.setdefault(source, deque()).append(job)
        self._start(lane)
        try:
            return await future
        finally:
            self._forget(lane, source, job)

    def _make_room(self, lane: _Lane, waits: int) -> None:
        longest = max(lane.waiting.values(), key=len)
        busy = LoginBusyError(f"{self._waiting_max} logins wait for their password check")
        if len(longest) <= waits + 1:
            raise busy
        future, _ = longest.pop()
        if not future.done():
            future.set_exception(busy)

    def _forget(self, lane: _Lane, source: str, job: Job) -> None:
        """Take out what its peer does not wait for any more."""
        jobs = lane.waiting.get(source)
        if jobs is not None and job in jobs:
            jobs.remove(job)
            if not jobs:
                del lane.waiting[source]

    def _start(self, lane: _Lane) -> None:
        while lane.running < lane.threads and (job := lane.next()) is not None:
            future, work = job
            if future.done():
                continue
            lane.running += 1
            done = asyncio.wrap_future(self._executor.submit(work))
            done.add_done_callback(partial(self._ended, lane, future))

    def _ended(self, lane: _Lane, future: asyncio.Future[bool], done: asyncio.Future[bool]) -> None:
        lane.running -= 1
        error = None if done.cancelled() else done.exception()
        if not future.done():
            if done.cancelled():
                future.cancel()
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result())
        if not done.cancelled():  # else the threads are stopping
            self._start(lane)
