cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.core cimport (
    AddressEntry,
    OutgoingLink,
    Piece,
    Port,
    Shipment,
    Terminus,
    Verdict,
)
from cogwork.dataplane.envelope cimport Envelope
from cogwork.dataplane.recent cimport RecentIds
from cogwork.dataplane.octets cimport octets
from cogwork.dataplane.chain cimport Node
from cogwork.dataplane.ready cimport Cursor
from cogwork.dataplane.shelf cimport Shelf
from cogwork.dataplane.stored cimport Group, Hands, Item
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.timers cimport Timer, TimerHeap

cdef extern from *:
    """
    #include <time.h>
    static double cogwork_wall_s(void) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    """
    double cogwork_wall_s() noexcept nogil

# What a full store does with one message more.
cdef enum:
    FULL_BLOCKS = 0
    FULL_DROPS_OLDEST = 1
    FULL_REJECTS = 2

# What was confirmed, for claims that come again because the confirmation was lost.
cdef struct Commit:
    uint64_t number
    uint32_t attempt


@cython.final
cdef class Consumer:
    cdef readonly OutgoingLink link
    cdef Hands hands
    cdef Cursor cursor
    cdef bint is_selective
    cdef bint is_browser
    cdef bint marks_received
    cdef bint is_active
    cdef uint32_t serial
    cdef list resumed
    cdef Consumer next
    cdef Consumer prev


@cython.final
cdef class Store(Terminus):
    cdef readonly Shelf shelf
    cdef readonly uint32_t shard
    cdef public object handler
    cdef public AddressEntry inlet
    cdef public double ttl_s
    cdef public uint32_t maximum_length
    cdef public uint64_t maximum_bytes
    cdef public uint32_t maximum_delivery_count
    cdef public double in_doubt_timeout_s
    cdef public bint redelivers_doubtful
    cdef public bint keeps_dead
    cdef int full_policy
    cdef int wants
    cdef uint8_t[256] levels
    cdef RecentIds recent
    cdef TimerHeap deadlines
    cdef Port bell
    cdef dict consumers
    cdef list browsers
    cdef list departed
    cdef Consumer turn
    cdef uint32_t active
    cdef uint32_t next_serial
    cdef double ticked_s
    cdef list exceptions
    cdef dict exclusions
    cdef bint has_refused
    cdef bint is_unfinished
    cdef uint8_t* scratch
    cdef uint32_t scratch_size
    cdef Commit* commits
    cdef uint32_t commit_at
    cdef readonly uint64_t stored
    cdef readonly uint64_t sent
    cdef readonly uint64_t accepted
    cdef readonly uint64_t rejected
    cdef readonly uint64_t released
    cdef readonly uint64_t modified
    cdef readonly uint64_t redelivered
    cdef readonly uint64_t expired
    cdef readonly uint64_t exceeded
    cdef readonly uint64_t doubted
    cdef readonly uint64_t parked
    cdef readonly uint64_t dropped
    cdef readonly uint64_t refused
    cdef readonly uint64_t malformed
    cdef readonly uint64_t duplicates
    cdef readonly uint64_t stale_claims
    cdef readonly uint64_t removed
    cdef bint is_full(self) noexcept
    cdef int ring(self) except -1
    cdef int reply(self, Shipment* s, int code, bytes state) except -1
    cdef int receive(self, Shipment* s) except -1
    cdef int answer_run(self, Shipment* s, uint64_t token, uint32_t count) except -1
    cdef int admit(self, Shipment* s, Envelope* e) except -1
    cdef int make_room(self) except -1
    cdef Consumer consumer_of(self, OutgoingLink link)
    cdef int activate(self, Consumer consumer) except -1
    cdef int rest(self, Consumer consumer) except -1
    cdef int offer(self, Item* item) except -1
    cdef int serve(self) except -1
    cdef int serve_one(self, Consumer consumer) except -1
    cdef int browse(self, Consumer browser) except -1
    cdef Item* next_for(self, Consumer consumer) except? NULL
    cdef Item* next_by_cursor(self, Consumer consumer) except? NULL
    cdef Item* next_parked(self, Consumer consumer) except? NULL
    cdef bint suits(self, Item* item, Consumer consumer) except -1
    cdef int deliver(self, Item* item, Consumer consumer) except -1
    cdef int ship(self, Item* item, Consumer consumer, Shipment* s) except -1
    cdef int resend(self, Consumer consumer) except -1
    cdef int resume_one(self, Consumer consumer, uint64_t number, uint32_t attempt) except -1
    cdef void describe(self, Item* item, Shipment* s) noexcept
    cdef int refresh(self, Item* item, Shipment* s) except -1
    cdef int conclude(self, Item* item, Verdict* verdict) except -1
    cdef int commit(self, Item* item) except -1
    cdef int modify(self, Item* item, Verdict* verdict) except -1
    cdef int lose(self, Item* item) except -1
    cdef int end_doubt(self, Item* item) except -1
    cdef int fail(self, Item* item) except -1
    cdef int give_back(self, Item* item) except -1
    cdef int stale(self, Verdict* verdict) except -1
    cdef int bury(self, Item* item, str reason, bytes error) except -1
    cdef int mourn(self, str reason, octets data, uint32_t size, bytes error, uint32_t failures) except -1
    cdef int forget(self, Item* item) except -1
    cdef int exclude(self, Item* item) except -1
    cdef double now(self) noexcept
    cdef bytes message_of(self, Item* item)
    cdef int place(self, Item* item, Envelope* e) except -1
    cdef bint was_committed(self, uint64_t number, uint32_t attempt) noexcept
    cdef int sweep_departed(self) except -1
    cdef int expire(self, double now_s) except -1
    cdef object _facts(self, Item* item)
