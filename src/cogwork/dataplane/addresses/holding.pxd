from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.transport.ends cimport ReceivingEnd
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

# How an entry shares deliveries out.
cdef enum:
    MULTICAST = 0
    CLOSEST = 1
    BALANCED = 2


cdef class HoldingEntry(Terminus):
    cdef readonly Core core
    cdef readonly object name
    cdef public int distribution
    cdef public bint release_unmatched
    cdef public object dead_letter
    cdef public double ttl_s
    cdef Delivery* held_first
    cdef Delivery* held_last
    cdef readonly uint32_t held
    cdef readonly uint64_t received
    cdef readonly uint64_t received_bytes
    cdef readonly uint64_t released
    cdef readonly uint64_t dropped
    cdef readonly uint64_t unmatched
    cdef readonly uint64_t expired
    cdef bint is_expiring
    cdef bint is_listed
    cdef int take_back(self, object session, uint32_t first, uint32_t last) except -1
    cdef int hold(self, Delivery* d) except -1
    cdef Delivery* unhold(self) noexcept
    cdef int discard_held(self, Delivery* d) except -1
    cdef int unroutable(self, Shipment* s) except -1
    cdef object _release_held(self)
    cdef ReceivingEnd sender_of(self, Delivery* d)
    cdef int await_rest(self, Delivery* d) except -1
    cdef bint _has_mortal(self) noexcept
    cdef int limit_life(self, Delivery* d) except -1
    cdef int watch_life(self, Delivery* d) except -1
    cdef int give_up(self, Delivery* d, bint is_expired) except -1
    cdef int expire(self, Shipment* s) except -1
    cdef bint _send_dead_letter(self, Shipment* s, str reason) except -1
    cdef int _answer(self, Shipment* s, int code) except -1
