from libc.stdint cimport int64_t, uint8_t, uint32_t
from cogwork.dataplane.scan cimport octets

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

# What to look for besides the header.
cdef enum:
    WANTS_DELAY = 1
    WANTS_MESSAGE_ID = 2
    WANTS_GROUP_ID = 4

cdef enum:
    HEADER_SIZE_MAX = 32

# What a message says of its own storing; borrowed from the message's bytes.
cdef struct Envelope:
    bint durable
    uint8_t priority
    bint has_ttl
    uint32_t ttl_ms
    uint32_t delivery_count
    uint32_t header_size
    int64_t delay_ms
    int64_t delivery_time_ms
    octets message_id
    uint32_t message_id_size
    octets group_id
    uint32_t group_id_size

cdef int read_envelope(octets p, int64_t size, int wants, Envelope* e) noexcept nogil
cdef uint32_t write_header(uint8_t* p, Envelope* e, bint first_acquirer) noexcept nogil
