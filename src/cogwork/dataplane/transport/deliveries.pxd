cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.transport.delivery cimport Chunk, Delivery
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.transport.ends cimport ReceivingEnd
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.registry cimport Registry
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Copies a complete delivery's chunks into one block.
cdef bytes join(const Delivery* d)


@cython.final
cdef class Deliveries:
    cdef Registry registry
    cdef readonly uint64_t count
    cdef readonly int64_t held_bytes
    cdef readonly int64_t held_bytes_max
    cdef readonly int64_t held_bytes_most
    cdef list starved
    cdef Delivery* make(self, Shipment* s) except NULL
    cdef Chunk* append(self, Delivery* d, octets data, uint32_t size) except NULL
    cdef int merge(self, Delivery* d) except -1
    cdef int assemble(self, Delivery* d) except -1
    cdef int trim(self, Delivery* d) except -1
    cdef int release(self, Delivery* d) except -1
    cdef int charge(self, Delivery* d) except -1
    cdef int uncharge(self, Delivery* d) except -1
    cdef int _feed_starved(self) except -1
