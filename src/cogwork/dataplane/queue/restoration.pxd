cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.queue.journal cimport Journal
from cogwork.dataplane.queue.journal_image cimport JournalImage, KeptItem
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.store cimport Store
from cogwork.dataplane.queue.stored cimport ConsumerState, Item


@cython.final
cdef class Restoration:
    cdef Store store
    cdef ConsumerState absent_consumer
    cdef double wall_offset_s
    cdef double now_s
    cdef list recovered
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
