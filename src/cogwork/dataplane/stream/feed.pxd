cimport cython
from libc.stdint cimport uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


@cython.final
cdef class Feed(Terminus):
    cdef readonly Core core
    cdef public object handler
    cdef public list woken
    cdef readonly uint64_t accepted
    cdef readonly uint64_t rejected
    cdef readonly uint64_t returned
    cdef int count_outcome(self, int code, uint64_t count) except -1
