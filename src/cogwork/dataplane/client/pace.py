"""How many items a consumer marks ahead of its application: a rule, which reads no clock itself.

Theory of operation. A mark that is sent for each item alone costs a system call; one for several
makes items count as handed over that the application may never get. So several are marked in one
go only while the application takes less than `QUICK_S` for each, never waits for anything in
between (then the event loop would have passed), and has done so for `PROOF_COUNT` items. What is
marked ahead is then what it works off within `SPAN_S`, and no more than `ahead_max`.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH

__all__ = ("MARK_AHEAD_MAX", "SOURCE_HASH", "Pace")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

MARK_AHEAD_MAX = 256
"""Items marked in one go at most, where the application names no other bound: what it gets in one
turn of the event loop, so that its fastest loop costs no system call more than it did."""

QUICK_S = cython.declare(cython.double, 50e-6)
"""An application that takes longer for an item gets each marked alone: that costs it next to nothing."""

SPAN_S = cython.declare(cython.double, 300e-6)
"""What is marked ahead is worked off within this time, at the pace of late."""

PAUSE_S = cython.declare(cython.double, 1e-3)
"""After items that took this long together the next one is marked alone, quick as they may be."""

PROOF_COUNT = cython.declare(cython.Py_ssize_t, 16)
"""Quick items in a row, each marked alone, before several are marked in one go."""


class Pace:
    """Follows how long the application takes for an item.

    Attributes:
        ahead: How many items to mark in one go now.
        ahead_max: How many at most.
    """

    def __init__(self, ahead_max: int = MARK_AHEAD_MAX) -> None:
        """Mark one at a time, as nothing is known yet.

        Args:
            ahead_max: How many items to mark in one go at most; at least 1.
        """
        self.ahead = 1
        self.ahead_max = ahead_max

    def begin(self, count, now_s, passes):
        """Take note that the application is given `count` items from now on, one by one."""
        self.count = count
        self.since_s = now_s
        self.passes = passes

    def forget(self):
        """Do not judge what was begun: the time since is not the application's."""
        self.count = 0

    def finish(self, now_s, passes):
        """Judge what was begun, once the application comes for more.

        Args:
            now_s: The time.
            passes: How often the event loop has passed; another number than at the beginning says
                that the application has waited for something.
        """
        taken_s: cython.double = now_s - self.since_s
        count: cython.Py_ssize_t = self.count
        fitting: cython.double
        self.count = 0
        if count == 0:
            return
        if passes != self.passes or taken_s >= QUICK_S * count:
            self.ahead = 1
            self.proof = 0
            return
        if taken_s >= PAUSE_S:
            self.ahead = 1
            return
        if self.proof < PROOF_COUNT:
            self.proof += count
            return
        fitting = SPAN_S * count / taken_s if taken_s > 0.0 else self.ahead_max
        self.ahead = min(2 * self.ahead, self.ahead_max)
        if fitting < self.ahead:
            self.ahead = max(1, cython.cast(cython.Py_ssize_t, fitting))
