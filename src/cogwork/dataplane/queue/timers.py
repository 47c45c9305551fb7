"""A heap of moments, each with the number of whatever is due then.

Theory of operation. Nothing is ever taken out of the middle: whoever pushed a timer looks, when it
comes due, whether it still means anything. Timers that have lost their meaning are thrown out by
the owner, who filters `timers` in place and calls `rebuild`, once they are too many.
"""

import cython
from cython.cimports.libc.stdlib import free, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_before(a: cython.pointer(Timer), b: cython.pointer(Timer)) -> cython.bint:
    return a.turn < b.turn if a.due_s == b.due_s else a.due_s < b.due_s


class TimerHeap:
    """A binary heap, earliest first; of those that are due at once the one that was pushed first.

    Attributes:
        turn: How many were pushed.
    """

    def __dealloc__(self):
        free(self.timers)

    def push(self, due_s, number):
        at: uint32_t = self.count
        parent: uint32_t
        if self.count == self.capacity:
            self._grow()
        self.turn += 1
        while at > 0:
            parent = (at - 1) >> 1
            if self.timers[parent].due_s <= due_s:
                break  # its turn is an earlier one
            self.timers[at] = self.timers[parent]
            at = parent
        self.timers[at].due_s = due_s
        self.timers[at].turn = self.turn
        self.timers[at].number = number
        self.count += 1
        return 0

    def _grow(self):
        capacity: uint32_t = self.capacity * 2 if self.capacity else 64
        grown: cython.pointer(Timer) = cython.cast(
            cython.pointer(Timer), realloc(self.timers, capacity * cython.sizeof(Timer))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more timers")
        self.timers = grown
        self.capacity = capacity

    def pop_due(self, now_s, timer):
        """Take out the earliest timer, where it is due."""
        if self.count == 0 or self.timers[0].due_s > now_s:
            return False
        timer[0] = self.timers[0]
        self.count -= 1
        if self.count:
            self.timers[0] = self.timers[self.count]
            self._sink(0)
        return True

    def _sink(self, at):
        moving: Timer = self.timers[at]
        child: uint32_t = 2 * at + 1
        while child < self.count:
            if child + 1 < self.count and _is_before(self.timers + child + 1, self.timers + child):
                child += 1
            if _is_before(cython.address(moving), self.timers + child):
                break
            self.timers[at] = self.timers[child]
            at = child
            child = 2 * at + 1
        self.timers[at] = moving

    def rebuild(self, count):
        """Make a heap of the first `count` timers again, in whatever order they are."""
        at: uint32_t = count >> 1
        self.count = count
        while at > 0:
            at -= 1
            self._sink(at)
