cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.queue.chain cimport Node
from cogwork.dataplane.queue.journal cimport Journal
from cogwork.dataplane.queue.ready cimport Ready
from cogwork.dataplane.queue.slots cimport Slots
from cogwork.dataplane.queue.stored cimport PAGED, PRIORITIES_MAX, Item
from cogwork.dataplane.queue.timers cimport TimerHeap
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What stays in memory of an item that lies on disk: its place counts from that of its file's first.
cdef struct PagedItem:
    uint64_t number
    uint32_t place
    uint32_t size

# Octets before an item in a page: who sent it.
cdef enum:
    ORIGIN_BYTES = 4
    INDEX_BYTES = 20

# Pages that are fetched before anybody comes to them: they bridge some 60 ms at 100 MB/s.
cdef enum:
    AHEAD = 6


# The items of one file, which its pages share.
@cython.final
cdef class PagedItems:
    cdef PagedItem* items
    cdef readonly uint32_t count
    cdef int allot(self, uint32_t count) except -1


# A block of a file as it is being made.
@cython.final
cdef class Block:
    cdef readonly uint32_t first
    cdef readonly uint32_t count
    cdef readonly uint64_t stored_ms
    cdef readonly uint64_t expires_ms
    cdef readonly bytes data


@cython.final
cdef class Page:
    cdef Item* stand
    cdef PagedItems items
    # Which of the file's items the block has, and which of them stand here.
    cdef uint32_t block_first
    cdef readonly uint32_t first
    cdef readonly uint32_t count
    cdef readonly uint64_t file
    cdef readonly uint32_t block
    cdef uint64_t id
    cdef uint64_t sequence_base
    cdef int level
    cdef double expires_s
    cdef double wall_offset_s
    # When a restart found it, by the monotonic clock; 0 in the life in which it was written.
    cdef double restored_s
    cdef readonly bint is_wanted
    cdef uint64_t first_sequence(self) noexcept
    cdef uint64_t last_sequence(self) noexcept
    cdef uint64_t size_bytes(self) noexcept


@cython.final
cdef class Pages:
    cdef Slots slots
    cdef Ready ready
    cdef TimerHeap expiries
    cdef TimerHeap page_expiries
    cdef dict by_id
    # Of each level, those whose items are still to be fetched, in order.
    cdef dict rows
    # Those that are being fetched.
    cdef list wanted
    # How many pages each file has, and the files that have none any more.
    cdef dict uses
    cdef readonly list released
    cdef uint64_t last_id
    cdef readonly uint32_t count
    cdef readonly uint64_t size_bytes
    cdef readonly bint is_writing
    cdef public object on_wanted
    cdef public object read
    # What is being written.
    cdef PagedItems run
    cdef list blocks
    cdef readonly int run_level
    cdef uint64_t run_base
    cdef double run_offset_s
    cdef bint _find_run(self, uint64_t size_bytes, Item** first, Item** last) noexcept
    cdef bint _find_run_at(self, int level, uint64_t size_bytes, Item** first, Item** last) noexcept
    cdef int _write_run(self, Journal journal, Item* first, Item* last) except -1
    cdef Page _begin(self, uint64_t file, uint32_t block, uint32_t at, Item* following)
    cdef int _note(self, Page page) except -1
    cdef int _end_run(self) except -1
    cdef int _settle_block(self, uint64_t file, uint32_t number, Block block, Journal journal) except -1
    cdef int _end_page(self, Page page, Journal journal) except -1
    cdef int want(self, Item* stand) except -1
    cdef int _want(self, Page page) except -1
    cdef int top_up(self) except -1
    cdef Item* fetch(self, Item* stand) except NULL
    cdef int part(self, int level, uint64_t sequence) except -1
    cdef int _part(self, Page page, uint32_t count) except -1
    cdef int _bring(self, Page page, octets p, int64_t size) except -1
    cdef Item* _bring_one(self, Page page, octets p, PagedItem* known) except NULL
    cdef int _stand(self, Page page, Node* following) except -1
    cdef int _leave(self, Page page) except -1
    cdef int want_expired(self, double now_s) except -1
    cdef list purge(self)
    cdef int clear(self) except -1
    cdef int add(self, Page page, uint64_t first_sequence) except -1
    cdef uint32_t count_of(self, Item* stand) except? 0
    cdef list in_order(self)
