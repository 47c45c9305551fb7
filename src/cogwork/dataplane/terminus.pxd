from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.encoding.octets cimport octets_of
from cogwork.dataplane.transport.shipment cimport Piece, Shipment, Verdict, fill_shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What a source answers to an outcome: it is not final; settle it; somebody else has, or had, what it
# is of; it is not known (any more) what became of that.
cdef enum:
    KEEP = 0
    SETTLE = 1
    REFUSE = 2
    UNKNOWN = 3


cdef class Terminus(Due):
    cdef readonly uint32_t index
    cdef readonly uint32_t generation
    cdef bint is_ready(self) noexcept
    cdef bint refuses(self, Shipment* s) except -1
    cdef bint makes_way(self, Shipment* s) except -1
    cdef int take(self, Shipment* s) except -1
    cdef int64_t take_run(self, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef int resolve_outcome(self, uint64_t token, Verdict* verdict) except -1
    cdef int resolve_run(self, uint64_t token, uint32_t count, Verdict* verdict) except -1
    cdef int on_ready(self, Terminus link) except -1
    cdef uint32_t outstanding(self) noexcept
    cdef bint has_waiting(self) noexcept
    cdef bint hold_output(self) except -1
    cdef bint is_unfinished(self, double now_s, double limit_s) noexcept


# A message from within the process.
cdef inline int ship_from(Shipment* s, Terminus source, uint64_t token, bytes data, bint settled) except -1:
    fill_shipment(s, octets_of(data), <uint32_t>len(data))
    s.settled = settled
    s.source_index = source.index
    s.source_generation = source.generation
    s.token = token
    return 0
