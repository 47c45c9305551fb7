cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.queue.chain cimport Node, is_empty
from cogwork.dataplane.queue.disorder cimport Disorder
from cogwork.dataplane.queue.groups cimport Groups
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.queue.pages cimport Pages
from cogwork.dataplane.queue.ready cimport Ready
from cogwork.dataplane.queue.slots cimport Slots
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport ASIDE, IN_DOUBT, OUT, ConsumerState, Item
from cogwork.dataplane.queue.timers cimport Timer, TimerHeap


# Says whether an item is at a consumer, in doubt, or on its way elsewhere.
cdef inline bint is_away(Item* item) noexcept:
    return item.state == OUT or item.state == IN_DOUBT or item.state == ASIDE


@cython.final
cdef class ItemTable:
    cdef Slots slots
    cdef Ready ready
    cdef Groups groups
    cdef readonly Pages pages
    cdef readonly Disorder disorder
    cdef Node returned
    cdef Node in_doubt
    cdef uint64_t next_sequence
    cdef TimerHeap expiries
    cdef TimerHeap delays
    cdef uint32_t expiries_max
    cdef readonly uint32_t depth
    cdef readonly uint64_t size_bytes
    cdef readonly uint32_t delayed_count
    cdef readonly uint32_t returned_count
    cdef readonly uint32_t out_count
    cdef readonly uint64_t out_bytes
    cdef readonly uint32_t in_doubt_count
    cdef readonly uint32_t aside_count
    cdef readonly uint64_t aside_bytes
    cdef Item* make(self, octets data, uint32_t size) except NULL
    cdef int enter(self, Item* item) except -1
    cdef int delay(self, Item* item, double due_s) except -1
    cdef int ripen(self, double now_s) except -1
    cdef int expire_at(self, Item* item, double expires_s) except -1
    cdef double next_due(self, double now_s) noexcept
    cdef Item* pop_expired(self, double now_s) noexcept
    cdef int hand_out(self, Item* item, ConsumerState* holder) except -1
    cdef int stand_back(self, Item* item) except -1
    cdef int give_back(self, Item* item) except -1
    cdef int mark_in_doubt(self, Item* item) except -1
    cdef int detach_group(self, Item* item) except -1
    cdef int rebind(self, Item* item, ConsumerState* holder) except -1
    cdef Item* rewrite(self, Item* item, octets data, uint32_t size) except NULL
    cdef int put_aside(self, Item* item) except -1
    cdef int enter_again(self, Item* item) except -1
    cdef int drop(self, Item* item) except -1
    cdef int _clear(self, Item* item) except -1
    cdef void _uncount_aside(self, Item* item) noexcept
    cdef int restore(self) except -1
    cdef void _bring_back(self, Item* item) noexcept
    cdef void _leave(self, Item* item) noexcept
    cdef uint32_t _gather(self, Item** items, bint grouped) noexcept
    cdef void forget_times(self) noexcept
    cdef void _thin_expiries(self) noexcept
    cdef uint64_t bytes_in_memory(self) noexcept
    cdef uint32_t forget_page(self, list numbers) except? 0

    # Says whether `restore` has anything to do.
    cdef inline bint is_stirred(self) noexcept:
        return self.returned_count > 0 or not is_empty(&self.groups.freed)
