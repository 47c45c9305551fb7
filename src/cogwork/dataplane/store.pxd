cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.entry cimport AddressEntry
from cogwork.dataplane.outgoing cimport OutgoingLink
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.dispatcher cimport Dispatcher
from cogwork.dataplane.envelope cimport Envelope
from cogwork.dataplane.journal cimport Journal
from cogwork.dataplane.ledger cimport Ledger
from cogwork.dataplane.letters cimport Letters
from cogwork.dataplane.recent cimport RecentIds
from cogwork.dataplane.shipment cimport Piece, Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.stored cimport Item

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


@cython.final
cdef class Store(Ledger):
    cdef readonly uint32_t shard
    cdef public AddressEntry inlet
    cdef public AddressEntry near_inlet
    cdef int full_policy
    cdef int wants
    cdef uint8_t[256] levels
    cdef Letters letters
    cdef RecentIds recent
    cdef tuple recent_limits
    cdef tuple past
    cdef Dispatcher dispatcher
    cdef readonly uint64_t stored
    cdef readonly uint64_t refused
    cdef readonly uint64_t malformed
    cdef readonly uint64_t duplicates
    cdef bint is_kept_waiting(self) noexcept
    cdef bint cannot_write(self, Shipment* s) except -1
    cdef int reply(self, Shipment* s, int code, bytes state) except -1
    cdef int receive(self, Shipment* s) except -1
    cdef int answer_run(self, Shipment* s, uint64_t token, uint32_t count) except -1
    cdef int admit(self, Shipment* s, Envelope* e) except -1
    cdef Item* make(self, Shipment* s, Envelope* e) except NULL
    cdef int place(self, Item* item, Envelope* e) except -1
