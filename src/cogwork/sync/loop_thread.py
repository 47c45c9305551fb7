"""An event loop in a thread, for those who have none."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cogwork.client.errors import Disconnected, NotOpened

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


__all__ = ("LoopThread", "NoThread", "on_loop")

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """An event loop in a thread.

    Attributes:
        is_running: Whether it has begun, and was not stopped.
    """

    is_running = True

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cogwork-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs `work` there and waits for its result; what is interrupted is cancelled there.

        Raises:
            Disconnected: It was stopped.
        """
        if not self.is_running:
            work.close()
            raise Disconnected("the mesh was closed")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except CancelledError:
            if self.is_running:
                raise
            raise Disconnected("the mesh was closed") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the thread."""
        self.is_running = False
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class NoThread(LoopThread):
    """Stands for the thread of a mesh that nobody has opened."""

    is_running = False

    def __init__(self) -> None:
        """Begins nothing."""

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs nothing.

        Raises:
            NotOpened: Always.
        """
        del timeout_s
        work.close()
        raise NotOpened("not connected yet: `with cogwork.sync.connect(...) as mesh` does it")


async def on_loop(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Calls on the loop what needs a running one."""
    return function(*arguments, **keywords)
