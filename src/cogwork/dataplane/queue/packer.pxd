cimport cython
from libc.stdint cimport uint8_t, uint32_t

from cogwork.dataplane.transport.shipment cimport Shipment, fill_shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport ACQUIRED, Item

# An item as it came.
cdef inline void describe(Item* item, Shipment* s) noexcept nogil:
    fill_shipment(s, item.data, item.size)
    s.format = item.format
    s.origin = item.origin
    s.acquired = item.flags & ACQUIRED != 0


@cython.final
cdef class Packer:
    cdef uint8_t* scratch
    cdef uint32_t scratch_size
    cdef int refresh(self, Item* item, double now_s, Shipment* s) except -1
    cdef int _reserve(self, uint32_t size) except -1
