cimport cython
from libc.stdint cimport uint32_t

from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.queue.ready cimport Cursor
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport ConsumerState

# The two name each other: this one is to be known before the other is read.
cdef class Round


@cython.final
cdef class Consumer:
    cdef readonly ConsumerEnd link
    cdef ConsumerState state
    cdef Cursor cursor
    cdef bint is_selective
    cdef bint is_browser
    cdef bint is_far
    cdef bint marks_received
    cdef bint is_active
    cdef uint32_t serial
    cdef list resumed
    cdef Round round
    cdef Consumer next
    cdef Consumer prev


@cython.final
cdef class Round:
    cdef Consumer turn
    cdef uint32_t count
    cdef readonly int priority
    cdef int enter(self, Consumer consumer) except -1
    cdef int leave(self, Consumer consumer) except -1
    cdef Consumer next_ready(self)
