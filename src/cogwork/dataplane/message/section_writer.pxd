from libc.stdint cimport uint8_t, uint32_t

from cogwork.dataplane.message.header cimport Header
from cogwork.dataplane.encoding.octets cimport store_u32
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.encoding.writer cimport Writer

# Python objects that the hot path compares with or calls: C globals, not module lookups.
cdef object EncodeError, Symbol, ULong
cdef list PLAIN_TYPES

cdef int put_header(Writer* out, Header* header) except -1
cdef int put_fields(Writer* out, list fields) except -1
cdef int put_body(Writer* out, unsigned char code, object body) except -1
cdef int put_properties(Writer* out, dict entries) except -1
cdef int put_annotations(Writer* out, unsigned char code, dict entries) except -1
cdef bytes data_section(bytes body)

# What stands before the octets of a data section.
cdef inline uint32_t data_head_size(uint32_t size) noexcept nogil:
    return 5 if size < 256 else 8

cdef inline uint8_t* put_data_head(uint8_t* p, uint32_t size) noexcept nogil:
    p[0] = 0x00
    p[1] = 0x53
    p[2] = 0x75
    if size < 256:
        p[3] = 0xA0
        p[4] = <uint8_t>size
        return p + 5
    p[3] = 0xB0
    store_u32(p + 4, size)
    return p + 8
