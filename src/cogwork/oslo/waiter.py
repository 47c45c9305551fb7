"""How a thread sleeps until the event loop's thread has something for it.

A native thread sleeps on a lock. A green one may not: its whole program would sleep. It waits in
its hub for an eventfd to become readable.
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from typing import Protocol

from cogwork.oslo.green import is_patched, original

__all__ = ("GreenWaiter", "NativeWaiter", "Waiter", "new_waiter")

_spare_fds: list[int] = []
"""Eventfds of green waiters that are done: making one takes longer than a call."""

_SPARE_MAX = 64


class Waiter(Protocol):
    """Sleeps once; used by one thread, woken by another."""

    def wait(self, timeout_s: float | None) -> bool:
        """Sleep until it is woken; return False where it was not in time."""

    def wake(self) -> None:
        """End the sleep, or the next one; called once."""

    def close(self) -> None:
        """Is not needed any more; waking it is without effect."""


class NativeWaiter:
    """For native threads."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = original("threading").Lock()
        self._lock.acquire()

    def wait(self, timeout_s: float | None) -> bool:
        """Sleep until it is woken."""
        return bool(self._lock.acquire(timeout=-1 if timeout_s is None else max(timeout_s, 0)))

    def wake(self) -> None:
        """End the sleep."""
        self._lock.release()

    def close(self) -> None:
        """Hold nothing."""


class GreenWaiter:
    """For green threads."""

    __slots__ = ("_fd", "_guard", "_hubs")

    def __init__(self) -> None:
        self._hubs = importlib.import_module("eventlet.hubs")
        self._guard = original("threading").Lock()
        try:
            self._fd = _spare_fds.pop()
        except IndexError:
            self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def wait(self, timeout_s: float | None) -> bool:
        """Let other green threads run until it is woken."""
        if timeout_s is not None and timeout_s <= 0:
            timeout_s = 0.0
        try:
            self._hubs.trampoline(self._fd, read=True, timeout=timeout_s, timeout_exc=_TooLate)
        except _TooLate:
            return False
        return True

    def wake(self) -> None:
        """End the wait."""
        with self._guard:
            if self._fd >= 0:
                os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        """Keep the descriptor for the next one."""
        with self._guard:
            fd, self._fd = self._fd, -1
        if fd < 0:
            return
        with suppress(BlockingIOError):
            os.eventfd_read(fd)
        if len(_spare_fds) < _SPARE_MAX:
            _spare_fds.append(fd)
        else:
            os.close(fd)


class _TooLate(Exception):
    """A green wait has lasted long enough."""


def new_waiter() -> Waiter:
    """Return one that suits the threads of this program."""
    return GreenWaiter() if is_patched() else NativeWaiter()


def _forget_spares() -> None:
    """Share no descriptor with the process that was forked."""
    while _spare_fds:
        os.close(_spare_fds.pop())


os.register_at_fork(after_in_child=_forget_spares)
