"""A latency histogram that compiled roles add to without the interpreter."""

from libc.stdint cimport uint64_t

from cogwork.bench.layout cimport BUCKETS

cdef class Histogram:
    cdef uint64_t _counts[BUCKETS]
    cdef readonly uint64_t count

    cdef void add(self, uint64_t value) noexcept nogil

cdef int _bucket(uint64_t value) noexcept nogil
