from libc.stdint cimport int64_t, uint8_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef extern from *:
    """
    /* A decimal in the binary integer form (AMQP 1.0 1.6.13 to 1.6.15) as the nearest whole number:
       1, or -2 where there is none, or it is too large. `cogwork.amqp.decimals` is the reference. */
    static int cogwork_rounded_decimal(const uint8_t *p, int width, int64_t *value) {
        unsigned __int128 number = 0, coefficient, limit = 1;
        int bits = width * 8, index, exponent, is_negative;
        int exponent_bits = width == 4 ? 8 : width == 8 ? 10 : 14;
        int bias = width == 4 ? 101 : width == 8 ? 398 : 6176;
        int digits = width == 4 ? 7 : width == 8 ? 16 : 34;
        int room = bits - 1 - exponent_bits;
        for (index = 0; index < width; index++) number = number << 8 | p[index];
        is_negative = (int)(number >> (bits - 1)) & 1;
        number &= ((unsigned __int128)1 << (bits - 1)) - 1;
        if ((int)(number >> (bits - 6)) >= 0x1E) return -2;
        if ((int)(number >> (bits - 3)) == 3) {
            exponent = (int)(number >> (room - 2)) & ((1 << exponent_bits) - 1);
            coefficient = ((unsigned __int128)4 << (room - 2))
                | (number & (((unsigned __int128)1 << (room - 2)) - 1));
        } else {
            exponent = (int)(number >> room);
            coefficient = number & (((unsigned __int128)1 << room) - 1);
        }
        for (index = 0; index < digits; index++) limit *= 10;
        if (coefficient >= limit) coefficient = 0;
        for (exponent -= bias; exponent > 0 && coefficient != 0; exponent--) {
            if (coefficient > INT64_MAX) return -2;
            coefficient *= 10;
        }
        for (; exponent < 0 && coefficient != 0; exponent++)
            coefficient = exponent == -1 ? (coefficient + 5) / 10 : coefficient / 10;
        if (coefficient > INT64_MAX) return -2;
        *value = is_negative ? -(int64_t)coefficient : (int64_t)coefficient;
        return 1;
    }
    """
    int cogwork_rounded_decimal(const uint8_t* p, int width, int64_t* value) noexcept nogil

# What a value was found to be, where a number is expected.
cdef enum:
    IS_NUMBER = 1
    IS_NULL = 0
    IS_OTHER = -1
    IS_OUT_OF_RANGE = -2

# What is noted in place of a format code where a value is of the right type, and too large or too
# small: `cogwork.amqp.format_codes` words it.
cdef enum:
    OUT_OF_RANGE = 0x01

cdef int read_integer(octets p, int64_t at, int64_t end, int64_t* value) noexcept nogil
cdef int read_rounded(octets p, int64_t at, int64_t end, int64_t* value) noexcept nogil
cdef int64_t read_number(octets p, int64_t at, int64_t end, uint64_t* value) noexcept nogil
