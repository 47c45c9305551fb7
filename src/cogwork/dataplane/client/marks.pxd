cimport cython
from libc.stdint cimport uint32_t

from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.settlements cimport SettleRange
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Marks:
    cdef SettleRange due
    cdef int add(self, Session session, uint32_t delivery_id) except -1
    cdef int write(self, Session session) except -1
