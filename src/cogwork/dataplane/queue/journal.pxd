cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.sent_marks cimport SentMarks
from cogwork.dataplane.queue.stored cimport Item
from cogwork.dataplane.terminus cimport Terminus

cdef extern from *:
    """
    #include <time.h>
    static double cogwork_clock_of(clockid_t clock) {
        struct timespec t;
        clock_gettime(clock, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    static double cogwork_wall_offset_s(void) {
        return cogwork_clock_of(CLOCK_REALTIME) - cogwork_clock_of(CLOCK_MONOTONIC);
    }
    """
    double cogwork_wall_offset_s() noexcept nogil

# The records' kinds, and what they take.
cdef enum:
    PUT = 1
    OUT_AGAIN = 2
    DONE = 3
    COMMITTED = 4
    BACK = 5
    SEEN = 6
    DEAD = 7
    HELD = 8
    GATHERED = 9
    REPORTED = 10
    SETTLED = 11
    DEAD_LETTER = 12
    DIED = 13
    CONFIRMED = 15
    ACQUIRED_AGAIN = 14
    ATTEMPTS = 16
    RECOVERED = 17
    FORWARDED = 18
    FORWARDS = 19
    PAGED_ITEMS = 20
    PUT_BYTES = 51
    OUT_BYTES = 13
    DONE_BYTES = 9
    COMMITTED_BYTES = 13
    BACK_BYTES = 17
    SEEN_BYTES = 11
    DEAD_BYTES = 18
    HELD_BYTES = 9
    GATHERED_BYTES = 9
    REPORTED_BYTES = 9
    SETTLED_BYTES = 14
    DEAD_LETTER_BYTES = 17
    DIED_BYTES = 26
    CONFIRMED_BYTES = 17
    ACQUIRED_BYTES = 13
    ATTEMPTS_BYTES = 5
    RECOVERED_BYTES = 9
    FORWARDED_BYTES = 25
    FORWARDS_BYTES = 537
    PAGED_ITEMS_BYTES = 25

# The flags of a PUT.
cdef enum:
    AGES_MARK = 1
    KEEPS_PLACE = 2


@cython.final
cdef class Journal:
    cdef Core core
    cdef public object on_dirty
    cdef public bint is_open
    cdef public bint is_low
    cdef public bint is_failed
    cdef public bytes failed_state
    cdef readonly uint64_t sequence_base
    cdef readonly double wall_offset_s
    cdef public uint32_t message_bytes_max
    cdef uint8_t* data
    cdef uint64_t size
    cdef uint64_t capacity
    cdef list parts
    cdef public object seen
    cdef public uint64_t held_partitions
    cdef SentMarks marks
    cdef uint32_t group
    cdef bint is_dirty
    cdef int forwarded(self, octets tag) except -1
    cdef int forwards(self, octets row) except -1
    cdef uint8_t* reserve(self, uint64_t size) except NULL
    cdef uint8_t* extend(self, uint64_t size) except NULL
    cdef int put(self, Item* item) except -1
    cdef int put_again(self, Item* item) except -1
    cdef int _put(self, Item* item, uint8_t marks) except -1
    cdef int dead_letter_taken(self, octets key) except -1
    cdef int out(self, Item* item) except -1
    cdef int done(self, uint64_t number) except -1
    cdef int dead(self, Item* item, bytes reason, bytes error, uint64_t died_ms) except -1
    cdef int committed(self, uint64_t number, uint32_t attempt, uint32_t at_s) except -1
    cdef int back(self, Item* item) except -1
    cdef int acquired(self, Item* item) except -1
    cdef int paged(self, uint64_t file, uint32_t first, uint32_t count, uint64_t sequence) except -1
    cdef int saw(self, uint64_t seen_ms, bytes message_id) except -1
    cdef int attempts(self, uint32_t base) except -1
    cdef int hold_partitions(self, uint64_t bits) except -1
    cpdef int gathered(self, uint64_t mark) except -1
    cpdef int reported(self, uint64_t mark) except -1
    cdef int settled(self, uint64_t number, uint32_t attempt, int outcome) except -1
    cdef int note_seen(self, octets message_id, uint32_t size, double now_s) except -1
    cdef int hold_for(self, Terminus end) except -1
    cdef uint64_t wall_ms(self, double at_s) noexcept
    cdef bytes cut(self)
    cdef int _mark_dirty(self) except -1
    cdef int _grow(self, uint64_t size) except -1
