cimport cython
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


@cython.final
cdef class Port(Terminus):
    cdef readonly Core core
    cdef public object handler
    cdef public list arrivals
    cdef public list outcomes
    cdef public list woken
    cdef public bint open
    cdef int mark_dirty(self) except -1
