cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.queue.item_table cimport ItemTable
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport Item

cdef extern from *:
    """
    #include <time.h>
    #include <stdint.h>
    static uint64_t cogwork_wall_us(void) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
    }
    /* The finalizer of splitmix64: each bit of the result depends on all of the number. */
    static uint64_t cogwork_scatter(uint64_t x) {
        x += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return x ^ (x >> 31);
    }
    """
    uint64_t cogwork_wall_us() noexcept nogil
    uint64_t cogwork_scatter(uint64_t x) noexcept nogil

# What became of an attempt, or of an item.
cdef enum:
    OUTCOME_NOTHING = 0
    OUTCOME_ACCEPTED = 1
    OUTCOME_REJECTED = 2
    OUTCOME_RELEASED = 3
    OUTCOME_MODIFIED = 4
    OUTCOME_PARKED = 5
    OUTCOME_EXPIRED = 6
    OUTCOME_EXCEEDED = 7
    OUTCOME_DROPPED = 8
    OUTCOME_REMOVED = 9

cdef int outcome_of_reason(str reason) except -1

# One event of an item.
cdef struct Fact:
    uint64_t number
    uint64_t position
    uint64_t time_us
    uint64_t digest
    uint32_t attempt
    uint32_t consumer
    uint8_t is_settled
    uint8_t outcome
    uint8_t has_digest


@cython.final
cdef class AuditEvents:
    cdef readonly uint32_t shard
    cdef readonly bint has_digests
    cdef public uint64_t sequence_base
    cdef readonly uint64_t missed
    cdef public list pending
    cdef ItemTable items
    cdef uint64_t sample_below
    cdef Fact* facts
    cdef uint32_t count
    cdef uint32_t capacity
    cdef uint32_t facts_max
    cdef uint64_t* places
    cdef uint32_t places_size
    cdef uint64_t last_place
    cdef bint is_calling
    cdef uint32_t call_slot
    cdef list restored
    cdef int accepted(self, Item* item) except -1
    cdef int handed(self, Item* item) except -1
    cdef int settled(self, Item* item, int outcome) except -1
    cdef int dead_lettered(self, Item* item, str reason) except -1
    cdef int clear(self) except -1
    cdef int restore(self, object unreported) except -1
    cdef list unreported(self)
    cdef int _name(self, Item* item) except -1
    cdef Fact* _new(self, Item* item) except? NULL
    cdef uint64_t _digest(self, Item* item) except? 0
    cdef int _call(self, uint32_t count) except -1
    cdef int _grow(self) except -1
    cdef int _grow_places(self, uint32_t slot) except -1

    # Says whether an item is one of those that are followed: the same for all that happens to it.
    cdef inline bint follows(self, uint64_t number) noexcept:
        return cogwork_scatter(number ^ (<uint64_t>self.shard << 16)) >> 32 < self.sample_below
