cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef extern from *:
    """
    /* Keyed with a secret of the process, so that nobody can choose keys that clash. */
    static uint64_t cogwork_hash(const void* data, Py_ssize_t size) {
        return (uint64_t)PyHash_GetFuncDef()->hash(data, size);
    }
    /* FNV-1a: a second, unrelated hash, the same in every process. */
    static uint64_t cogwork_check(uint8_t kind, const uint8_t* data, Py_ssize_t size) {
        uint64_t check = (0xcbf29ce484222325u ^ kind) * 0x100000001b3u;
        while (size-- > 0) check = (check ^ *data++) * 0x100000001b3u;
        return check;
    }
    """
    uint64_t cogwork_hash(const void* data, Py_ssize_t size) noexcept
    uint64_t cogwork_check(uint8_t kind, octets data, Py_ssize_t size) noexcept

# A message-id without its encoding; what is shown of a number stands in the struct itself.
cdef struct MessageId:
    octets data
    uint32_t size
    uint8_t kind
    uint8_t number[8]

cdef void read_message_id(octets p, uint32_t size, MessageId* found) noexcept

cdef struct Sighting:
    uint64_t key
    uint64_t check
    double seen_s


@cython.final
cdef class RecentIds:
    cdef readonly double window_s
    cdef readonly uint32_t count_max
    cdef readonly uint32_t count
    cdef Sighting* ring
    cdef uint32_t* index
    cdef uint32_t capacity
    cdef uint32_t first
    cdef Sighting wanted
    cdef bint saw(self, octets message_id, uint32_t size, double now_s) except -1
    cdef int remember(self, double now_s) except -1
    cdef uint32_t _place_of(self, Sighting* wanted) noexcept
    cdef void _forget_oldest(self) noexcept
    cdef void _close_gap(self, uint32_t gap) noexcept
    cdef int _grow(self) except -1
