"""A container on a thread of its own, and how long one turn of its event loop took at worst.

What counts is the thread's CPU time between two looks at the sockets: a machine that is busy with
something else makes no turn longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import selectors
import threading
import time
from typing import TYPE_CHECKING

from cogwork.config.settings import Configuration, Listen
from cogwork.container.container import Container

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


__all__ = ("Stalls", "measured_container")

START_S = 30.0


class _TimedSelector(selectors.DefaultSelector):
    """Notes how much CPU time the thread used between two calls of `select`."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0
        self.turns = 0
        self._since_s: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._since_s is not None:
            self.longest_s = max(self.longest_s, time.thread_time() - self._since_s)
        self.turns += 1
        found = super().select(timeout)
        self._since_s = time.thread_time()
        return found


class Stalls:
    """A running container whose turns are timed.

    Attributes:
        container: It runs on a thread of its own: look, but call it by `call`.
        url: Where it listens.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._selector = _TimedSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._is_up = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="container", daemon=True)
        self.container: Container
        self.url = ""

    def start(self) -> None:
        """Start the container.

        Raises:
            RuntimeError: It does not start.
        """
        self._thread.start()
        if not self._is_up.wait(START_S) or self._fault is not None:
            raise RuntimeError("the container does not start") from self._fault

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self.container = Container(self._configuration)
            self._loop.run_until_complete(self.container.start())
            self.url = self.container.endpoints[0]
        except BaseException as error:  # the starter raises it
            self._fault = error
            self._is_up.set()
            return
        self._loop.call_soon(self._is_up.set)
        self._loop.run_forever()
        self._loop.run_until_complete(self.container.stop(drain_timeout_s=0.0))
        self._loop.close()

    def stop(self) -> None:
        """Stop the container."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)

    def call(self, function: Callable[[], object], timeout_s: float = 60.0) -> object:
        """Call a function on the container's thread, and return what it returns."""
        done: list[object] = []
        is_done = threading.Event()

        def run() -> None:
            done.append(function())
            is_done.set()

        self._loop.call_soon_threadsafe(run)
        if not is_done.wait(timeout_s):
            raise TimeoutError(f"the container answers nothing within {timeout_s} s")
        return done[0]

    def reset(self) -> None:
        """Forget the turns until now."""
        self.call(self._forget)

    def _forget(self) -> None:
        self._loop.call_soon(setattr, self._selector, "longest_s", 0.0)

    @property
    def longest_s(self) -> float:
        """The CPU time of the longest turn, the current one aside."""
        self.call(lambda: None)
        return self._selector.longest_s

    @property
    def turns(self) -> int:
        """How often the loop has looked at its sockets."""
        return self._selector.turns


@contextlib.contextmanager
def measured_container(configuration: Configuration | None = None) -> Iterator[Stalls]:
    """Run a container that listens on a free port, and time its turns."""
    running = Stalls(configuration or Configuration(id="timed", listeners=[Listen(port=0)]))
    gc.collect()
    gc.freeze()  # what the tests hold is not for the container's thread to look through
    try:
        running.start()
        yield running
    finally:
        running.stop()
        gc.unfreeze()
