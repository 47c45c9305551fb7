"""Counts durations in buckets of constant relative width (1.6 %), for percentiles.

A value's bucket is its highest bit and the SUB_BITS bits behind it, so one shift finds it and
nothing is ever out of range.
"""

import cython
from cython.cimports.cogwork.bench.layout import BUCKETS, COGWORK_SOURCE_HASH, SUB_BITS
from cython.cimports.libc.stdint import uint64_t

SOURCE_HASH: str = COGWORK_SOURCE_HASH.decode()

_PERCENTILES = (50.0, 90.0, 99.0, 99.9)


def _bucket(value: uint64_t) -> cython.int:
    exponent: cython.int = 0
    while value >> exponent >= 2 << SUB_BITS:
        exponent += 1
    return cython.cast(cython.int, (exponent << SUB_BITS) + (value >> exponent))


def _middle(bucket: int) -> float:
    """Return the middle of a bucket's range."""
    if bucket < 2 << SUB_BITS:
        return float(bucket)
    exponent = (bucket >> SUB_BITS) - 1
    return (bucket - (exponent << SUB_BITS) + 0.5) * (1 << exponent)


class Histogram:
    """How often each duration was seen."""

    def add(self, value: uint64_t) -> cython.void:
        """Count one value."""
        self._counts[_bucket(value)] += 1
        self.count += 1

    def record(self, value: int) -> None:
        """Count one value, for callers in Python."""
        self.add(value)

    def percentile(self, percent: float) -> float:
        """Return the value that `percent` of the values do not exceed; 0.0 where there is none."""
        wanted: float = self.count * percent / 100
        seen: int = 0
        for bucket in range(BUCKETS):
            seen += self._counts[bucket]
            if seen > 0 and seen >= wanted:
                return _middle(bucket)
        return 0.0

    def summary_us(self) -> dict:
        """Return the usual percentiles of nanoseconds, in microseconds; empty without values."""
        if self.count == 0:
            return {}
        return {f"p{percent:g}": self.percentile(percent) / 1000 for percent in _PERCENTILES}
