cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.queue.journal cimport Journal
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.queue.journal_image cimport JournalImage, KeptItem, PagedRange
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.pages cimport Page, PagedItems
from cogwork.dataplane.queue.store cimport Store
from cogwork.dataplane.queue.stored cimport ConsumerState, Item


@cython.final
cdef class PageFile:
    cdef object source
    cdef PagedItems items
    cdef readonly int level
    cdef list blocks
    # Of the block that was read last: which, its octets, and where one of its items begins.
    cdef uint32_t block
    cdef bytes data
    cdef uint32_t at
    cdef int64_t offset
    cdef octets put_of(self, uint32_t block, uint32_t at) except NULL


@cython.final
cdef class PagesRestoration:
    cdef Store store
    cdef JournalImage image
    cdef object files
    cdef dict opened
    cdef list found
    cdef double wall_offset_s
    cdef double now_s
    cdef PageFile _open(self, uint64_t number)
    cdef int _take_range(self, PagedRange paged) except -1
    cdef bint _take_one(self, PageFile file, uint32_t block, uint32_t at, uint64_t place) except -1
    cdef KeptItem _begin(self, PageFile file, uint64_t number, uint32_t block, uint32_t at, uint64_t place)
    cdef list _parted(self, KeptItem kept, list places)


@cython.final
cdef class Restoration:
    cdef Store store
    cdef ConsumerState absent_consumer
    cdef double wall_offset_s
    cdef double now_s
    cdef list recovered
    cdef int _restore_page(self, Page page) except -1
    cdef int _number_on(self, JournalImage image) except -1
    cdef int _restore(self, KeptItem kept, bint is_delayed) except -1
    cdef int _restore_dead(self, Item* item, KeptItem kept) except -1
    cdef int _mark_in_doubt(self) except -1
    cdef int _end_recovered(self) except -1
    cdef int _stand_back(self) except -1
    cdef double _when(self, KeptItem kept, uint64_t wall_ms) noexcept
    cdef double _at(self, uint64_t wall_ms) noexcept


@cython.final
cdef class Checkpoint:
    cdef Store store
    cdef Journal scratch
    cdef list seen
    cdef int64_t seen_at
    cdef uint32_t slot
    cdef readonly bint is_finished
    cdef bint _has_room(self, uint64_t size) except -1
    cdef int _write(self, Item* item) except -1
