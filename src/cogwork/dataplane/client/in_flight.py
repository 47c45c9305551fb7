"""What was sent and has no outcome yet, by token.

Theory of operation. Tokens go up as messages are given, and messages are sent in that order, so
what is under way stands in a row that is sorted by token: new entries come at its end, outcomes
come at its start. An entry is one message or a batch. One whose messages all have outcomes stays as
an empty place until those before it have theirs, too.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memmove

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

CAPACITY_MIN = cython.declare(cython.Py_ssize_t, 16)


class DispatchesInFlight:
    """Dispatches under way.

    Attributes:
        count: Messages under way.
    """

    def __init__(self) -> None:
        self.dispatches = []

    def __dealloc__(self):
        free(self.entries)

    def add(self, dispatch, first, size, count):
        """Note that messages of a dispatch are under way, which has `size` from `first` on."""
        index: cython.Py_ssize_t = self.end
        if index > self.start and self.entries[index - 1].first >= first:
            index = self.place_of(first)
            if index < self.start or self.entries[index].first != first:
                index += 1
        if index == self.end or self.entries[index].first != first:
            index = self.insert(index, first, size)
        self.dispatches[index] = dispatch
        self.entries[index].waiting += count
        self.count += count
        return 0

    def find(self, token):
        """Return where the dispatch is whose token it is; -1 where none of it is under way."""
        index: cython.Py_ssize_t = self.place_of(token)
        if index < self.start or not self.entries[index].waiting:
            return -1
        return index if token - self.entries[index].first < self.entries[index].size else -1

    def remove(self, index, count):
        """Take out messages that have their outcome; return their dispatch."""
        dispatch = self.dispatches[index]
        self.entries[index].waiting -= count
        self.count -= count
        if not self.entries[index].waiting:
            self.dispatches[index] = None
            while self.start < self.end and not self.entries[self.start].waiting:
                self.start += 1
            if self.start == self.end:
                self.dispatches.clear()
                self.start = self.end = 0
        return dispatch

    def clear(self):
        """Forget all; return the dispatches, in their order."""
        index: cython.Py_ssize_t
        found: list = []
        for index in range(self.start, self.end):
            if self.entries[index].waiting:
                found.append(self.dispatches[index])
        self.dispatches.clear()
        self.start = self.end = self.count = 0
        return found

    # -- the row

    def place_of(self, token):
        """Return where the last entry is that does not begin after a token; else before the start."""
        low: cython.Py_ssize_t = self.start
        high: cython.Py_ssize_t = self.end
        middle: cython.Py_ssize_t
        if low == high or self.entries[low].first > token:
            return low - 1
        if low + 1 == high or self.entries[low + 1].first > token:
            return low  # as it is nearly always: the oldest is answered first
        if self.entries[high - 1].first <= token:
            return high - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.entries[middle].first <= token:
                low = middle
            else:
                high = middle
        return low

    def insert(self, index, first, size):
        """Put an empty entry at a place; return where that is now."""
        before: cython.Py_ssize_t = self.start
        if self.end == self.capacity:
            self.compact()
            index -= before - self.start
        if index < self.end:
            memmove(
                self.entries + index + 1,
                self.entries + index,
                (self.end - index) * cython.sizeof(Entry),
            )
        self.dispatches.insert(index, None)
        self.entries[index].first = first
        self.entries[index].size = size
        self.entries[index].waiting = 0
        self.end += 1
        return index

    def compact(self):
        """Make room at the end: where the start has left little, there is more of it."""
        if self.start * 2 < self.capacity or not self.capacity:
            self.grow()
        if self.start:
            memmove(
                self.entries,
                self.entries + self.start,
                (self.end - self.start) * cython.sizeof(Entry),
            )
            del self.dispatches[: self.start]
            self.end -= self.start
            self.start = 0
        return 0

    def grow(self):
        capacity: cython.Py_ssize_t = max(2 * self.capacity, CAPACITY_MIN)
        entries: cython.pointer(Entry) = cython.cast(
            cython.pointer(Entry), realloc(self.entries, capacity * cython.sizeof(Entry))
        )
        if entries == cython.NULL:
            raise MemoryError("no room for more messages under way")
        self.entries = entries
        self.capacity = capacity
        return 0
