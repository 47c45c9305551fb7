cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.store cimport Store
from cogwork.dataplane.terminus cimport Terminus

cdef enum:
    PARTITIONS_MAX = 32


@cython.final
cdef class PartitionedInlet(Terminus):
    cdef readonly Core core
    cdef readonly Store store
    cdef readonly AddressEntry entry
    cdef readonly uint32_t count
    cdef readonly bint is_whole
    cdef readonly NearInlet near
    cdef readonly list owners
    cdef int wants
    cdef double seen_s[PARTITIONS_MAX]
    cdef uint64_t bits
    cdef int _note(self, int partition) except -1
    cdef int _hold(self, uint64_t bits) except -1
    cdef int locate(self, Shipment* s) except -2
    cdef Terminus owner_of(self, Shipment* s)
    cdef uint32_t stretch(self, Shipment* s, Piece* pieces, uint32_t count, Terminus owner) except? 0xffffffff


@cython.final
cdef class NearInlet(Terminus):
    cdef readonly PartitionedInlet outer
    cdef readonly uint64_t misdirected
    cdef int _return(self, Shipment* s) except -1
