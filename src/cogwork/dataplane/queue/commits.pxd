cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Remembered commits: about what a queue's clients can have on their way at once.
cdef enum:
    COMMITS = 65536

cdef struct Commit:
    uint64_t number
    uint32_t attempt


@cython.final
cdef class Commits:
    cdef Commit* ring
    cdef uint32_t at
    cdef int add(self, uint64_t number, uint32_t attempt) except -1
    cdef bint has(self, uint64_t number, uint32_t attempt) noexcept
