cimport cython
from libc.stdint cimport int64_t, uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

cdef class Dispatch
cdef class Batch


cdef class Shipper(Terminus):
    cdef object create_future
    cdef object explain
    cdef list failed
    # Whether what waits here gets older: its ttl is lessened, and what is over is not sent.
    cdef bint ages
    cdef int ship(self, Dispatch dispatch, uint64_t token, bytes data) except -1
    cdef Py_ssize_t ship_batch(self, Batch batch) except -1
    cdef int withdraw(self, Dispatch dispatch) except -1
    cdef int release_waiters(self) except -1
    cdef bint is_over(self, Dispatch dispatch, bytes data) noexcept


# Something that was given to an outbox: it knows what of it is still to be sent.
cdef class Dispatch:
    cdef Shipper outbox
    cdef uint64_t first_token
    cdef bint settled
    cdef readonly bint queued
    # When it was posted, where it did not leave at once; 0 else.
    cdef double since_s
    cdef object waiter
    cdef bint is_watched
    cdef bint is_left
    cdef readonly object failure
    cdef public object on_end
    cdef int mark_in_doubt(self, uint64_t token) except -1
    cdef int advance(self) except -1
    cdef int resolved(self, uint64_t token, int code, bytes state) except -1
    cdef int lost(self, uint64_t token) except -1
    cdef int note_failure(self) except -1
    cdef int fail(self, object failure) except -1
    cdef int64_t unsent(self) noexcept
    cdef int wake(self) except -1


@cython.final
cdef class Post(Dispatch):
    cdef bytes data
    cdef readonly int code
    cdef readonly bint was_sent
    cdef readonly bint expired
    cdef bint is_put_off
    cdef double in_doubt_since_s
    cdef double pause_s
    cdef bytes state
    cdef public object on_error
    cdef public object on_done


@cython.final
cdef class Batch(Dispatch):
    cdef list messages
    cdef bytearray codes
    cdef dict states
    cdef set in_doubt
    cdef set repeated
    cdef Post repeat(self, uint64_t token, uint64_t as_token)
    cdef Py_ssize_t at
    cdef Py_ssize_t waiting
    cdef int accept(self, uint64_t token, Py_ssize_t count) except -1
    cdef int expire(self, uint64_t token) except -1
    cdef int finished(self) except -1
