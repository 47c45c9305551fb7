from libc.stdint cimport uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef class Flusher:
    cdef readonly Core core
    cdef object call_soon
    cdef bint due
    cdef readonly uint64_t passes
    cdef int later(self) except -1
    cdef int now(self) except -1
