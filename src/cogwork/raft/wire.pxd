cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets, store_u32, store_u64
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    # Length, kind, group and term: what stands before the fields of a message.
    HEADER_BYTES = 17
    LENGTH_BYTES = 4
    APPEND_BYTES = 36
    ENTRY_BYTES = 13
    PART_BYTES = 44
    # The longest message of fixed size, and an append up to its first payload, both with a header.
    FIXED_BYTES_MAX = 64
    FIRST_BYTES = 66
    PART_HEAD_BYTES = 61


# A kind of message whose fields have one size: numbers of 8 octets, then of 4, then flags.
@cython.final
cdef class Shape:
    cdef uint8_t code
    cdef object message
    cdef tuple names
    cdef int numbers
    cdef int words
    cdef int flags
    cdef int64_t size_bytes
    cdef bytes encode(self, uint32_t group, object message)
    cdef object decode(self, uint64_t term, octets data, int64_t size)


cpdef list encode(uint32_t group, object message)

cdef list encode_append(uint32_t group, object message)
cdef int store_entry(uint8_t* p, object entry, int64_t size) except -1
cdef list encode_part(uint32_t group, object message)
cdef int read_messages(octets data, int64_t size, list found) except -1
cdef object read_message(uint8_t code, uint64_t term, octets data, int64_t size)
cdef object read_append(uint64_t term, octets data, int64_t size)
cdef object read_part(uint64_t term, octets data, int64_t size)


cdef inline void store_header(
    uint8_t* p, int64_t body_bytes, uint8_t code, uint32_t group, uint64_t term
) noexcept nogil:
    store_u32(p, <uint32_t>(HEADER_BYTES - LENGTH_BYTES + body_bytes))
    p[4] = code
    store_u32(p + 5, group)
    store_u64(p + 9, term)
