cimport cython
from libc.stdint cimport uint32_t

from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.settlements cimport SettleRange
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Marks:
    cdef SettleRange due
    cdef int begin(self, Session session, uint32_t delivery_id) except -1
    cdef int spare(self, Session session, uint32_t delivery_id) except -1
    cdef int write(self, Session session) except -1
    cdef void forget(self) noexcept

    # Adds an item to the range that is due, where it comes right behind it.
    cdef inline bint extends(self, uint32_t delivery_id) noexcept:
        if not self.due.open or delivery_id != self.due.last + 1:
            return False
        self.due.last = delivery_id
        return True
