"""Waits for descriptors and calls their readers, without a detour through the event loop.

Compiled: what happens between two messages is most of what Python would add to their cost.
"""

import time

import cython
from cython.cimports.cpython.exc import PyErr_CheckSignals

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Poller:
    """Waits on one epoll descriptor.

    Attributes:
        readers: What it calls itself, by descriptor.
        is_wanted: Whether a reader has given the event loop something to do.
    """

    def __init__(self, epoll_fd: int, on_fault):
        """Makes a poller.

        Args:
            epoll_fd: Where the descriptors are registered; the caller owns it.
            on_fault: Called with a reader and what it raised.
        """
        self.epoll_fd = epoll_fd
        self.on_fault = on_fault
        self.readers = {}

    def poll(self, timeout_s=None):
        """Calls readers until there is something else to do, or the time is up.

        Args:
            timeout_s: None waits for as long as it takes.

        Returns:
            What else is ready, as (descriptor, epoll events).
        """
        forever: cython.bint = timeout_s is None
        left_s: cython.double = -1.0 if forever else max(timeout_s, 0.0)
        deadline: cython.double = 0.0 if forever else time.monotonic() + left_s
        others: list
        count: cython.int
        self.is_wanted = False
        while True:
            count = self.wait(left_s)
            others = self.serve(count)
            if others or self.is_wanted or count == 0:
                return others
            if not forever:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return others

    def wait(self, timeout_s):
        """Waits at least `timeout_s`, below 0 for ever; returns 0 where time or a signal ended it."""
        timeout_ms: cython.int = -1
        count: cython.int
        if timeout_s >= 0:
            timeout_ms = cython.cast(cython.int, min(timeout_s * 1e3 + 0.999, 1e9))
        with cython.nogil:
            count = epoll_wait(self.epoll_fd, self.events, EVENTS_MAX, timeout_ms)
        if count < 0:
            PyErr_CheckSignals()
            return 0
        return count

    def serve(self, count):
        """Calls the readers that have input; lists what may be the event loop's."""
        others: list = []
        index: cython.int
        mask: cython.uint
        for index in range(count):
            mask = self.events[index].events
            reader = self.readers.get(self.events[index].data.fd)
            if reader is not None and mask & ~cython.cast(cython.uint, EPOLLOUT):
                self.call(reader)
            if reader is None or mask != EPOLLIN:
                others.append((self.events[index].data.fd, mask))
        return others

    def call(self, reader):
        try:
            reader()
        except Exception as error:
            self.on_fault(reader, error)
        return 0
