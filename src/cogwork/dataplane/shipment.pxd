# What the parts of the data plane hand to each other about a delivery.
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.scan cimport octets

# A message on its way from a source to one terminus; borrowed for the length of one call.
cdef struct Shipment:
    octets data
    uint32_t size
    uint32_t format
    bint settled
    uint32_t source_index
    uint32_t source_generation
    uint64_t token
    octets tag
    uint32_t tag_size
    uint32_t origin
    uint32_t via_index
    uint32_t via_generation

# One single-frame delivery of a run.
cdef struct Piece:
    octets data
    uint32_t size
    uint32_t delivery_id
    uint64_t token

# What a receiver says of one delivery.
cdef struct Verdict:
    int code
    octets state
    uint32_t state_size
    bint settled
