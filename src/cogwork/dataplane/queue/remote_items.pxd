cimport cython
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    # AMQP 1.0 §2.8.7 bounds a delivery-tag.
    TAG_MAX = 32
    # An item whose upstream is broken, and a slot without an item.
    BROKEN = -1
    VACANT = -2

# An item that a consumer has from another container's shard.
cdef struct RemoteItem:
    uint32_t stamp  # tells the slot's items from each other
    uint32_t next  # of the same upstream, in the order in which they came; or the next free slot
    uint32_t previous
    int32_t place  # where the federated consumer has the upstream it came by; BROKEN or VACANT
    uint32_t incoming_id  # the delivery-id on the upstream's session
    uint32_t outgoing_id  # the delivery-id on the consumer's session
    int code  # what the consumer has said of it; 0 for nothing
    bint settled  # whether the consumer has settled it
    uint8_t tag_size
    uint8_t tag[TAG_MAX]

# The items of one upstream.
cdef struct Chain:
    uint32_t first
    uint32_t last


@cython.final
cdef class RemoteItems:
    cdef RemoteItem* slots
    cdef uint32_t size
    cdef uint32_t free_first
    cdef uint32_t free_last
    cdef dict states
    cdef uint64_t make(self, octets tag, uint32_t tag_size) except? 0
    cdef void link(self, Chain* chain, uint64_t token, int32_t place, uint32_t incoming_id) noexcept
    cdef void unlink(self, Chain* chain, uint64_t token) noexcept
    cdef list between(self, Chain* chain, uint32_t first, uint32_t last)
    cdef int drop(self, uint64_t token) except -1
    cdef int forget(self, Chain* chain, uint64_t token) except -1
    cdef bytes tag_of(self, uint64_t token)
    cdef bytes state_of(self, uint64_t token)
    cdef int keep_state(self, uint64_t token, bytes state) except -1
    cdef int clear(self) except -1
    cdef void _vacate(self, uint32_t slot) noexcept
    cdef int _grow(self) except -1

    # Finds an item; NULL where it has gone.
    cdef inline RemoteItem* find(self, uint64_t token) noexcept:
        cdef uint32_t slot = <uint32_t>token
        if slot >= self.size or self.slots[slot].stamp != <uint32_t>(token >> 32):
            return NULL
        return &self.slots[slot] if self.slots[slot].place != VACANT else NULL

    cdef inline uint64_t token_at(self, uint32_t slot) noexcept:
        return (<uint64_t>self.slots[slot].stamp << 32) | slot
