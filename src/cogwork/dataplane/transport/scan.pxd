from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef struct TransferFields:
    uint32_t handle
    uint32_t delivery_id
    bint has_delivery_id
    octets tag
    uint32_t tag_size
    uint32_t message_format
    bint settled
    bint more
    bint aborted
    bint resume
    octets state
    uint32_t state_size
    octets payload
    uint32_t payload_size

cdef struct FlowFields:
    uint32_t next_incoming_id
    bint has_next_incoming_id
    uint32_t incoming_window
    uint32_t next_outgoing_id
    uint32_t outgoing_window
    uint32_t handle
    bint has_handle
    uint32_t delivery_count
    bint has_delivery_count
    uint32_t link_credit
    bint has_link_credit
    uint32_t available
    bint drain
    bint echo

cdef struct DispositionFields:
    bint from_receiver
    uint32_t first
    uint32_t last
    bint settled
    octets state
    uint32_t state_size
    int code

cdef const char* parse_transfer(octets p, int64_t at, int64_t end, TransferFields* t) noexcept nogil
cdef const char* parse_flow(octets p, int64_t at, int64_t end, FlowFields* f) noexcept nogil
cdef const char* parse_disposition(octets p, int64_t at, int64_t end, DispositionFields* d) noexcept nogil
cdef int state_code(octets p, uint32_t size) noexcept nogil
cdef void read_modified(octets state, uint32_t size, bint* failed, bint* undeliverable) noexcept nogil
cdef object _transfer_fields(octets p, int64_t at, int64_t end)
cdef object _flow_fields(octets p, int64_t at, int64_t end)
cdef object _disposition_fields(octets p, int64_t at, int64_t end)
