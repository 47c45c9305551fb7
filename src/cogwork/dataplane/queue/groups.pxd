cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.queue.chain cimport Node
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport Group, ConsumerState, Item


@cython.final
cdef class Groups:
    cdef Group** buckets
    cdef uint32_t size
    cdef Node freed
    cdef readonly uint32_t count
    cdef readonly uint32_t parked_count
    cdef bint join(self, Item* item) except -1
    cdef void quit(self, Group* group) noexcept
    cdef void park(self, Item* item, Node* following) noexcept
    cdef void unpark(self, Item* item) noexcept
    cdef void take(self, Item* item, ConsumerState* holder) noexcept
    cdef void bring_back(self, Group* group) noexcept
    cdef void rebind(self, Group* group, ConsumerState* holder) noexcept
    cdef void let_go(self, Group* group) noexcept
    cdef void abandon(self, ConsumerState* holder) noexcept
    cdef uint32_t freed_count(self) noexcept
    cdef void restore(self, Item** items, uint32_t count) noexcept
    cdef uint32_t promote(self, Item** items, uint32_t count) noexcept
    cdef void _hold(self, Group* group, ConsumerState* holder) noexcept
    cdef Group* _find(self, uint64_t key) except NULL
    cdef int _grow(self) except -1
