from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.client.dispatches cimport Batch, Dispatch, Post, Shipper
from cogwork.dataplane.client.in_flight cimport DispatchesInFlight
from cogwork.dataplane.client.flusher cimport Flusher
from cogwork.dataplane.message.messages cimport Message
from cogwork.dataplane.transport.outgoing cimport OutgoingLink
from cogwork.dataplane.transport.shipment cimport Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef class Outbox(Shipper):
    cdef readonly Core core
    cdef readonly OutgoingLink link
    cdef readonly object failure
    cdef public bint resends
    cdef public bint is_durable
    cdef public uint64_t size_bytes_max
    cdef Flusher flusher
    cdef object backlog
    cdef readonly int64_t backlog_count
    cdef DispatchesInFlight sent
    cdef uint64_t next_token
    cdef bint pumping
    cdef bint stopping
    cdef list again
    cdef public object resend_later
    cdef list in_doubt
    cdef list waiters
    cdef bytes checked(self, object body)
    cdef bytes durably(self, Message message)
    cdef bytes fitting(self, bytes data)
    cdef bytes aged(self, Dispatch dispatch, bytes data)
    cdef Batch post_each(self, list messages, bint settled)
    cdef int pump(self) except -1
    cdef int submit(self, Dispatch dispatch) except -1
    cdef object waiter(self)
    cdef int release_waiters(self) except -1
    cdef int put_back(self, Dispatch dispatch) except -1
    cdef Dispatch landed(self, uint64_t token)
    cdef bint _may_resend(self, Dispatch dispatch, Verdict* verdict) except -1
    cdef int _put_off(self, Post post) except -1
    cdef int64_t size_of(self, Dispatch dispatch) noexcept
    cdef int accept_run(self, uint64_t token, uint32_t count) except -1
