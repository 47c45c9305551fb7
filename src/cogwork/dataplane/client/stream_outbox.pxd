from libc.stdint cimport int64_t, uint64_t

from cogwork.dataplane.client.dispatches cimport Dispatch
from cogwork.dataplane.client.outbox cimport Outbox
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef class StreamOutbox(Outbox):
    cdef readonly bytes producer
    cdef readonly uint64_t sequence
    cdef readonly bint is_paused
    cdef public double patience_s
    cdef object call_later
    cdef object new_producer
    cdef bint renews
    cdef double pause_s
    cdef double failing_since_s
    cdef bint is_failing
    cdef double served_s
    cdef bint is_watching
    cdef set in_doubt
    cdef bint is_kept
    cdef object reason
    cdef int note_reason(self, int code, bytes state) except -1
    cdef int give_in(self) except -1
    cdef int look_further(self) except -1
    cdef bytes stamped(self, bytes data, bint is_plain)
    cdef int watch_backlog(self) except -1
    cdef int tell(self, Dispatch dispatch, uint64_t token, bytes state) except -1
    cdef int watch(self, double after_s) except -1
    cdef int starve(self) except -1
    cdef int give_back(self, Dispatch dispatch, bytes state) except -1
    cdef int hold(self, uint64_t token, Dispatch dispatch) except -1
    cdef int renew(self) except -1
    cdef int restamp(self, Dispatch dispatch) except -1
