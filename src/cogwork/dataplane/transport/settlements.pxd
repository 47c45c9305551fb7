from libc.stdint cimport uint32_t
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.shipment cimport Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.transport.wire cimport Channel

# Joined settlements of consecutive delivery-ids, written as one disposition.
cdef struct SettleRange:
    uint32_t first
    uint32_t last
    int code
    bint open
    bint settled


cdef class Settlements(Channel):
    cdef SettleRange to_sender
    cdef SettleRange to_receiver
    cdef int settle(self, SettleRange* r, bint as_receiver, uint32_t delivery_id, Verdict* v, bint settled) except -1
    cdef int settle_more(self, SettleRange* r, bint as_receiver, uint32_t delivery_id, uint32_t count, Verdict* v, bint settled) except -1
    cdef int write_range(self, SettleRange* r, bint as_receiver, octets state, uint32_t state_size) except -1
    cdef int write_ranges(self) except -1
    cdef int _write_long_range(self, SettleRange* r, bint as_receiver, octets state, uint32_t state_size) except -1
