from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.client.claims cimport Claim
from cogwork.dataplane.client.inbox cimport Inbox
from cogwork.dataplane.client.marks cimport Marks
from cogwork.dataplane.client.pace cimport Pace
from cogwork.dataplane.message.messages cimport Message
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.transport.wire cimport Wire
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What the client knows of an item: not handed over; handed over; accepted, but not yet confirmed;
# settled for good; taken from us, as somebody else has it; taken from us, and nothing more is known.
cdef enum:
    WAITING = 0
    HELD = 1
    CLAIMED = 2
    SETTLED = 3
    STALE = 4
    IN_DOUBT = 5

cdef class Item
cdef class ItemInbox


cdef class Item(Message):
    cdef ItemInbox inbox
    cdef readonly bytes delivery_tag
    cdef uint32_t delivery_id
    cdef uint32_t epoch
    cdef int phase
    cdef int code
    cdef bytes state
    cdef Claim claim


cdef class ItemInbox(Inbox):
    cdef readonly bint marks_received
    cdef readonly Py_ssize_t claimed
    cdef uint32_t epoch
    cdef readonly Py_ssize_t marked
    cdef readonly double silence_max_s
    cdef Marks marks
    cdef uint64_t marks_end
    cdef Pace pace
    cdef bint has_rested
    cdef bint is_asked
    cdef double looked_s
    cdef dict open_items
    cdef dict earlier
    cdef object on_late
    cdef list late
    cdef list claim_waiters
    cdef Py_ssize_t mark(self, Py_ssize_t limit) except -2
    cdef int write_marks(self, Py_ssize_t count) except -1
    cdef bint have_marks_left(self) except -1
    cdef bint is_in_question(self, Wire wire, double now_s) except -1
    cdef int settle(self, Item item, int code, bytes state, Claim claim) except -1
    cdef int say(self, Item item) except -1
    cdef int answer(self, Item item, int phase) except -1
    cdef list take_open(self, uint32_t first, uint32_t last)
    cdef int revoke_waiting(self, uint32_t first, uint32_t last) except -1
