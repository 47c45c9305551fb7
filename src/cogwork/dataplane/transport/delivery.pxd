# A delivery that waits, and the frames that wait for it.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.header cimport shorten_ttl
from cogwork.dataplane.transport.shipment cimport Shipment

# A delivery-tag has no more octets (AMQP 1.0 §2.8.7).
cdef enum:
    TAG_BYTES_MAX = 32

# One frame's payload, waiting until every outlet that still needs it has passed it on.
cdef struct Chunk:
    Chunk* next
    uint32_t size
    uint32_t refs
    uint8_t data[1]

# A delivery that could not be passed on at once, or that has more than one frame.
cdef struct Delivery:
    Delivery* next
    Chunk* first
    Chunk* last
    uint64_t size_bytes
    uint64_t token
    double expires_s
    # When the ttl that its sender gave it is over; 0 for never.
    double dies_s
    uint32_t refs
    uint32_t charges
    uint32_t source_index
    uint32_t source_generation
    uint32_t charged_index
    uint32_t charged_generation
    uint32_t format
    uint32_t origin
    bint settled
    # Whether its sender waits for no outcome: it is held back only by what it is charged.
    bint answered
    bint complete
    bint aborted
    bint assembled
    bint begun
    # The tag that it came with, where whoever takes it has to know that: a queue's owner does.
    uint8_t tag_size
    uint8_t[TAG_BYTES_MAX] tag

# Keeps the tag of a message that waits: whoever sends it again does so under the same one.
cdef inline void keep_tag(Delivery* d, const Shipment* s) noexcept nogil:
    if 0 < s.tag_size <= TAG_BYTES_MAX:
        memcpy(d.tag, s.tag, s.tag_size)
        d.tag_size = <uint8_t>s.tag_size

# Describes a delivery as a shipment again; `data` is all of it in one piece.
cdef inline void ship(Shipment* s, const Delivery* d, octets data) noexcept nogil:
    s.data = data
    s.size = <uint32_t>d.size_bytes
    s.format = d.format
    s.settled = d.settled
    s.acquired = False
    s.source_index = d.source_index
    s.source_generation = d.source_generation
    s.token = d.token
    s.tag = <octets>d.tag
    s.tag_size = d.tag_size
    s.origin = d.origin
    s.via_index = d.charged_index
    s.via_generation = d.charged_generation

# Says whether a delivery has waited longer than it may.
cdef inline bint is_over(const Delivery* d, double now_s) noexcept nogil:
    return d.expires_s != 0.0 and d.expires_s <= now_s

# Takes the time that a delivery has waited off its ttl (AMQP 1.0 §3.2.1); its first chunk has it.
cdef inline void age(Delivery* d, double now_s) noexcept nogil:
    cdef double left_ms = (d.dies_s - now_s) * 1000.0
    if d.first != NULL:
        shorten_ttl(d.first.data, d.first.size, <uint32_t>left_ms if left_ms > 0.0 else 0)

cdef inline bint is_single_frame(const Delivery* d, uint32_t room) noexcept nogil:
    if not d.complete or d.aborted or d.first == NULL:
        return False
    return d.first.next == NULL and d.first.size <= room
