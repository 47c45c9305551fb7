# Numbers and bytes in buffers, in network order. All of it is inline: none of these is a call.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

ctypedef const uint8_t* octets

cdef inline uint16_t load_u16(octets p) noexcept nogil:
    return (<uint16_t>p[0] << 8) | p[1]

cdef inline uint32_t load_u32(octets p) noexcept nogil:
    return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | p[3]

cdef inline uint64_t load_u64(octets p) noexcept nogil:
    return (<uint64_t>load_u32(p) << 32) | load_u32(p + 4)

# Eight octets as they lie in memory: to compare, not to count with.
cdef inline uint64_t load_word(octets p) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, p, 8)
    return word

cdef inline void store_u16(uint8_t* p, uint16_t number) noexcept nogil:
    p[0] = number >> 8
    p[1] = number & 0xFF

cdef inline void store_u32(uint8_t* p, uint32_t number) noexcept nogil:
    p[0] = number >> 24
    p[1] = (number >> 16) & 0xFF
    p[2] = (number >> 8) & 0xFF
    p[3] = number & 0xFF

cdef inline void store_u64(uint8_t* p, uint64_t number) noexcept nogil:
    store_u32(p, <uint32_t>(number >> 32))
    store_u32(p + 4, <uint32_t>number)

# Writes a uint in its shortest form; returns where it ends.
cdef inline uint8_t* store_uint(uint8_t* p, uint32_t number) noexcept nogil:
    if number == 0:
        p[0] = 0x43
        return p + 1
    if number < 256:
        p[0] = 0x52
        p[1] = <uint8_t>number
        return p + 2
    p[0] = 0x70
    store_u32(p + 1, number)
    return p + 5

# The octets of a bytes object, for as long as somebody holds it.
cdef inline octets octets_of(bytes data) noexcept:
    return <octets>PyBytes_AS_STRING(data)

cdef inline bytes bytes_from(octets p, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char*>p, size)
