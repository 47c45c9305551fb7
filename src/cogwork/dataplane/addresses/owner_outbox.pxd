cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.queue.forward_dedup cimport FORWARD_TAG_BYTES
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.transport.shipment cimport Shipment, Verdict


@cython.final
cdef class OwnerOutbox(Terminus):
    cdef readonly Core core
    cdef readonly AddressEntry entry
    cdef readonly Terminus link
    cdef readonly bint holds_back
    cdef public object on_released
    cdef readonly bint is_refusing
    cdef readonly uint64_t sent_again
    cdef readonly uint64_t refused
    cdef readonly uint64_t lost
    # By number, modulo their count: what has no answer yet; NULL where that has come.
    cdef Delivery** slots
    cdef uint32_t capacity
    cdef uint64_t first
    cdef uint64_t unsent
    cdef uint64_t following
    # Above all that was ever sent, by whatever link.
    cdef uint64_t untried
    cdef int64_t held_bytes
    cdef bint has_refused
    cdef uint8_t[FORWARD_TAG_BYTES] tag
    cdef bint has_way(self) except -1
    cdef bint has_link(self) noexcept
    cpdef go_on(self)
    cdef int pump(self) except -1
    cdef int send(self, uint64_t number) except -1
    cdef int grow(self) except -1
    cdef int settle_one(self, uint64_t number, Verdict* verdict) except -1
    cdef int refuse_one(self, Shipment* s) except -1
    cdef int take_more(self) except -1
