from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.plugin.engine.chunks cimport read_command
from cogwork.dataplane.encoding.octets cimport octets, store_u32, store_u64
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    TIME_BYTES = 8
    LENGTH_BYTES = 4
