cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef struct Timer:
    double due_s
    uint64_t turn
    uint64_t number


@cython.final
cdef class TimerHeap:
    cdef Timer* timers
    cdef readonly uint32_t count
    cdef uint32_t capacity
    cdef uint64_t turn
    cdef int push(self, double due_s, uint64_t number) except -1
    cdef bint pop_due(self, double now_s, Timer* timer) noexcept
    cdef void rebuild(self, uint32_t count) noexcept
    cdef void _sink(self, uint32_t at) noexcept
