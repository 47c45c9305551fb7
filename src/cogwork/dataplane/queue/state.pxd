from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.addresses.port cimport Port
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.queue.journal cimport Journal
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.envelope cimport is_kept_durable
from cogwork.dataplane.queue.packer cimport Packer, describe
from cogwork.dataplane.queue.item_table cimport ItemTable
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport ACQUIRED, AGES, Item
from cogwork.dataplane.queue.audit_events cimport AuditEvents


# Of an item that goes out before that is durable, each attempt of such a number waits for it: so a
# restart, which goes on ATTEMPTS_JUMP further, is beyond all that were made.
cdef enum:
    ATTEMPTS_AHEAD = 1024
    ATTEMPTS_JUMP = 4096

# What members have done whose records are lost is bounded by nothing: so a recovery goes on that
# much further. Items wait for their next attempt with a multiple of it, which nobody was handed.
cdef enum:
    RECOVERY_JUMP = 1048576


cdef class QueueState(Terminus):
    cdef readonly Core core
    cdef readonly ItemTable items
    cdef public Journal journal
    cdef public AuditEvents audit_events
    cdef public object handler
    cdef public double ttl_s
    cdef public uint32_t maximum_length
    cdef public uint64_t maximum_bytes
    # Whether these count what is out at a consumer: where publishers wait, they wait for all of it.
    cdef bint counts_out
    # Whether what there is no room for any more has the head dropped.
    cdef bint drops_head
    cdef public uint32_t maximum_delivery_count
    cdef public uint32_t maximum_acquisitions
    cdef public bint keeps_dead
    cdef Port wakeup
    cdef Packer packer
    cdef double ticked_s
    cdef list exceptions
    cdef dict unsent
    cdef dict pending_dead_letters
    cdef dict exclusions
    # Items whose newest attempt was given to no consumer: it was made for a way to another
    # container.
    cdef set unproven
    cdef bint has_refused
    cdef public bint waits_for_all
    cdef public bint delivers_ahead
    cdef public uint32_t attempt_base
    # Until this barrier is released, the base may not be durable.
    cdef uint64_t base_barrier
    cdef readonly uint64_t expired
    cdef readonly uint64_t exceeded
    cdef readonly uint64_t overacquired
    cdef readonly uint64_t dropped
    cdef readonly uint64_t removed
    cdef int schedule(self) except -1
    cdef double now(self) noexcept
    cdef int make_room(self) except -1
    cdef int do_without(self, octets data, uint32_t size, uint32_t format) except -1
    cdef int exclude(self, Item* item) except -1
    cdef int fail(self, Item* item) except -1
    cdef int release(self, Item* item) except -1
    cdef int give_back(self, Item* item) except -1
    cdef int drop_beyond(self) except -1
    cdef int drop_one(self, Item* item) except -1
    cdef int expire(self, double now_s) except -1
    cdef int expire_one(self, Item* item) except -1
    cdef int dead_letter(self, Item* item, str reason, bytes error) except -1
    cdef int add_pending(self, Item* item, str reason, bytes error, uint64_t died_ms) except -1
    cdef Item* put_aside_as(self, uint64_t number) noexcept
    cdef int add_exception(self, str reason, octets data, uint32_t size, uint32_t format, bytes error, uint32_t failures) except -1
    cdef int remove(self, Item* item) except -1
    cdef int forget(self, Item* item) except -1
    cdef int discard(self, Item* item) except -1
    cdef int drop_all(self) except -1
    cdef Item* next_ready(self) except? NULL
    cdef int part_with(self, Item* item) except -1
    cdef bytes message_of(self, Item* item)
    cdef object _facts(self, Item* item)


# Describes an item as it is to be sent now.
cdef inline int pack(QueueState state, Item* item, Shipment* s) except -1:
    describe(item, s)
    if item.flags & (ACQUIRED | AGES):
        return state.packer.refresh(item, state.now(), s)
    return 0

# Says whether what is told of an item waits until it is on disk.
cdef inline bint is_awaited(QueueState state, const Item* item) noexcept:
    return state.waits_for_all or is_kept_durable(item.data, item.size, item.format)

# Says whether changes cannot be written down now: nothing is to be taken or given.
cdef inline bint is_shut(QueueState state) noexcept:
    return state.journal is not None and not state.journal.is_open

# Says whether there is room on the disk for more.
cdef inline bint can_write(Journal journal) noexcept:
    return journal.is_open and not journal.is_low and not journal.is_failed

# Says whether as much is on its way elsewhere as the queue may hold.
cdef inline bint is_choked(QueueState state) noexcept:
    if state.maximum_length and state.items.aside_count >= state.maximum_length:
        return True
    return state.maximum_bytes != 0 and state.items.aside_bytes >= state.maximum_bytes

# Says whether no dead letter goes in any more, either.
cdef inline bint is_crammed(QueueState state) noexcept:
    cdef ItemTable items = state.items
    if state.maximum_length and items.depth + items.aside_count >= 3 * state.maximum_length:
        return True
    return state.maximum_bytes != 0 and items.size_bytes + items.aside_bytes >= 3 * state.maximum_bytes

# Count the items that the bounds are for, and their octets.
cdef inline uint32_t bounded_count(QueueState state) noexcept:
    return state.items.depth - (0 if state.counts_out else state.items.out_count)

cdef inline uint64_t bounded_bytes(QueueState state) noexcept:
    return state.items.size_bytes - (0 if state.counts_out else state.items.out_bytes)

# Says whether there is more than there may be, since a bound was lowered, or items came back.
cdef inline bint is_beyond(QueueState state) noexcept:
    if state.maximum_length and bounded_count(state) > state.maximum_length:
        return True
    return state.maximum_bytes != 0 and bounded_bytes(state) > state.maximum_bytes

cdef inline bint is_full(QueueState state) noexcept:
    if state.maximum_length and bounded_count(state) >= state.maximum_length:
        return True
    return state.maximum_bytes != 0 and bounded_bytes(state) >= state.maximum_bytes
