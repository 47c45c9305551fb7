from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.transport.incoming cimport IncomingLink
from cogwork.dataplane.addresses.port cimport Port
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.client.flusher cimport Flusher
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef bytes UNDECODABLE_STATE
cdef uint32_t TURN_MESSAGES
cdef Py_ssize_t WAIT
cdef Py_ssize_t TURN_FIRST

cdef class Inbox(Terminus):
    cdef readonly Core core
    cdef readonly IncomingLink link
    cdef readonly uint32_t window
    cdef public object listener
    cdef readonly uint32_t held
    cdef readonly uint64_t undecodable
    cdef readonly object failure
    cdef bint is_over
    cdef object create_future
    cdef Flusher flusher
    cdef Port wakeup
    cdef list arrivals
    cdef list ready
    cdef Py_ssize_t at
    cdef list waiters
    cdef Py_ssize_t waiters_max
    cdef object draining
    cdef bint is_stopped
    cdef uint32_t handed_in_turn
    cdef object admit(self, Shipment* s)
    cdef int hand(self, object message) except -1
    cdef int drop_waiting(self) except -1
    cdef int has_ended(self) except -1
    cdef object arrival(self)
    cdef Py_ssize_t permit(self, Py_ssize_t limit) except -2
    cdef int rest(self) except -1
    cdef object next_waiting(self)
    cdef uint32_t count_waiting(self) noexcept
    cdef object pick(self, Py_ssize_t limit)
    cdef bint refill(self) noexcept
    cdef int top_up(self) except -1
    cdef int wake(self) except -1
    cdef int reply(self, uint32_t delivery_id, int code, bytes state) except -1
    cdef bytes payload(self, Shipment* s)
