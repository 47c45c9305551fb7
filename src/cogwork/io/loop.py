"""The event loop of a process that serves: asyncio's own, with a shorter way to the wires.

Theory of operation. asyncio calls a reader in three steps: the selector lists what is ready, each
entry becomes a handle in a queue, the queue is run in a context of its own. For a wire that costs
as much as what it does. So `_WireSelector` lets the wires read itself (`Poller`), and waits on,
until there is anything for asyncio to do: another descriptor is ready, a callback or a timer was
scheduled, or the time is up that it was given. The wires stay registered with the loop in the
ordinary way too, so whatever the short way leaves out (an error, a hang-up) is served as ever.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from typing import TYPE_CHECKING, Any

from cogwork.io.poller import Poller

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from cogwork.dataplane.core import Wire

__all__ = ("WireLoop", "add_wire", "new_loop")


class _WireSelector(selectors.EpollSelector):
    """Lists what is ready, but for the wires, which it lets read."""

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        super().__init__()
        self.poller = Poller(self.fileno(), on_error)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for what is not a wire to become ready, and lists it."""
        keys = self.get_map()
        ready = []
        for descriptor, event in self.poller.poll(timeout):
            key = keys.get(descriptor)
            if key is not None:
                ready.append((key, _mask(event) & key.events))
        return ready


def _mask(event: int) -> int:
    """Translates epoll's events: an error or a hang-up wakes readers and writers alike."""
    mask = 0
    if event & ~select.EPOLLIN:
        mask |= selectors.EVENT_WRITE
    if event & ~select.EPOLLOUT:
        mask |= selectors.EVENT_READ
    return mask


class WireLoop(asyncio.SelectorEventLoop):
    """asyncio's selector loop, with wires on it."""

    def __init__(self) -> None:
        """Makes the loop."""
        selector = _WireSelector(self._report)
        self._poller = selector.poller
        super().__init__(selector)

    def add_wire(self, descriptor: int, wire: Wire) -> None:
        """Lets a wire read whenever its descriptor is readable."""
        super().add_reader(descriptor, wire.on_readable)
        self._poller.wires[descriptor] = wire

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # noqa: ANN401
        """Registers a reader; it takes the place of a wire."""
        self._poller.wires.pop(fd, None)
        super().add_reader(fd, callback, *args)

    def remove_reader(self, fd: Any) -> bool:  # noqa: ANN401
        """Takes a reader or a wire away."""
        self._poller.wires.pop(fd, None)
        return super().remove_reader(fd)

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: Any,  # noqa: ANN401
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedules a callback, as asyncio does; the selector returns for it."""
        self._poller.is_wanted = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,  # noqa: ANN401
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedules a timer, as asyncio does; the selector returns for it."""
        self._poller.is_wanted = True
        return super().call_at(when, callback, *args, context=context)

    def stop(self) -> None:
        """Stops, as asyncio does, once what is ready has run."""
        self._poller.is_wanted = True
        super().stop()

    def _report(self, error: Exception) -> None:
        self.call_exception_handler({"message": "a wire failed", "exception": error})


def new_loop() -> asyncio.AbstractEventLoop:
    """Makes a loop to serve on: `asyncio.Runner(loop_factory=new_loop)`."""
    return WireLoop()


def add_wire(loop: asyncio.AbstractEventLoop, descriptor: int, wire: Wire) -> None:
    """Lets a wire read on any loop; on an ordinary one, as an ordinary reader."""
    if isinstance(loop, WireLoop):
        loop.add_wire(descriptor, wire)
    else:
        loop.add_reader(descriptor, wire.on_readable)
