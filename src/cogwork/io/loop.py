"""asyncio's event loop, with readers that cost less.

QueueState asyncio makes a handle of a reader, queues it when its socket has input, and runs it in a
context of its own. That takes some microseconds each time, and more when readers are added and
removed: as much as the work on a connection that comes and goes. Here the selector calls the
readers itself (`Poller`, which is compiled), and waits on, until there is something for asyncio to
do: one of its own descriptors is ready, a callback or a timer was scheduled, or its time is up.
Readers can be preferred (`prefer`): they are called before the others, however busy these are. What
they collect can be dealt with once they all have been called (`call_after_readers`). All the rest
is asyncio's, and whatever runs on this loop runs on the stock one too, these two where the loop has
them.
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey
from typing import TYPE_CHECKING, Any, TypeVarTuple

from cogwork.io.poller import Poller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Context

    from _typeshed import FileDescriptorLike

__all__ = ("EventLoop",)

_Ts = TypeVarTuple("_Ts")


class EventLoop(asyncio.SelectorEventLoop):
    """The loop that `cogwork serve` runs on, and that clients may."""

    def __init__(self, make_epoll: Callable[[], select.epoll] | None = None) -> None:
        """Make it; it does not run yet.

        Args:
            make_epoll: Makes the kernel's half; None: `select.epoll`, which a program that was
                patched for green threads does not have under this name.
        """
        self._direct = _DirectSelector(self.call_exception_handler, make_epoll or select.epoll)
        super().__init__(self._direct)

    def add_reader(
        self, fd: FileDescriptorLike, callback: Callable[..., object], *args: object
    ) -> None:
        """Call `callback` whenever there is input, in place of the one before it."""
        self._direct.add_reader(_fd_of(fd), partial(callback, *args) if args else callback)

    def remove_reader(self, fd: FileDescriptorLike) -> bool:
        """Call nothing any more; return whether there was a reader.

        asyncio's own go the same way: `sock_recv` adds one inside of it, and takes it away by this.
        """
        was_direct = self._direct.remove_reader(_fd_of(fd))
        return super().remove_reader(fd) or was_direct

    def prefer(self, fd: FileDescriptorLike) -> None:
        """Call a descriptor's reader before those of others, until it is removed."""
        self._direct.prefer(_fd_of(fd))

    def call_after_readers(self, callback: Callable[[], object]) -> None:
        """Call something once, when the readers have been called that have input by then.

        It takes no pass of the loop: there is no handle, and nothing to cancel.
        """
        self._direct.poller.after.append(callback)

    def call_soon(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback, as asyncio does; the selector returns for it."""
        self._direct.poller.is_wanted = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a timer, as asyncio does; the selector returns for it."""
        self._direct.poller.is_wanted = True
        return super().call_at(when, callback, *args, context=context)

    def close_in_child(self) -> None:
        """Give back a fork's copies of all descriptors; the parent's own loop goes on as it was.

        What else belongs to them, sockets above all, must never be used nor freed in the child.
        """
        self._direct.close_in_child()

    def stop(self) -> None:
        """Stop, as asyncio does, once what is ready has run."""
        self._direct.poller.is_wanted = True
        super().stop()


class _Watched:
    """An epoll set, and for what the kernel watches each descriptor in it."""

    def __init__(self, epoll: select.epoll) -> None:
        self.epoll = epoll
        self.masks: dict[int, int] = {}

    def watch(self, fd: int, mask: int) -> None:
        before = self.masks.pop(fd, 0)
        if mask:
            self.masks[fd] = mask
        if mask and not before:
            self.epoll.register(fd, mask)
        elif mask != before and mask:
            self.epoll.modify(fd, mask)
        elif before and not mask:
            with suppress(OSError):  # closed already, and so forgotten by the kernel
                self.epoll.unregister(fd)


class _DirectSelector(selectors.BaseSelector):
    """An epoll set of what asyncio registers, and of readers that are called from `select`."""

    def __init__(
        self, on_fault: Callable[[dict[str, Any]], None], make_epoll: Callable[[], select.epoll]
    ) -> None:
        self._on_fault = on_fault
        self._all = _Watched(make_epoll())
        self._urgent = _Watched(make_epoll())
        self.poller = Poller(self._all.epoll.fileno(), self._urgent.epoll.fileno(), self._report)
        self._keys: dict[FileDescriptorLike, SelectorKey] = {}
        self._readers = self.poller.readers

    def add_reader(self, fd: int, reader: Callable[[], object]) -> None:
        self._readers[fd] = reader
        self._watch(fd)

    def remove_reader(self, fd: int) -> bool:
        known = self._readers.pop(fd, None) is not None
        self.poller.urgent.discard(fd)
        self._watch(fd)
        return known

    def prefer(self, fd: int) -> None:
        self.poller.urgent.add(fd)
        self._watch(fd)

    def _watch(self, fd: int) -> None:
        """Have the kernel watch a file descriptor for what is wanted of it now."""
        key = self._keys.get(fd)
        events = key.events if key is not None else 0
        mask = select.EPOLLIN if events & EVENT_READ or fd in self._readers else 0
        self._urgent.watch(fd, mask if fd in self.poller.urgent else 0)
        if events & EVENT_WRITE:
            mask |= select.EPOLLOUT
        self._all.watch(fd, mask)

    # -- what asyncio asks of a selector

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> SelectorKey:
        key = SelectorKey(fileobj, _fd_of(fileobj), events, data)
        self._keys[key.fd] = key
        self._watch(key.fd)
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> SelectorKey:
        key = self._keys.pop(_fd_of(fileobj))
        self._watch(key.fd)
        return key

    def modify(self, fileobj: FileDescriptorLike, events: int, data: object = None) -> SelectorKey:
        return self.register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Call the readers that have input until asyncio has something to do; list its part."""
        ready: list[tuple[SelectorKey, int]] = []
        for fd, mask in self.poller.poll(timeout):
            key = self._keys.get(fd)
            if key is not None and (events := _events_of(mask) & key.events):
                ready.append((key, events))
        return ready

    def _report(self, reader: Callable[[], object], error: Exception) -> None:
        """Do as asyncio does: one socket's fault is not the others'."""
        self._on_fault({"message": f"a fault while {reader!r} read", "exception": error})

    def get_key(self, fileobj: FileDescriptorLike) -> SelectorKey:
        return self._keys[_fd_of(fileobj)]

    def get_map(self) -> Mapping[FileDescriptorLike, SelectorKey]:
        return self._keys

    def close_in_child(self) -> None:
        """Close without a word to the epoll sets, which parent and child share."""
        self._all.epoll.close()
        self._urgent.epoll.close()
        for fd in self._all.masks:
            os.close(fd)

    def close(self) -> None:
        for watched in (self._all, self._urgent):
            watched.epoll.close()
            watched.masks.clear()
        self._keys.clear()
        self._readers.clear()
        self.poller.after.clear()


def _fd_of(fileobj: FileDescriptorLike) -> int:
    return fileobj if isinstance(fileobj, int) else fileobj.fileno()


def _events_of(mask: int) -> int:
    """Return what epoll names in the words of `selectors`: an error is either."""
    readable = EVENT_READ if mask & ~select.EPOLLOUT else 0
    return readable | (EVENT_WRITE if mask & ~select.EPOLLIN else 0)
