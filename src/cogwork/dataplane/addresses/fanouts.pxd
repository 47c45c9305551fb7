cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.registry cimport Registry
from cogwork.dataplane.transport.shipment cimport Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

# A multicast delivery whose publisher waits until others have settled their copies.
cdef struct FanoutRecord:
    uint64_t token
    uint32_t source_index
    uint32_t source_generation
    uint32_t waiting
    int worst
    bint used
    bint judges


@cython.final
cdef class Fanouts(Terminus):
    cdef Registry registry
    cdef FanoutRecord* records
    cdef uint32_t size
    cdef uint32_t* free
    cdef uint32_t free_count
    cdef dict states
    cdef uint32_t open(self, Shipment* s, bint judges) except? 0xffffffff
    cdef int grow(self) except -1
    cdef int judge(self, uint64_t token, Verdict* verdict) except -1
    cdef int lose(self, uint64_t token) except -1
    cdef int _conclude(self, uint32_t record) except -1

    cdef inline bint is_open(self, uint64_t record) noexcept:
        return record < self.size and self.records[record].used

    # Drops one reason to wait; with the last one the publisher is told the worst outcome.
    cdef inline int close(self, uint32_t record) except -1:
        self.records[record].waiting -= 1
        if self.records[record].waiting > 0:
            return 0
        return self._conclude(record)


# Where a copy goes to another container: its outcome there is part of the publisher's.
@cython.final
cdef class Branches(Terminus):
    cdef Fanouts fanouts

