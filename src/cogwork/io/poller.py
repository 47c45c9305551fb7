"""Waits for descriptors and calls their readers, without a detour through the event loop.

Theory of operation. Most readers are called as the kernel names their descriptors. Some are urgent:
what they bring must not wait until every busy connection has had its share. Of all that the kernel
names at once they come first. They stand in an epoll set of their own, too, which is looked at
between two readers whenever the last look is a while ago. Where an urgent one gives the event loop
something to do, it gets its turn at once. The readers that were not called yet come first after
that, so that nobody starves.

What readers collect can be dealt with when all have been called that had input (`after`): that takes
no pass of the event loop, which costs more than many a reader does.

Compiled: what happens between two messages is most of what Python would add to their cost.
"""

import time

import cython
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cpython.exc import PyErr_CheckSignals

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

LOOK_AFTER_S = cython.declare(cython.double, 0.0002)
"""How old the last look at the urgent ones may be, as far as that depends on the readers."""


class Poller:
    """Waits on one epoll descriptor.

    Attributes:
        readers: What it calls itself, by descriptor.
        urgent: The descriptors whose readers come first.
        is_wanted: Whether a reader has given the event loop something to do.
        after: What is called once when the readers have been called that have input now.
    """

    def __init__(self, epoll_fd: int, urgent_fd: int, on_fault):
        """Make a poller.

        Args:
            epoll_fd: Where the descriptors are registered; the caller owns it.
            urgent_fd: Another one, where the urgent ones are registered as well.
            on_fault: Called with a reader and what it raised.
        """
        self.epoll_fd = epoll_fd
        self.urgent_fd = urgent_fd
        self.on_fault = on_fault
        self.readers = {}
        self.urgent = set()
        self.after = []

    def poll(self, timeout_s=None):
        """Call readers, and what is due after them, until there is something else to do.

        Args:
            timeout_s: None waits for as long as it takes.

        Returns:
            What else is ready, as (descriptor, epoll events).
        """
        forever: cython.bint = timeout_s is None
        left_s: cython.double = -1.0 if forever else max(timeout_s, 0.0)
        deadline: cython.double = 0.0 if forever else time.monotonic() + left_s
        others: list = []
        is_turn: cython.bint
        self.is_wanted = False
        while True:
            is_turn = False
            if self.at == self.count:
                self.at = 0
                self.count = self.wait(0.0 if self.after else left_s)
                if self.count == 0 and not self.after:
                    return others
                is_turn = self.serve_urgent(others)
            if not is_turn:
                self.serve(others)
            if self.after:
                self.end_round()
            if others or self.is_wanted:
                return others
            if not forever:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return others

    def wait(self, timeout_s):
        """Wait at least `timeout_s`, below 0 for ever; return 0 where time or a signal ended it."""
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

    def serve_urgent(self, others):
        """Call the urgent readers of those named just now; say whether the loop gets its turn."""
        found: epoll_event[URGENT_MAX]
        count: cython.int = 0
        kept: cython.int = 0
        index: cython.int
        self.looked_s = clock_s()
        if not self.urgent:
            return False
        for index in range(self.count):
            if count < URGENT_MAX and self.events[index].data.fd in self.urgent:
                found[count] = self.events[index]
                count += 1
            else:
                self.events[kept] = self.events[index]
                kept += 1
        self.count = kept
        return count > 0 and self.serve_first(found, count, others)

    def serve(self, others):
        """Call the readers that have input, until something urgent wants the event loop."""
        fd: cython.int
        mask: uint32_t
        while self.at < self.count:
            fd = self.events[self.at].data.fd
            mask = self.events[self.at].events
            self.at += 1
            self.serve_one(fd, mask, others)
            if clock_s() - self.looked_s >= LOOK_AFTER_S and self.look(others):
                break
        return 0

    def look(self, others):
        """Call the urgent readers that have input by now; say whether the loop gets its turn."""
        events: epoll_event[URGENT_MAX]
        count: cython.int = epoll_wait(self.urgent_fd, events, URGENT_MAX, 0)
        return self.serve_first(events, count, others)

    def serve_first(self, events, count, others):
        """Call urgent readers; say whether that gave the event loop something to do."""
        index: cython.int
        before: cython.bint = self.is_wanted
        is_wanted: cython.bint
        noted: cython.Py_ssize_t = len(others)
        collected: cython.Py_ssize_t = len(self.after)
        self.is_wanted = False
        for index in range(count):
            self.serve_one(events[index].data.fd, events[index].events, others)
        self.looked_s = clock_s()
        is_wanted = self.is_wanted or len(others) > noted or len(self.after) > collected
        self.is_wanted = before or self.is_wanted
        return is_wanted

    def serve_one(self, fd, mask, others):
        """Call the reader of a descriptor that is ready; note what may be the event loop's."""
        reader = self.readers.get(fd)
        if reader is not None and mask & ~cython.cast(cython.uint, EPOLLOUT):
            self.call(reader)
        if reader is None or mask != EPOLLIN:
            others.append((fd, mask))
        return 0

    def end_round(self):
        """Call what was to be called after the readers; what it asks for comes in the next round."""
        after: list = self.after
        self.after = []
        for each in after:
            self.call(each)
        return 0

    def call(self, reader):
        try:
            reader()
        except Exception as error:
            self.on_fault(reader, error)
        return 0
