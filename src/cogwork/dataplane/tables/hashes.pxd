cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# The primes of XXH64.
cdef enum:
    PRIME_1 = 0x9E3779B185EBCA87U
    PRIME_2 = 0xC2B2AE3D27D4EB4FU
    PRIME_3 = 0x165667B19E3779F9U
    PRIME_4 = 0x85EBCA77C2B2AE63U
    PRIME_5 = 0x27D4EB2F165667C5U


cdef inline uint64_t word_at(octets at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline uint32_t half_at(octets at) noexcept nogil:
    cdef uint32_t half
    memcpy(&half, at, 4)
    return half


cdef inline uint64_t turned(uint64_t word, int bits) noexcept nogil:
    return (word << bits) | (word >> (64 - bits))


cdef inline uint64_t rounded(uint64_t lane, uint64_t word) noexcept nogil:
    return turned(lane + word * <uint64_t>PRIME_2, 31) * <uint64_t>PRIME_1


cdef inline uint64_t merged(uint64_t hash, uint64_t lane) noexcept nogil:
    return (hash ^ rounded(0, lane)) * <uint64_t>PRIME_1 + <uint64_t>PRIME_4


cdef inline uint64_t mixed(uint64_t hash, uint64_t word) noexcept nogil:
    return turned(hash ^ rounded(0, word), 27) * <uint64_t>PRIME_1 + <uint64_t>PRIME_4


cdef inline uint64_t finished(uint64_t hash) noexcept nogil:
    hash = (hash ^ (hash >> 33)) * <uint64_t>PRIME_2
    hash = (hash ^ (hash >> 29)) * <uint64_t>PRIME_3
    return hash ^ (hash >> 32)


# XXH64 of one number, as eight octets with the lowest first.
cdef inline uint64_t hash_of_number(uint64_t number, uint64_t seed) noexcept nogil:
    return finished(mixed(seed + <uint64_t>PRIME_5 + 8, number))


# XXH64 of octets.
cdef inline uint64_t hash_of_octets(octets data, int64_t size, uint64_t seed) noexcept nogil:
    cdef octets at = data
    cdef octets end = data + size
    cdef uint64_t hash, one, two, three, four
    if size >= 32:
        one = seed + <uint64_t>PRIME_1 + <uint64_t>PRIME_2
        two = seed + <uint64_t>PRIME_2
        three = seed
        four = seed - <uint64_t>PRIME_1
        while end - at >= 32:
            one = rounded(one, word_at(at))
            two = rounded(two, word_at(at + 8))
            three = rounded(three, word_at(at + 16))
            four = rounded(four, word_at(at + 24))
            at += 32
        hash = turned(one, 1) + turned(two, 7) + turned(three, 12) + turned(four, 18)
        hash = merged(merged(merged(merged(hash, one), two), three), four)
    else:
        hash = seed + <uint64_t>PRIME_5
    hash += <uint64_t>size
    while end - at >= 8:
        hash = mixed(hash, word_at(at))
        at += 8
    if end - at >= 4:
        hash ^= half_at(at) * <uint64_t>PRIME_1
        hash = turned(hash, 23) * <uint64_t>PRIME_2 + <uint64_t>PRIME_3
        at += 4
    while at < end:
        hash = turned(hash ^ at[0] * <uint64_t>PRIME_5, 11) * <uint64_t>PRIME_1
        at += 1
    return finished(hash)
