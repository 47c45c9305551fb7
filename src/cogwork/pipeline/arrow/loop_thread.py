"""The event loop behind the synchronous client: one in each process, in a thread.

Theory of operation. A thread does not survive a fork, and what it kept belongs to the parent: its
sockets and its selector are shared with it. So a child begins anew, and never lets go of what it
has inherited, for to close that would disturb the parent.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

__all__ = ("LoopThread", "keep_inherited", "loop_thread")

T = TypeVar("T")

_inherited: list[object] = []
"""What the parent of a forked process owns."""


class LoopThread:
    """An event loop that runs in a thread of its own until the process ends."""

    def __init__(self) -> None:
        """Start the thread."""
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="cogwork-arrow", daemon=True).start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin something there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something there and wait for its result; an interruption cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


class _Shared:
    """The process's own."""

    lock = threading.Lock()
    thread: LoopThread | None = None


def loop_thread() -> LoopThread:
    """Return this process's loop."""
    with _Shared.lock:
        if _Shared.thread is None:
            _Shared.thread = LoopThread()
        return _Shared.thread


def keep_inherited(thing: object) -> None:
    """Keep what belongs to the parent process from being torn down in this one."""
    _inherited.append(thing)


def _begin_anew() -> None:
    keep_inherited(_Shared.thread)
    _Shared.lock = threading.Lock()
    _Shared.thread = None


os.register_at_fork(after_in_child=_begin_anew)
