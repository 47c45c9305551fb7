from libc.stdint cimport int64_t, uint8_t, uint32_t

from cogwork.dataplane.encoding.octets cimport octets, store_uint
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    DEFAULT_PRIORITY = 4
    HEADER_SIZE_MAX = 32

# A message's header section; `size_bytes` is what it takes in the message that it was read from.
cdef struct Header:
    bint durable
    bint has_ttl
    bint first_acquirer
    uint8_t priority
    uint32_t ttl_ms
    uint32_t delivery_count
    uint32_t size_bytes
    # The field that is of a type that it cannot have, from 1, and the format code that it has.
    uint8_t odd_field
    uint8_t odd_code

cdef void clear_header(Header* header) noexcept nogil
cdef int64_t read_header(octets p, int64_t at, int64_t end, Header* header) noexcept nogil
# Returns where the value of a message's ttl stands, and its width in octets; -1 where it has none.
cdef int64_t find_ttl(octets p, int64_t size, uint8_t* width) noexcept nogil
# Returns a message's ttl in milliseconds; -1 where it has none.
cdef int64_t ttl_of(octets p, int64_t size) noexcept nogil
# Writes a shorter ttl over a message's own, in the encoding that it has.
cdef void shorten_ttl(uint8_t* p, int64_t size, uint32_t ttl_ms) noexcept nogil
cdef uint32_t write_header(uint8_t* p, const Header* header) noexcept nogil
