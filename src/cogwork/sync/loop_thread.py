"""An event loop in a thread, for those who have none."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


__all__ = ("LoopThread", "on_loop")

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cogwork-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs `work` there and waits for its result; what is interrupted is cancelled there."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


async def on_loop(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Calls on the loop what needs a running one."""
    return function(*arguments, **keywords)
