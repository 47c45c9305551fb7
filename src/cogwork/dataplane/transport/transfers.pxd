from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.encoding.octets cimport load_u16, load_word, octets
from cogwork.dataplane.transport.scan cimport TransferFields
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What the headers of a run's frames have in common; octets are compared eight at a time.
cdef struct TransferShape:
    uint32_t size
    uint32_t id_at
    uint32_t tail_at
    uint32_t tag_head
    uint64_t head
    uint64_t lead
    uint64_t lead_mask
    uint64_t tail
    uint64_t tail_mask

cdef bint parse_common_transfer(octets p, int64_t at, int64_t end, TransferFields* t) noexcept nogil
cdef void learn_shape(TransferShape* shape, octets frame, TransferFields* t) noexcept nogil

# Says whether a frame differs from the one that was learnt in size, delivery-id and tag only.
cdef inline bint has_shape(const TransferShape* shape, octets frame) noexcept nogil:
    return (
        shape.id_at != 0
        and load_word(frame + 4) == shape.head
        and (load_word(frame + 12) & shape.lead_mask) == shape.lead
        and load_u16(frame + shape.id_at + 4) == shape.tag_head
        and (load_word(frame + shape.tail_at) & shape.tail_mask) == shape.tail
    )
