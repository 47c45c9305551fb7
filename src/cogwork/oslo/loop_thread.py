"""The event loop of a process, in a native thread of its own.

Theory of operation. All driver instances of a process share it. It is started when it is first
needed, and again in the child of a fork, which inherits its objects and not its thread: the child
closes its copies of the descriptors, so that a connection of the parent ends with the parent, and
never touches them otherwise.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from cogwork.io.loop import EventLoop
from cogwork.oslo.green import is_patched, original
from cogwork.oslo.waiter import new_waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ("LoopThread", "loop_thread")

T = TypeVar("T")

EXIT_TIMEOUT_S = 2.0
"""How long the end of a program waits for the loop to end."""

log = logging.getLogger("cogwork.oslo")


class LoopThread:
    """A running loop; anything may be handed to it from any thread."""

    def __init__(self) -> None:
        """Start the thread."""
        threading = original("threading")
        self.loop: EventLoop = _GreenProgramsLoop() if is_patched() else EventLoop()
        self._work: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._is_rung = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="cogwork-oslo", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))  # lets them end
        self.loop.close()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have a function called on the loop, soon, after what was handed over before."""
        self._work.append((function, arguments))
        if not self._is_rung:
            self._is_rung = True
            self.loop.call_soon_threadsafe(self._work_off)

    def _work_off(self) -> None:
        self._is_rung = False
        while self._work:
            function, arguments = self._work.popleft()
            try:
                function(*arguments)
            except Exception:
                log.exception("%r failed", function)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine to its end; to be called on the loop."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run(
        self, work: Callable[[], Coroutine[Any, Any, T]], timeout_s: float | None = None
    ) -> T | None:
        """Run a coroutine on the loop, and sleep until it has ended.

        Args:
            work: Makes the coroutine.
            timeout_s: How long to sleep at most; what runs goes on.

        Returns:
            Its result; None where that is not there in time.
        """
        waiter = new_waiter()
        results: list[T] = []
        errors: list[BaseException] = []

        async def job() -> None:
            try:
                results.append(await work())
            except BaseException as error:  # it is the caller's
                errors.append(error)
            waiter.wake()

        self.call(lambda: self.spawn(job()))
        try:
            waiter.wait(timeout_s)
        finally:
            waiter.close()
        if errors:
            raise errors[0]
        return results[0] if results else None

    def stop(self) -> None:
        """End the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(EXIT_TIMEOUT_S)


class _GreenProgramsLoop(EventLoop):
    """A loop that works where sockets, `select` and threads are patched."""

    def __init__(self) -> None:
        super().__init__(original("select").epoll)

    async def getaddrinfo(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  # the base class's
        """Resolve a name in a native thread; asyncio's own would be a green one."""
        found: asyncio.Future[Any] = self.create_future()
        resolve = original("socket").getaddrinfo

        def report(result: object, error: OSError | None) -> None:
            if found.done():
                return
            if error is None:
                found.set_result(result)
            else:
                found.set_exception(error)

        def look_up() -> None:
            try:
                self.call_soon_threadsafe(report, resolve(*arguments, **keywords), None)
            except OSError as error:
                self.call_soon_threadsafe(report, None, error)

        original("threading").Thread(target=look_up, daemon=True).start()
        return await found


class _Shared:
    """The process's one loop thread."""

    def __init__(self) -> None:
        self.thread: LoopThread | None = None
        self.lock = original("threading").Lock()
        self.inherited: list[LoopThread] = []

    def get(self) -> LoopThread:
        with self.lock:
            if self.thread is None:
                self.thread = LoopThread()
            return self.thread

    def leave_to_parent(self) -> None:
        """Make a fork's child begin anew. What it inherits it keeps, unused, and never frees."""
        self.lock = original("threading").Lock()
        if self.thread is not None:
            self.thread.loop.close_in_child()
            self.inherited.append(self.thread)
            self.thread = None

    def stop(self) -> None:
        if self.thread is not None:
            self.thread.stop()


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.leave_to_parent)
atexit.register(_shared.stop)


def loop_thread() -> LoopThread:
    """Return the one of this process, started if need be."""
    return _shared.get()
