"""Values of the last while, counted by their powers of two.

Theory of operation. A period's values stand in bins; when it is over they become the earlier
period's, and what is told is of both. A period without values does not end, so that what happened
last stays to be seen.
"""

import cython
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PERIOD_S = cython.declare(cython.double, 60.0)


class Histogram:
    """Counts values, and tells quantiles of those of the last one or two periods."""

    def add(self, value):
        """Count a value."""
        at: cython.int = 0
        left: uint64_t = value
        while left:
            left >>= 1
            at += 1
        self.latest.bins[at] += 1
        self.latest.maximum = max(self.latest.maximum, value)
        return 0

    def turn(self, now_s):
        """Let time pass."""
        if now_s - self.turned_s < PERIOD_S:
            return 0
        self.turned_s = now_s
        if count_of(cython.address(self.latest)):
            self.earlier = self.latest
            memset(cython.address(self.latest), 0, cython.sizeof(Period))
        return 0

    @property
    def count(self) -> int:
        """Counts the values."""
        return count_of(cython.address(self.latest)) + count_of(cython.address(self.earlier))

    @property
    def maximum(self) -> int:
        """The largest value."""
        return max(self.latest.maximum, self.earlier.maximum)

    def quantile(self, percent: int) -> int:
        """Tell a value that so many of a hundred do not exceed; at most twice the true one.

        Args:
            percent: 1 to 100.

        Returns:
            0 where no more than that are zeros or nothing was counted; else one less than a power
            of two, or the maximum where that is smaller.
        """
        at: cython.int = 0
        all: uint64_t = count_of(cython.address(self.latest)) + count_of(
            cython.address(self.earlier)
        )
        count: uint64_t = self.latest.bins[0] + self.earlier.bins[0]
        while 100 * count < percent * all:
            at += 1
            count += self.latest.bins[at] + self.earlier.bins[at]
        if at == 0:
            return 0
        return min((cython.cast(uint64_t, 2) << (at - 1)) - 1, self.maximum)


@cython.cfunc
@cython.exceptval(check=False)
def count_of(period: cython.pointer(Period)) -> uint64_t:
    count: uint64_t = 0
    at: cython.int
    for at in range(BINS):
        count += period.bins[at]
    return count
