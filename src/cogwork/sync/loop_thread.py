"""An event loop in a thread, for those who have none.

Theory of operation. Any thread may wait for what runs on the loop, but for the loop's own: it would
wait for itself. Nor may the child of a fork, which has a copy of the loop and no thread. Both are
told so. Nobody takes a lock: the garbage collector may call from within anything, on any thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cogwork.client.errors import Disconnected, NotOpened

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future


__all__ = ("LoopThread", "NoThread", "on_loop")

P = ParamSpec("P")
T = TypeVar("T")

CLOSED = "the client was closed"


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._is_running = True
        self._is_over = False
        self._stopping = threading.Lock()  # held for good by who stops it first
        self._waited_for: set[Future[Any]] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._thread = threading.Thread(target=self._run, name="cogwork-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.get_loop().run_forever()
        finally:
            self._is_running = False
            self._is_over = True
            for future in list(self._waited_for):  # handed over too late to be run
                future.cancel()

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run `work` there and wait for its result; what is interrupted is cancelled there.

        Raises:
            Disconnected: It was stopped, or belongs to another process.
            RuntimeError: This is the thread itself.
        """
        try:
            self._demand_to_be_elsewhere()
            if self._pid != os.getpid():
                raise Disconnected(
                    "the client belongs to another process: connect again in this one"
                )
            if not self._is_running:
                raise Disconnected(CLOSED)
        except BaseException:
            work.close()
            raise
        return self._result(self._begin(work), work, timeout_s)

    def _demand_to_be_elsewhere(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "the client's own thread would wait for itself: use the client in a method that is "
                "a plain `def`, which runs in another thread, or `await` one of `cogwork.connect`"
            )

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # the loop has been closed in this moment
            work.close()
            raise Disconnected(CLOSED) from None
        self._waited_for.add(future)
        if self._is_over:  # perhaps the thread has not seen it
            future.cancel()
        return future

    def _result(
        self, future: Future[T], work: Coroutine[Any, Any, T], timeout_s: float | None
    ) -> T:
        try:
            return future.result(timeout_s)
        except CancelledError:
            if self._is_running:
                raise
            work.close()  # where it was not even begun
            raise Disconnected(CLOSED) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            self._waited_for.discard(future)

    def spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Have a coroutine run there, in the order of what is handed over, and wait for nothing.

        So a garbage collector may do it, on any thread and with whatever locks that holds. Once the
        thread has ended, and in another process, it is without effect.

        Args:
            make: Makes the coroutine, there.
        """
        if self._pid != os.getpid():  # the parent's loop would be woken
            return
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._spawn, make)

    def _spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        task = self.loop.create_task(make())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self, last: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        """End the thread, once, and wait until it has ended; do nothing in another process.

        Args:
            last: Makes what runs there before, for the first who stops it.

        Raises:
            RuntimeError: This is the thread itself.
        """
        if self._pid != os.getpid():
            return
        self._demand_to_be_elsewhere()
        if self._stopping.acquire(blocking=False) and self._is_running:
            try:
                self.wait(self._end(last))
            finally:
                self._thread.join()
        self._thread.join()

    async def _end(self, last: Callable[[], Coroutine[Any, Any, object]] | None) -> None:
        try:
            if last is not None:
                await last()
        finally:
            # Not earlier: methods of services, for which `last` waits, may still use the client.
            self._is_running = False
            self.loop.stop()


class NoThread(LoopThread):
    """Stands for the thread of a client that nobody has opened."""

    def __init__(self) -> None:
        """Begin nothing."""

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run nothing.

        Raises:
            NotOpened: Always.
        """
        del timeout_s
        work.close()
        raise NotOpened("not connected yet: `with cogwork.sync.connect(...) as client` does it")

    def spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run nothing."""

    def stop(self, last: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        """Have nothing to end."""


async def on_loop(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Call on the loop what needs a running one."""
    return function(*arguments, **keywords)
