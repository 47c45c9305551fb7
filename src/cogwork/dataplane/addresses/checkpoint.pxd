cimport cython
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Checkpoint(Due):
    cdef readonly Core core
    cdef readonly object guards
    cdef public object handler
    cdef list arrivals
    cdef bint guards_address(self, bytes address) except -1
    cdef int note(self, Due link) except -1
