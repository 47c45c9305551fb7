"""Turns whose output is held until all that it follows from is durable.

Theory of operation. What queues write down in a turn of the loop goes to the write-ahead log, and
what replicated ones write to their streams. The turn is over when the log is durable up to its
place and every append is answered; turns are over in order. Then the output that was held for its
barrier may leave (`dataplane.output`), and who waits for it is called.

A turn is *broken* where something of it was not written and never will be: another container owns
the queue. Connections whose output followed from that have been cut off by then; who waits within
the process is told.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from cogwork.dataplane.core import Core

__all__ = ("Barrier", "Barriers")


log = logging.getLogger("cogwork")


class Barrier:
    """A turn.

    Attributes:
        number: The core's, once the turn has ended.
        lsn: Its place in the log, once what it wrote is there.
        appends: How many are not answered.
        calls: Made when it is over, with whether all of it is durable.
        is_broken: Whether something of it is not written.
    """

    __slots__ = ("appends", "calls", "is_broken", "lsn", "number")

    def __init__(self) -> None:
        self.number = 0
        self.lsn = 0
        self.appends = 0
        self.calls: list[Callable[[bool], object]] = []
        self.is_broken = False


class Barriers:
    """The turns that are not over."""

    def __init__(self, core: Core) -> None:
        """The first turn has begun.

        Args:
            core: Holds the output.
        """
        self._core = core
        self._turn = Barrier()
        self._ended: deque[Barrier] = deque()
        self._calls: deque[Callable[[], object]] = deque()
        self._durable_lsn = 0

    def wait_for(self, answer: Future[Any]) -> None:
        """Have the present turn wait for an append, or a write; it is broken where that fails."""
        self._turn.appends += 1
        answer.add_done_callback(partial(self._answered, self._turn))

    def when_over(self, call: Callable[[bool], object]) -> None:
        """Have a call made once the present turn is over, with whether all of it is durable."""
        self._turn.calls.append(call)

    def break_turn(self) -> None:
        """Take note that something of the present turn will not be written."""
        self._turn.is_broken = True

    def end_turn(self) -> Barrier:
        """End the present turn; `placed` says where its records are."""
        barrier, self._turn = self._turn, Barrier()
        barrier.number = self._core.close_barrier()
        return barrier

    def placed(self, barrier: Barrier, lsn: int) -> None:
        """Take note that all that a turn wrote is in the log below a place."""
        barrier.lsn = lsn
        self._ended.append(barrier)

    def durable(self, lsn: int) -> None:
        """Take note that the log is durable up to a place."""
        self._durable_lsn = max(self._durable_lsn, lsn)
        if self._ended:
            self._release()

    def clear(self) -> None:
        """Forget the turns that have ended: their output will never leave."""
        self._ended.clear()

    def _answered(self, barrier: Barrier, answer: Future[Any]) -> None:
        barrier.appends -= 1
        barrier.is_broken |= answer.cancelled() or answer.exception() is not None
        if not barrier.appends and self._ended and self._ended[0] is barrier:
            self._release()

    def _release(self) -> None:
        over: list[Barrier] = []
        ended = self._ended
        while ended and ended[0].lsn <= self._durable_lsn and not ended[0].appends:
            over.append(ended.popleft())
        for barrier in over:
            self._calls.extend(partial(call, not barrier.is_broken) for call in barrier.calls)
        try:
            if over:
                self._core.release(over[-1].number)
        finally:  # whatever becomes of the output, who waits within the process is told
            self._call()

    def _call(self) -> None:
        """Make the calls that are due: one that fails keeps none of the others from theirs."""
        while self._calls:
            call = self._calls.popleft()
            try:
                call()
            except Exception:  # whatever it is, others wait for theirs
                log.exception("the handler of a durable write failed")
