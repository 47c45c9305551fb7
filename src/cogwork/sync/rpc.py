"""Streamed replies and services without asyncio."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from cogwork.client.calls import MethodService
from cogwork.client.checks import demand_seconds
from cogwork.sync.closing import Closing
from cogwork.sync.on_thread import OnThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.client.calls import ReplyStream
    from cogwork.sync.loop_thread import LoopThread

__all__ = ("PartIterator", "ThreadedService")


class PartIterator(Closing):
    """The parts of a call's reply; leaving the `for` or the `with` cancels the work."""

    def __init__(self, thread: LoopThread, parts: ReplyStream) -> None:
        """Ask nothing yet.

        Args:
            thread: Where the event loop is.
            parts: What is iterated there.
        """
        self._thread = thread
        self._parts = parts
        # It keeps `parts` out of a cycle that this is in: the garbage collector would end them
        # on whatever thread it runs, and they are the loop's.
        self._end = weakref.finalize(self, thread.spawn, parts.aclose)
        self._end.atexit = False

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                try:
                    part = self._thread.wait(_next(self._parts))
                except StopAsyncIteration:
                    return
                yield part
        finally:
            self.close()

    def close(self) -> None:
        """End the iteration, and have the work cancelled.

        Waits for nothing: a garbage collector that drops a half-read iteration calls it as well, on
        the loop's own thread perhaps, or on one with a lock that the loop's thread wants.
        """
        self._end()


async def _next(parts: ReplyStream) -> Any:  # noqa: ANN401  # what the method yields
    return await anext(parts)


class ThreadedService(OnThread[MethodService]):
    """Serves methods in threads; made by the synchronous client's `service`, used in `with`."""

    @property
    def method(self) -> Callable[..., Any]:
        """Lets callers run a function: a decorator, with or without `name=`."""
        return self._counterpart.method

    def wait(self, timeout_s: float | None = None) -> None:
        """Serve until one of its addresses is taken away, or the time is over."""
        demand_seconds("timeout_s", timeout_s)
        self._thread.wait(self._counterpart.wait(), timeout_s)
