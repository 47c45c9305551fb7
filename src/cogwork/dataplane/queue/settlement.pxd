from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.queue.commits cimport Commits
from cogwork.dataplane.queue.histogram cimport Histogram
from cogwork.dataplane.queue.item_table cimport ItemTable
from cogwork.dataplane.transport.shipment cimport Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.state cimport QueueState
from cogwork.dataplane.queue.stored cimport Item
from cogwork.dataplane.queue.timers cimport Timer, TimerHeap


cdef class Settlement(QueueState):
    cdef public double in_doubt_timeout_s
    cdef public bint redelivers_in_doubt
    cdef Commits commits
    cdef double wall_offset_s
    cdef TimerHeap deadlines
    cdef public Histogram waits
    cdef readonly uint64_t accepted
    cdef readonly uint64_t rejected
    cdef readonly uint64_t released
    cdef readonly uint64_t modified
    cdef readonly uint64_t in_doubt_total
    cdef readonly uint64_t parked
    cdef readonly uint64_t abandoned
    cdef readonly uint64_t stale_claims
    cdef Item* in_hand(self, uint64_t number, uint32_t attempt) noexcept
    cdef int conclude(self, Item* item, Verdict* verdict) except -1
    cdef int hold_consumer(self, Item* item) except -1
    cdef int commit(self, Item* item, bint settled) except -1
    cdef int modify(self, Item* item, Verdict* verdict) except -1
    cdef Item* annotate(self, Item* item, Verdict* verdict) except NULL
    cdef int answer_late(self, uint64_t number, uint32_t attempt) noexcept
    cdef double wall_offset(self) noexcept
    cdef uint32_t wall_s(self) noexcept
    cdef Item* given_up(self, uint64_t number, uint32_t attempt) except? NULL
    cdef int end_attempt(self, Item* item, Verdict* verdict, bint is_named) except -1
    cdef int abandon(self, Item* item) except -1
    cdef int return_item(self, Item* item) except -1
    cdef int lose(self, Item* item) except -1
    cdef int end_lease(self, Item* item) except -1
    cdef int resolve_in_doubt(self, Item* item) except -1
    cdef int pass_time(self, double now_s) except -1
    cdef bint is_at_rest(self) noexcept
