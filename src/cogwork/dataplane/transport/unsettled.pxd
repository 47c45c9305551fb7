cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.registry cimport Registry
from cogwork.dataplane.transport.ends cimport LinkEnd
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# An unsettled delivery: where it came from, by index and generation, never by pointer.
cdef struct Sent:
    uint64_t token
    uint32_t delivery_id
    uint32_t link_index
    uint32_t source_index
    uint32_t source_generation

# What deliveries with consecutive ids and tokens have in common.
cdef struct Origin:
    uint64_t token_offset
    uint32_t link_index
    uint32_t source_index
    uint32_t source_generation
    uint32_t uses

# A slot of the ring is an origin and a delivery-id in one; 0 where it is free, for no origin is 0.
cdef inline uint64_t slot_of(uint32_t delivery_id, uint32_t origin) noexcept nogil:
    return <uint64_t>origin << 32 | delivery_id

cdef inline uint32_t id_of(uint64_t slot) noexcept nogil:
    return <uint32_t>slot

cdef inline uint32_t origin_of(uint64_t slot) noexcept nogil:
    return <uint32_t>(slot >> 32)


@cython.final
cdef class UnsettledRing:
    cdef uint64_t* slots
    cdef uint32_t size
    cdef uint32_t first
    cdef Origin* origins
    cdef uint32_t origins_size
    cdef uint32_t free_origin
    cdef uint32_t recent
    cdef dict spilled
    cdef Registry registry
    cdef int track(self, uint32_t delivery_id, uint32_t link_index, Shipment* s) except -1
    cdef int track_run(self, uint32_t first, uint32_t link_index, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef uint32_t _track_alike(self, uint32_t first, uint32_t link_index, Shipment* s, Piece* pieces, uint32_t count) except 0
    cdef void skip(self, uint32_t first, uint32_t following) noexcept
    cdef bint find(self, uint32_t delivery_id, Sent* sent) noexcept
    cdef bint forget(self, uint32_t delivery_id) except -1
    cdef uint32_t take_run(self, uint32_t first, uint32_t last, Sent* sent) noexcept
    cdef bint clip(self, uint32_t* first, uint32_t* last) noexcept
    cdef list ids_of(self, uint32_t link_index, uint64_t token, uint64_t count)
    cdef list spilled_between(self, uint32_t first, uint32_t last)
    cdef bint take_next(self, uint32_t link_index, uint32_t* cursor, Sent* sent) noexcept
    cdef void _describe(self, uint64_t slot, Sent* sent) noexcept
    cdef void _free(self, uint32_t at) noexcept
    cdef uint32_t _origin_of(self, uint64_t token_offset, uint32_t link_index, Shipment* s) except 0
    cdef int _more_origins(self) except -1
    cdef int _make_room(self, uint32_t first, uint32_t last) except -1
    cdef int _spill(self, uint32_t at) except -1
    cdef int _grow(self) except -1
