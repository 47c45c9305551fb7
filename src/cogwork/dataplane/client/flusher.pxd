from cogwork.dataplane.core cimport Core
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef class Flusher:
    cdef readonly Core core
    cdef object call_soon
    cdef bint due
    cdef int later(self) except -1
    cdef int now(self) except -1
