from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.client.inbox cimport Inbox
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.client.stream_records cimport RecordBuffer


cdef class StreamInbox(Inbox):
    cdef RecordBuffer buffer
    cdef list spares
    cdef Py_ssize_t taken
    cdef int64_t following
    cdef object told_offset
    cdef uint64_t arrived
    cdef uint64_t handed
    cdef uint64_t caught_up_after
    cdef bint is_told
    cdef public object on_caught_up
    cdef public object on_placed
    cdef int receive(self, Piece* piece, bint settled) except -1
    cdef int note_marker(self, octets data) except -1
    cdef int clear(self) except -1
    cdef RecordBuffer fresh_buffer(self)
    cdef int look(self) except -1

# Says whether a message is what nearly all records are, annotations and one data section.
cdef inline bint is_common_record(octets p, int64_t size) noexcept nogil:
    cdef int64_t at
    if size < 12 or p[0] != 0x00 or p[1] != 0x53 or p[2] != 0x72 or p[3] != 0xC1 or p[4] == 0:
        return False
    at = 5 + p[4]
    return (
        at + 5 <= size
        and p[at] == 0x00
        and p[at + 1] == 0x53
        and p[at + 2] == 0x75
        and p[at + 3] == 0xA0
        and at + 5 + p[at + 4] == size
    )
