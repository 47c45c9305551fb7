cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.basic cimport BASIC_FORMAT
from cogwork.dataplane.message.envelope cimport Envelope
from cogwork.dataplane.queue.commits cimport Commits
from cogwork.dataplane.queue.dead_letter_dedup cimport DeadLetterDedup
from cogwork.dataplane.queue.dispatcher cimport Dispatcher
from cogwork.dataplane.queue.forward_dedup cimport ForwardDedup
from cogwork.dataplane.queue.journal cimport Journal
from cogwork.dataplane.queue.pages cimport Page
from cogwork.dataplane.queue.recent cimport RecentIds
from cogwork.dataplane.queue.settlement cimport Settlement
from cogwork.dataplane.queue.stored cimport Item
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.transport.shipment cimport Piece, Shipment, Verdict

# What a full store does with one message more.
cdef enum:
    FULL_BLOCKS = 0
    FULL_DROPS_OLDEST = 1
    FULL_REJECTS = 2


@cython.final
cdef class Store(Settlement):
    cdef readonly uint32_t shard
    cdef public AddressEntry inlet
    cdef public AddressEntry near_inlet
    cdef Dispatcher dispatcher
    cdef int full_policy
    # Whether what a full store rejects goes to the dead-letter address, too.
    cdef bint dead_letters_refused
    cdef public uint64_t ceiling_bytes
    cdef int wants
    cdef uint8_t[256] levels
    cdef DeadLetterDedup dead_letter_dedup
    # Which messages of other containers have come; None while none has.
    cdef ForwardDedup forwards
    # The tag of the one that is being taken; NULL for any other message.
    cdef octets forward_tag
    cdef RecentIds recent
    cdef tuple recent_limits
    cdef tuple history
    cdef readonly uint64_t stored
    cdef readonly uint64_t refused
    cdef readonly uint64_t malformed
    cdef readonly uint64_t duplicates
    cdef readonly uint64_t durable_in_memory
    cdef public object on_durable
    # Whether what was taken, and has no answer yet, waits for the journal.
    cdef bint is_owed
    cdef bint is_kept_waiting(self) noexcept
    cdef bint is_still(self) noexcept
    cdef bint is_above_ceiling(self) noexcept
    cdef bint has_room(self, uint32_t size) noexcept
    cdef bint goes_in_circles(self, Shipment* s) except -1
    cdef bint cannot_write(self, Shipment* s) except -1
    cdef int reply(self, Shipment* s, int code, bytes state) except -1
    cdef int hold_answer(self, Terminus source) except -1
    cdef int note_durable(self) except -1
    cdef int receive(self, Shipment* s) except -1
    cdef int take_forwarded(self, Shipment* s) except -1
    cdef int note_forwarded(self) except -1
    cdef int answer_run(self, Shipment* s, uint64_t token, uint32_t count) except -1
    cdef int admit(self, Shipment* s, Envelope* e) except -1
    cdef int offer_once(self, Item* item) except -1
    cdef Item* make(self, Shipment* s, Envelope* e) except NULL
    cdef int place(self, Item* item, Envelope* e) except -1

    # Says at which level a message stands: AMQP 1.0 has its default priority in the middle of all
    # levels; AMQP 0-9-1 counts them from 0, and what is above the last one stands there.
    cdef inline uint8_t level_of(self, uint8_t priority, uint32_t format) noexcept:
        if format == BASIC_FORMAT:
            return min(priority, self.levels[255])
        return self.levels[priority]
