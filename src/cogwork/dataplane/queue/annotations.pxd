from libc.stdint cimport int64_t, uint32_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef bytes annotated(octets message, uint32_t size, octets state, uint32_t state_size)
