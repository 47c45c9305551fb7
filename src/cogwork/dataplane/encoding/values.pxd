from libc.stdint cimport int64_t, uint8_t, uint32_t

from cogwork.dataplane.encoding.octets cimport load_u32, octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef int64_t skip_value(octets p, int64_t at, int64_t end) noexcept nogil
cdef int64_t list_header(octets p, int64_t at, int64_t end, uint32_t* count, int64_t* list_end) noexcept nogil
cdef int64_t map_header(octets p, int64_t at, int64_t end, int64_t* map_end) noexcept nogil
cdef int64_t read_binary(octets p, int64_t at, int64_t end, octets* value, uint32_t* size) noexcept nogil
cdef int read_string(octets p, int64_t at, int64_t end, octets* value, uint32_t* size) noexcept nogil
cdef int named_descriptor(octets p, int64_t end, int64_t* body) noexcept nogil
cdef uint8_t read_octets(octets p, int64_t at, int64_t end, octets* value, uint32_t* size) noexcept nogil

# The same as skip_value, without a call where the width stands in an octet, or there is none.
cdef inline int64_t skip_short(octets p, int64_t at, int64_t end) noexcept nogil:
    cdef uint8_t kind
    if at + 2 > end:
        return skip_value(p, at, end)
    kind = p[at] >> 4
    if kind == 0xA or kind == 0xC:
        at += 2 + p[at + 1]
        return at if at <= end else -1
    if kind == 0x4:
        return at + 1
    return skip_value(p, at, end)

# Returns the code of a descriptor of AMQP's own, given as a number or by its name, and where its value
# starts; -1 where there is none.
cdef inline int descriptor_code(octets p, int64_t end, int64_t* body) noexcept nogil:
    if end >= 3 and p[0] == 0x00 and p[1] == 0x53:
        body[0] = 3
        return p[2]
    if end >= 10 and p[0] == 0x00 and p[1] == 0x80:
        if load_u32(p + 2) != 0 or load_u32(p + 6) > 0xFF:
            return -1
        body[0] = 10
        return p[9]
    if end >= 3 and p[0] == 0x00 and (p[1] == 0xA3 or p[1] == 0xB3):
        return named_descriptor(p, end, body)
    return -1

# Finds the key of an annotation: the octets of a symbol, or of a string, which some peers write.
# `end` is where the key ends. Keys of other types have no octets.
cdef inline octets read_key(octets p, int64_t at, int64_t end, uint32_t* size) noexcept nogil:
    cdef octets key = NULL
    size[0] = 0
    if p[at] == 0xA3:
        size[0] = p[at + 1]
        return p + at + 2
    if p[at] == 0xB3 or p[at] == 0xA1 or p[at] == 0xB1:
        read_octets(p, at, end, &key, size)
    return key

cdef inline int64_t read_uint(octets p, int64_t at, int64_t end, uint32_t* value, bint* present) noexcept nogil:
    cdef uint8_t code
    if at >= end:
        return -1
    code = p[at]
    present[0] = True
    if code == 0x43:
        value[0] = 0
        return at + 1
    if code == 0x52:
        if at + 2 > end:
            return -1
        value[0] = p[at + 1]
        return at + 2
    if code == 0x70:
        if at + 5 > end:
            return -1
        value[0] = load_u32(p + at + 1)
        return at + 5
    if code == 0x40:
        present[0] = False
        return at + 1
    return -1

# Reads a boolean; null counts as false.
cdef inline int64_t read_bool(octets p, int64_t at, int64_t end, bint* value) noexcept nogil:
    cdef uint8_t code
    if at >= end:
        return -1
    code = p[at]
    if code == 0x41:
        value[0] = True
        return at + 1
    if code == 0x42 or code == 0x40:
        value[0] = False
        return at + 1
    if code == 0x56:
        if at + 2 > end or p[at + 1] > 1:
            return -1
        value[0] = p[at + 1] == 1
        return at + 2
    return -1
