cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.queue.commits cimport Commits
from cogwork.dataplane.queue.dead_letter_dedup cimport DeadLetterDedup
from cogwork.dataplane.queue.forward_dedup cimport ForwardDedup
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class KeptItem:
    cdef readonly uint64_t number
    cdef readonly uint64_t sequence
    cdef readonly uint64_t stored_ms
    cdef readonly uint64_t expires_ms
    cdef readonly uint64_t due_ms
    cdef readonly uint32_t format
    cdef readonly uint32_t attempt
    cdef readonly uint32_t failures
    cdef readonly uint32_t acquisitions
    cdef readonly int priority
    cdef readonly bint ages
    cdef readonly bint is_out
    cdef readonly bint is_unrecorded
    cdef readonly bint is_recovered
    cdef readonly str reason
    cdef readonly bytes error
    cdef readonly uint64_t died_ms
    cdef public bytes message
    # Its message lies in a page file, and so does its place where it keeps that.
    cdef readonly bint is_elsewhere
    cdef readonly bint keeps_place
    cdef bint was_put_again
    # Stands for items that stay on disk: the first one's place is its own.
    cdef public object page
    cdef bint is_as_paged(self, uint64_t place, uint32_t size) except -1
    cdef int complete(self, octets put, uint64_t place, uint32_t size) except -1


@cython.final
cdef class PagedRange:
    cdef readonly uint64_t file
    cdef readonly uint32_t first
    cdef readonly uint32_t count
    cdef readonly uint64_t place


@cython.final
cdef class JournalImage:
    cdef readonly dict items
    cdef readonly Commits commits
    cdef readonly DeadLetterDedup dead_letter_dedup
    cdef readonly ForwardDedup forwards
    cdef dict sightings
    cdef Py_ssize_t seen_max
    cdef public uint32_t birth_base
    cdef readonly uint64_t sequence_max
    cdef readonly uint64_t held_partitions
    cdef public uint32_t attempt_base
    cdef readonly bint has_records
    cdef public bint is_audited
    cdef readonly list unreported
    cdef dict marks
    cdef readonly list pages
    cdef readonly set gone
    cdef KeptItem add_elsewhere(self, uint64_t number)
    cdef KeptItem _find(self, uint64_t number)
    cdef KeptItem _forget(self, uint64_t number)
    cdef int _commit(self, octets p, uint32_t at_s) except -1
    cdef int _settle(self, uint64_t number, uint32_t attempt, int outcome) except -1
    cdef int _done(self, uint64_t number) except -1
    cdef int _tell(self, uint64_t mark) except -1
    cdef int64_t _apply_one(self, octets p, int64_t size) except -1
    cdef int64_t _note_paged(self, octets p) except -1
    cdef int64_t _apply_mark(self, octets p, int64_t size) except -1
    cdef int _recover(self, uint64_t at_ms) except -1
    cdef int _put(self, octets p, uint32_t size) except -1
    cdef int64_t _read_dead(self, octets p, int64_t head, int64_t size) except -1
    cdef int _note_seen(self, KeptItem item) except -1
    cdef int _saw(self, uint64_t seen_ms, bytes message_id) except -1
