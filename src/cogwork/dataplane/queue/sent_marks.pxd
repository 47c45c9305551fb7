cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    BLOCKS = 4
    BLOCK_ENTRIES = 16384

# An attempt that has gone out; `check` tells it from one that was torn or never written.
cdef struct SentMark:
    uint64_t number
    uint32_t attempt
    uint32_t group
    uint64_t check


@cython.final
cdef class SentMarks:
    cdef Core core
    cdef uint8_t[::1] memory
    cdef SentMark* marks
    cdef uint32_t at
    cdef uint64_t block_barriers[BLOCKS]
    cdef bint note(self, uint32_t group, uint64_t number, uint32_t attempt) noexcept
