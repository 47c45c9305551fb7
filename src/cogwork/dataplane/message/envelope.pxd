from libc.stdint cimport int64_t, uint8_t, uint32_t

from cogwork.dataplane.message.header cimport Header
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What to look for besides the header.
cdef enum:
    WANTS_DELAY = 1
    WANTS_MESSAGE_ID = 2
    WANTS_GROUP_ID = 4
    WANTS_DEAD_LETTER_ID = 8

# A short string in the encoding of AMQP 1.0.
cdef enum:
    BASIC_ID_MAX = 257

# What a dead letter's id takes.
cdef enum:
    DEAD_LETTER_ID_BYTES = 16

# What in a message is not understood; the fields of the header come first, in their order.
cdef enum:
    NOTHING_ODD = 0
    ODD_DURABLE = 1
    ODD_PRIORITY = 2
    ODD_TTL = 3
    ODD_FIRST_ACQUIRER = 4
    ODD_DELIVERY_COUNT = 5
    ODD_MESSAGE_ID = 6
    ODD_GROUP_ID = 7
    ODD_DELAY = 8
    ODD_TIME = 9

# What a message says of its own storing; it points into the message's bytes.
cdef struct Envelope:
    Header header
    int64_t delay_ms
    int64_t delivery_time_ms
    octets message_id
    uint32_t message_id_size
    octets group_id
    uint32_t group_id_size
    octets dead_letter_id
    uint32_t id_section_start
    uint32_t id_section_end
    bint is_moved
    bint is_dead_letter
    bint is_overflow
    # What is not understood, and its format code, or OUT_OF_RANGE.
    uint8_t odd
    uint8_t odd_code
    # A message-id of AMQP 0-9-1 as AMQP 1.0 encodes it: one id is the same by either protocol.
    uint8_t[BASIC_ID_MAX] basic_id

cdef bint is_durable(octets p, int64_t size) noexcept nogil
# Says the same of a message of any format; of a foreign one nothing tells, so it is.
cdef bint is_kept_durable(octets p, uint32_t size, uint32_t format) noexcept nogil
cdef void clear_envelope(Envelope* e) noexcept nogil
cdef int read_envelope(octets p, int64_t size, int wants, Envelope* e) noexcept nogil
# Reads a message of any format: one that is foreign says nothing.
cdef int read_any_envelope(octets p, uint32_t size, uint32_t format, int wants, Envelope* e) noexcept nogil
