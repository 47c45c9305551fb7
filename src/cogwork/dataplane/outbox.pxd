cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.outgoing cimport OutgoingLink
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.flusher cimport Flusher
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef class Outbox
cdef class Dispatch
cdef class Post
cdef class Batch


# Something that was given to an outbox: it knows what of it is still to be sent.
cdef class Dispatch:
    cdef Outbox outbox
    cdef uint64_t first_token
    cdef bint settled
    cdef readonly bint queued
    cdef object waiter
    cdef readonly object failure
    cdef int advance(self) except -1
    cdef int resolved(self, uint64_t token, int code, bytes state) except -1
    cdef int lost(self, uint64_t token) except -1
    cdef int fail(self, object failure) except -1
    cdef int64_t unsent(self) noexcept
    cdef int wake(self) except -1


@cython.final
cdef class Post(Dispatch):
    cdef bytes data
    cdef readonly int code
    cdef bytes state
    cdef bint is_watched
    cdef public object on_error
    cdef public object on_done


@cython.final
cdef class Batch(Dispatch):
    cdef list messages
    cdef bytearray codes
    cdef dict states
    cdef Py_ssize_t at
    cdef Py_ssize_t waiting


cdef class Outbox(Terminus):
    cdef readonly Core core
    cdef readonly OutgoingLink link
    cdef readonly object failure
    cdef public bint resends
    cdef public uint64_t size_bytes_max
    cdef object create_future
    cdef object explain
    cdef Flusher flusher
    cdef object backlog
    cdef readonly int64_t backlog_count
    cdef dict sent
    cdef uint64_t next_token
    cdef bint pumping
    cdef bint stopping
    cdef list again
    cdef list waiters
    cdef list failed
    cdef bytes checked(self, object body)
    cdef bytes fitting(self, bytes data)
    cdef Batch post_each(self, list messages, bint settled)
    cdef int pump(self) except -1
    cdef int ship(self, Dispatch dispatch, uint64_t token, bytes data) except -1
    cdef int submit(self, Dispatch dispatch) except -1
    cdef object waiter(self)
    cdef int release_waiters(self) except -1
    cdef int put_back(self, Dispatch dispatch) except -1
    cdef int withdraw(self, Dispatch dispatch) except -1
