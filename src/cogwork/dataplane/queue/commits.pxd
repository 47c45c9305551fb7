cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Remembered commits: many times what the clients of a queue can have on their way at once; and for
# so many seconds: who is away for longer does not come back with a claim.
cdef enum:
    COMMITS = 65536
    COMMIT_KEPT_S = 86400

# One of them, and the number of the commit before it in its chain.
cdef struct Commit:
    uint64_t number
    uint32_t attempt
    uint32_t at_s
    uint32_t before


@cython.final
cdef class Commits:
    cdef Commit* ring
    cdef uint32_t* heads
    cdef uint32_t size
    cdef uint32_t count
    cdef uint32_t next
    cpdef int add(self, uint64_t number, uint32_t attempt, uint32_t at_s) except -1
    cpdef uint32_t attempt_of(self, uint64_t number, uint32_t now_s) noexcept
    cdef int _grow(self) except -1
    cdef bint _has_old(self, uint32_t at_s) noexcept

# Says whether a commit of that time is still to be known; one of later, by a clock that was set, is.
cdef inline bint is_recent(uint32_t at_s, uint32_t now_s) noexcept nogil:
    return <uint64_t>at_s + COMMIT_KEPT_S >= now_s
