cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.addresses.interest cimport Interest
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.transport.shipment cimport Piece, Shipment

cdef extern from *:
    """
    #include <string.h>
    /* Says whether the names of CC or BCC, as short strings, are somewhere in properties. */
    static inline int cogwork_has_copies(const unsigned char* p, size_t size) {
        const unsigned char* end = p + size;
        while ((p = memchr(p, 'C', end - p)) != NULL) {
            if (end - p < 2) return 0;
            if (p[1] == 'C' && (p[-1] == 2 || (p[-1] == 'B' && p[-2] == 3))) return 1;
            p += 1;
        }
        return 0;
    }
    """
    int cogwork_has_copies(octets p, size_t size) noexcept nogil


@cython.final
cdef class Changes:
    cdef readonly uint64_t count
    # The keys of the message that goes to other containers now; None where it says them itself.
    cdef bytes keys


@cython.final
cdef class Routes:
    cdef Changes changes
    cdef object finder
    cdef dict kept
    cdef dict entries
    cdef public Interest interest
    cdef uint64_t seen
    # Whether the router has to see more of a message than its key.
    cdef bint wants_head
    cdef readonly uint64_t unroutable
    cdef readonly uint64_t delivered
    cdef int _keep(self, bytes key, list entries) except -1
    cdef list _matched(self, bytes key)
    cdef list find(self, bytes key, Shipment* s, uint32_t head_size, bint is_basic)


@cython.final
cdef class ExchangeInlet(Terminus):
    cdef readonly Core core
    cdef readonly Routes routes
    cdef readonly bytes key
    # The key, as a wrapping has it.
    cdef bytes keys
    cdef int _aim(self, Shipment* s, Piece* piece) noexcept
    cdef list _entries_of(self, Shipment* s, Piece* piece, bint* has_copies)
    cdef list _entries_for(self, Shipment* s, bint* has_copies)
    cdef int _take_with_copies(self, Shipment* s) except -1
    cdef int _answer(self, Shipment* s, int code) except -1
    cdef int _give(self, Shipment* s, list entries, bytes keys) except -1
    cdef int _give_run(self, Shipment* s, Piece* pieces, uint32_t count, list entries) except -1
    cdef int _await(self, Shipment* shipment) noexcept
