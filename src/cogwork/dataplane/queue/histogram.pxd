cimport cython
from libc.stdint cimport uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# A value's bin is how many bits it has: bin 0 holds zeros, bin n what is below 1 << n.
cdef enum:
    BINS = 65

cdef struct Period:
    uint64_t bins[BINS]
    uint64_t maximum


@cython.final
cdef class Histogram:
    cdef Period latest
    cdef Period earlier
    cdef double turned_s
    cpdef int add(self, uint64_t value) except -1
    cpdef int turn(self, double now_s) except -1

    # Counts a zero.
    cdef inline void add_zero(self) noexcept:
        self.latest.bins[0] += 1
