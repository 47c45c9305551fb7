cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets, store_u32, store_u64
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    BATCH_HEAD_BYTES = 13
    PLACE_BYTES = 24
    CHUNK_HEAD_BYTES = 37
    COMMAND_HEAD_BYTES = 2
    NUMBER_HEAD_BYTES = 10
    APPEND_HEAD_BYTES = 18
    # What stands before a payload, with the longest producer id that one octet counts.
    FRONT_BYTES_MAX = 292

    VERSION = 1
    APPEND = 1
    FENCE = 2
    TRIM = 3
    SNAPSHOT = 4
    NO_EPOCH = -1


cdef uint8_t* store_batch(uint8_t* p, object batch, bytes producer) except NULL
cdef object read_batch(bytes data, int64_t start, int64_t end)
cdef object read_command(bytes data, int64_t start, int64_t end, object time_ms)

cpdef tuple chunk_parts(object chunk)
cpdef bytes encode_command(object command)
