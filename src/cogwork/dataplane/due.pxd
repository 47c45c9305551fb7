cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What the ends and wires of a core hold, added up.
cdef struct Totals:
    uint64_t links
    uint64_t unsettled
    uint64_t unsettled_in
    uint64_t partial_bytes
    uint64_t backlog_bytes
    uint64_t unsent_bytes
    uint64_t queued


cdef class Due:
    cdef bint dirty
    cdef bint unscanned
    cdef int end_batch(self) except -1
    cdef int relieve(self) except -1
    cdef int scan_on(self) except -1
    cdef object source_of_work(self)
    cdef int add_to(self, Totals* totals) except -1
