cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.queue.chain cimport Node, link_before
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport PRIORITY_WORDS, READY, Item

# How far a selective consumer or a browser has looked, for each priority.
cdef struct Cursor:
    Item** at
    uint64_t* seen
    bint rewinds


@cython.final
cdef class Ready:
    cdef Node* rows
    cdef int levels
    # A bit for each priority of which anything is ready.
    cdef uint64_t[PRIORITY_WORDS] occupied
    # With those that lie on disk, for whom others stand.
    cdef readonly uint32_t count
    # Pages that are being fetched, or of which nothing has been given out yet.
    cdef uint32_t pages_ahead
    cdef Cursor** cursors
    cdef uint32_t cursors_count
    cdef int set_levels(self, int levels) except -1
    cdef int below(self, int priority) noexcept
    cdef bint has_any(self, int priority) noexcept
    cdef void leave(self, Item* item) noexcept
    cdef void merge(self, Item** items, uint32_t count) noexcept
    cdef Item* front(self) noexcept
    cdef Item* oldest(self) noexcept
    cdef Item* after(self, Item* item) noexcept
    cdef int add_cursor(self, Cursor* cursor) except -1
    cdef void remove_cursor(self, Cursor* cursor) noexcept
    cdef Item* next_unseen(self, Cursor* cursor) noexcept
    cdef void saw(self, Cursor* cursor, Item* item) noexcept
    cdef void _insert(self, Item* item, Node* following) noexcept

    # Places an item behind all others of its priority.
    cdef inline void append(self, Item* item) noexcept:
        self.insert_before(item, &self.rows[item.priority])

    cdef inline void insert_before(self, Item* item, Node* following) noexcept:
        item.state = READY
        link_before(&item.node, following)
        self.occupied[item.priority >> 6] |= <uint64_t>1 << (item.priority & 63)
        self.count += 1
