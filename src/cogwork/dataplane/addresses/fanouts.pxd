cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.registry cimport Registry
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

# A multicast delivery that waits for its subscribers' settlements.
cdef struct FanoutRecord:
    uint64_t token
    uint32_t source_index
    uint32_t source_generation
    uint32_t waiting
    bint used
    bint lost


@cython.final
cdef class Fanouts(Terminus):
    cdef Registry registry
    cdef FanoutRecord* records
    cdef uint32_t size
    cdef uint32_t* free
    cdef uint32_t free_count
    cdef uint32_t open(self, Shipment* s) except? 0xffffffff
    cdef int cancel(self, uint32_t record) except -1
    cdef int grow(self) except -1
    cdef int _conclude(self, uint32_t record) except -1

    # Drops one reason to wait; with the last one the publisher is told: accepted.
    cdef inline int close(self, uint32_t record) except -1:
        self.records[record].waiting -= 1
        if self.records[record].waiting > 0:
            return 0
        return self._conclude(record)


# Where a copy goes to another container: what becomes of it there is part of the answer.
@cython.final
cdef class Branches(Terminus):
    cdef Fanouts fanouts

