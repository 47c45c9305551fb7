cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.transport.fragments cimport FragmentingEnd
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.scan cimport TransferFields
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.addresses.space cimport AddressSpace
from cogwork.dataplane.terminus cimport Terminus


cdef class IncomingLink(FragmentingEnd):
    cdef public bint settles_second
    cdef public bint wants_tags
    cdef int begin_delivery(self, TransferFields* t) except -1
    cdef uint32_t _route_each(self, Shipment* s, Piece* pieces, uint32_t count) except? 0xffffffff
    cdef int _count(self, uint32_t count, bint settled) noexcept
    cdef int _unroutable(self, Shipment* s) except -1
