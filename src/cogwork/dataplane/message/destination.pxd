from libc.stdint cimport int64_t, uint32_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What a message says that its address is.
cdef enum:
    SAYS_NOTHING = 0
    SAYS_QUEUE = 1
    SAYS_TOPIC = 2

cdef int read_destination(octets p, int64_t size) noexcept nogil
