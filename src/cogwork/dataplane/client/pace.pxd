cimport cython
from libc.stdint cimport uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Pace:
    cdef readonly Py_ssize_t ahead
    cdef readonly Py_ssize_t ahead_max
    cdef Py_ssize_t count
    cdef Py_ssize_t proof
    cdef double since_s
    cdef uint64_t passes
    cpdef void begin(self, Py_ssize_t count, double now_s, uint64_t passes) noexcept
    cpdef void forget(self) noexcept
    cpdef void finish(self, double now_s, uint64_t passes) noexcept
