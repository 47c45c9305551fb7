cimport cython
from libc.stdint cimport int64_t, uint32_t
from cogwork.dataplane.addresses.checkpoint cimport Checkpoint
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.transport.incoming cimport IncomingLink
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class CheckedLink(IncomingLink):
    cdef readonly Checkpoint checkpoint
    cdef readonly bytes address
    cdef readonly uint32_t waiting
    cdef Delivery* first
    cdef Delivery* last
    cdef bint is_guarded(self, octets data, uint32_t size) except -1
    cdef bytes address_of(self, octets data, uint32_t size)
    cdef int keep(self, Shipment* s) except -1
    cdef Delivery* take_first(self) noexcept
    cdef int let_pass(self, Delivery* d) except -1
    cdef int answer_with(self, Delivery* d, int code, bytes state) except -1
