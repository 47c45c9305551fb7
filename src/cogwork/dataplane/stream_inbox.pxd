from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.inbox cimport Inbox
from cogwork.dataplane.messages cimport Message
from cogwork.dataplane.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef class Record(Message):
    cdef int64_t own_number(self, const char* key, int64_t size) except -2


cdef class StreamInbox(Inbox):
    cdef Record last_arrived
    cdef object told_offset
    cdef uint64_t arrived
    cdef uint64_t handed
    cdef uint64_t caught_up_after
    cdef bint is_told
    cdef public object on_caught_up
    cdef int look(self) except -1
