from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cogwork.dataplane.tables.column cimport Values
from cogwork.dataplane.encoding.octets cimport load_word, octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

ctypedef uint8_t* Digits

cdef int put_value(Values* values, octets p, int64_t at, int64_t end) except -1
cdef bint is_utf8(octets p, int64_t size) noexcept nogil

# Says whether octets are ASCII: a few at a time, the last ones twice where they are no multiple.
cdef inline bint is_ascii(octets p, int64_t size) noexcept nogil:
    cdef int64_t at = 0
    cdef uint32_t narrow, last
    if size >= 8:
        while at + 8 <= size:
            if load_word(p + at) & 0x8080808080808080U:
                return False
            at += 8
        return load_word(p + size - 8) & 0x8080808080808080U == 0
    if size >= 4:
        memcpy(&narrow, p, 4)
        memcpy(&last, p + size - 4, 4)
        return (narrow | last) & 0x80808080U == 0
    while at < size:
        if p[at] & 0x80:
            return False
        at += 1
    return True
