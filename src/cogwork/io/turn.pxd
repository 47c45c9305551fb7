from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.transport.wire cimport Wire

cdef class Turn
cdef class Waiter


cdef class Turn:
    cdef readonly object loop
    cdef bint is_reading
    cdef bint is_resuming
    cdef list woken
    cdef list due
    cdef int wake(self, Waiter waiter) except -1
    cdef int resume(self) except -1
    cdef int go_on(self) except -1
    cdef int end(self) except -1


cdef class Waiter:
    cdef public bint _asyncio_future_blocking
    cdef Turn turn
    cdef object callback
    cdef object context
    cdef list others
    cdef object value
    cdef object error
    cdef bint is_done
    cdef bint is_cancelled
    cdef int finish(self) except -1
    cdef int go_on(self) except -1
