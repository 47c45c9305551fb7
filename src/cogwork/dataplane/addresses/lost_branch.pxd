cimport cython
from libc.stdint cimport uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


@cython.final
cdef class LostBranch(Terminus):
    cdef readonly Core core
    cdef readonly bint gave_up
    cdef readonly uint64_t messages
    cdef readonly uint64_t missed
    cdef readonly double missed_at_s
