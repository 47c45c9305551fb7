# The stored form of a message that was published by AMQP 0-9-1, and where its parts stand in it.

from libc.stdint cimport int64_t, uint8_t, uint32_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.header cimport Header
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# The message-format: "091" and version 0 (AMQP 1.0 §3.2.16).
cdef enum:
    BASIC_FORMAT = 0x30393100

# Where the parts of a stored message stand; they point into its octets. The route is exchange and
# routing key, as short strings, one behind the other.
cdef struct BasicParts:
    octets route
    uint32_t route_size
    octets exchange
    uint32_t exchange_size
    octets key
    uint32_t key_size
    octets properties
    uint32_t properties_size
    octets body
    uint32_t body_size

# What is heeded in a property list: short strings with their length before them, the octets of the
# table of headers without theirs.
cdef struct BasicFacts:
    Header header
    octets message_id
    uint32_t message_id_size
    octets reply_to
    uint32_t reply_to_size
    bint has_user_id
    octets headers
    uint32_t headers_size

cdef bint find_basic_parts(octets p, uint32_t size, BasicParts* parts) noexcept nogil
cdef bint read_basic_facts(octets p, uint32_t size, BasicFacts* facts) noexcept nogil
# Says whether octets are the fields of a table, however deep within the reference's limit.
cdef bint is_table(octets p, uint32_t size) noexcept nogil
cdef bint is_basic_durable(octets p, uint32_t size) noexcept nogil
