from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.transport.frames cimport HEADER_ROOM_BYTES
from cogwork.dataplane.encoding.octets cimport octets, store_u32
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.transport.wire cimport Wire

cdef enum:
    TEMPLATE_MAX_BYTES = 40


cdef class SendingEnd(ConsumerEnd):
    # What every delivery touches stands together, in as few cache lines as can be.
    cdef readonly Session session
    cdef uint64_t next_tag
    cdef uint32_t template_size
    cdef uint8_t template[TEMPLATE_MAX_BYTES]
    cdef bint stalled
    cdef readonly uint64_t sent_bytes
    cdef int make_template(self) except -1
    cdef bint can_start(self) noexcept
    cdef bint may_go_on(self) except -1
    cdef uint32_t run_limit(self, uint32_t count) noexcept
    cdef int write_run(self, Shipment* s, Piece* pieces, uint32_t count, uint64_t size_bytes) except -1
    cdef int count_run(self, uint32_t count, uint64_t size_bytes, uint32_t total) except -1
    cdef int write_first(self, Shipment* s, octets data, uint32_t size, bint more) except -1
    cdef int write_more(self, octets data, uint32_t size, bint more, bint aborted) except -1
    # What is sent from where it lies, in parts, and how far that has come.
    cdef tuple gathered
    cdef uint32_t gathered_index
    cdef uint64_t gathered_at
    cdef int fill(self, uint8_t* p, octets data, uint32_t size) except -1
    cdef uint32_t write_parts(self, Shipment* s, tuple parts) except? 0xffffffff
    cdef uint32_t send_rest(self, Shipment* s, uint32_t sent) except? 0xffffffff
    cdef void _stall(self) noexcept


# Writes the header of a settled delivery of one frame, and the size of all of it; the rest of the
# template is overwritten by what follows. Returns where the message goes.
cdef inline uint8_t* put_header(
    uint8_t* p, const uint8_t* header, uint32_t header_size, uint32_t delivery_id, uint32_t tag
) noexcept nogil:
    memcpy(p, header, TEMPLATE_MAX_BYTES)
    store_u32(p + header_size - 12, delivery_id)
    store_u32(p + header_size - 6, tag)
    return p + header_size

# Counts the payload bytes that fit one of the peer's frames beside a transfer's header.
cdef inline uint32_t frame_room(SendingEnd link) noexcept:
    return link.session.wire.max_frame_out - HEADER_ROOM_BYTES
