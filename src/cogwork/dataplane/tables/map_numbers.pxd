cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What there is under a name: nothing, a number, or something else.
cdef enum:
    ABSENT = 0
    NUMBER = 1
    ODD = 2

# Digits of numbers that fit 64 bits, sixteen times over.
cdef enum:
    DIGITS_MAX = 17


cdef inline bint read_number(octets text, int64_t size, int64_t* number) noexcept nogil:
    cdef int64_t value = 0
    cdef int64_t at
    cdef int64_t begin = 1 if size > 1 and text[0] == 45 else 0
    if size == 0 or size - begin > DIGITS_MAX:
        return False
    for at in range(begin, size):
        if text[at] < 48 or text[at] > 57:
            return False
        value = value * 10 + (text[at] - 48)
    number[0] = -value if begin else value
    return True


@cython.final
cdef class MapNumbers:
    cdef octets validity
    cdef const int32_t* offsets
    cdef int64_t first
    cdef const int32_t* key_offsets
    cdef octets key_data
    cdef int64_t key_first
    cdef octets value_validity
    cdef const int32_t* value_offsets
    cdef octets value_data
    cdef int64_t value_first
    cdef uint8_t look(self, int64_t row, octets key, int64_t size, int64_t* number) noexcept
    cdef uint8_t look_at(self, int64_t entry, int64_t* number) noexcept
