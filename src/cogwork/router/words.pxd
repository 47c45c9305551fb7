cimport cython
from libc.stdint cimport uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memchr

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef extern from *:
    """
    /* Both halves of a product: who does not know one factor cannot choose others that clash. */
    static inline uint64_t cogwork_fold(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    /* Eight bytes, the first lowest: compilers make it one load. */
    static inline uint64_t cogwork_eight(const unsigned char* p) {
        return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24
            | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48
            | (uint64_t)p[7] << 56;
    }
    /* Fewer than eight, zeros behind. */
    static inline uint64_t cogwork_some(const unsigned char* p, Py_ssize_t size) {
        uint64_t some = 0;
        while (size-- > 0) some = some << 8 | p[size];
        return some;
    }
    /* A byte that is not zero for each dot; the lowest is exact. */
    static inline uint64_t cogwork_dots(uint64_t eight) {
        eight ^= 0x2E2E2E2E2E2E2E2Eu;
        return (eight - 0x0101010101010101u) & ~eight & 0x8080808080808080u;
    }
    static inline int cogwork_lowest(uint64_t dots) { return __builtin_ctzll(dots) >> 3; }
    """
    uint64_t cogwork_fold(uint64_t a, uint64_t b) noexcept nogil
    uint64_t cogwork_eight(octets p) noexcept nogil
    uint64_t cogwork_some(octets p, Py_ssize_t size) noexcept nogil
    uint64_t cogwork_dots(uint64_t eight) noexcept nogil
    int cogwork_lowest(uint64_t dots) noexcept nogil

# The bit of a token that says: a digest, which may fit another word.
cdef enum:
    LONG_BIT = 63

# A word within somebody's text.
cdef struct Word:
    uint64_t token
    octets text
    Py_ssize_t size

cdef inline void* resized(void* array, size_t size_bytes) except NULL:
    """Reallocates; where there is no room, the array stays as it is."""
    cdef void* larger = realloc(array, size_bytes)
    if larger == NULL:
        raise MemoryError(f"no room for an array of {size_bytes} bytes")
    return larger

cdef inline bint is_long(uint64_t token) noexcept nogil:
    return token >> LONG_BIT

cdef inline uint64_t digest_of(octets text, Py_ssize_t size, uint64_t secret) noexcept nogil:
    """Digests eight bytes or more; the last eight may overlap those before."""
    cdef uint64_t digest = secret
    cdef Py_ssize_t at = 0
    while at < size - 8:
        digest = cogwork_fold(digest ^ cogwork_eight(text + at), secret)
        at += 8
    digest = cogwork_fold(digest ^ cogwork_eight(text + size - 8), secret)
    return cogwork_fold(digest ^ <uint64_t>size, secret)

cdef inline void read_word(Word* word, octets text, Py_ssize_t left, uint64_t secret) noexcept nogil:
    """Reads the word that ends with a dot, or with what is left of the text."""
    cdef uint64_t eight = cogwork_eight(text) if left >= 8 else cogwork_some(text, left)
    cdef uint64_t dots = cogwork_dots(eight)
    cdef octets end
    word.text = text
    if dots:
        word.size = cogwork_lowest(dots)
        eight &= (<uint64_t>1 << (8 * word.size)) - 1
    elif left < 8:
        word.size = left
    else:
        end = <octets>memchr(text + 8, c'.', left - 8)
        word.size = left if end == NULL else end - text
        word.token = <uint64_t>1 << LONG_BIT | digest_of(text, word.size, secret) >> 1
        return
    word.token = eight | <uint64_t>word.size << 56


@cython.final
cdef class Words:
    cdef uint64_t secret
    cdef Py_ssize_t count
    cdef uint64_t digest
    cdef Word* at
    cdef Py_ssize_t capacity
    cdef int read(self, octets text, Py_ssize_t size) except -1
    cdef int _grow(self) except -1
