from libc.stdint cimport uint32_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Returns a message of any format as a reader of AMQP 1.0 is to see it: a foreign one as it is.
cdef bytes as_amqp(octets p, uint32_t size, uint32_t format)

# The same, with the octets of its properties, so that it can become what it was.
cdef bytes as_amqp_whole(octets p, uint32_t size, uint32_t format)
