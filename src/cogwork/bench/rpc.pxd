"""The two ends of request/reply."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.bench.consumer cimport Consumer
from cogwork.bench.histogram cimport Histogram
from cogwork.bench.layout cimport Fields, octet
from cogwork.bench.producer cimport Producer

cdef class Requester(Producer):
    cdef uint64_t _depth
    cdef int64_t _reply_handle
    cdef int64_t _peer_reply_handle
    cdef uint32_t _reply_count
    cdef uint32_t _reply_credit
    cdef uint32_t _used
    cdef readonly Histogram latency
    cdef readonly uint64_t answered
    cdef readonly uint64_t reply_digest

    cdef void _grant_replies(self) noexcept nogil

cdef class Replier(Consumer):
    cdef octet *_held
    cdef Py_ssize_t _held_end
    cdef bytes _head_octets
    cdef octet *_head
    cdef Py_ssize_t _head_size
    cdef Py_ssize_t _id_at
    cdef Py_ssize_t _tag_at
    cdef int64_t _reply_handle
    cdef int64_t _peer_reply_handle
    cdef int64_t _reply_credit
    cdef uint32_t _reply_count
    cdef readonly uint64_t replied

    cdef octet *_put_properties(self, octet *at, Fields *request) noexcept nogil
