cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.transport.ends cimport ReceivingEnd
from cogwork.dataplane.transport.delivery cimport Chunk, Delivery
from cogwork.dataplane.transport.delivery_ring cimport DeliveryRing
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.sending cimport SendingEnd
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

# What happens to a multicast's subscriber that is too slow.
cdef enum:
    BLOCK = 0
    DROP_OLDEST = 1
    DETACH = 2


@cython.final
cdef class OutgoingLink(SendingEnd):
    cdef DeliveryRing queue
    # How many at the queue's end the selector has not been asked for; and whether more come so.
    cdef uint32_t unjudged
    cdef bint queues_unjudged
    cdef bint started
    cdef public int policy
    cdef public bint drains_late
    cdef public int64_t backlog_bytes_max
    cdef readonly int64_t backlog_bytes
    cdef readonly double blocked_since_s
    cdef Chunk* cursor
    cdef uint32_t cursor_offset
    cdef uint32_t started_id
    cdef bint overdue
    cdef readonly uint64_t dropped
    # Called with each whole message of a queue; returns what its consumer gets. None: as it is.
    cdef public object annotate
    cdef Delivery* head(self) noexcept
    cdef uint32_t pump_run(self) except? 0xffffffff
    cdef int enqueue(self, Delivery* d) except -1
    cdef int queue_rest(self, Shipment* s, uint32_t sent) except -1
    cdef int push(self, Delivery* d) except -1
    cdef int pump(self) except -1
    cdef bint judge_head(self) except -1
    cdef void _count_unjudged(self) noexcept
    cdef int pump_head(self, Delivery* d) except -1
    cdef int abandon(self, Delivery* d) except -1
    cdef int send_piece(self, Delivery* d, octets data, uint32_t size, bint last) except -1
    cdef int stream(self, Delivery* d, octets data, uint32_t size, bint begun) except -1
    cdef int pop(self) except -1
    cdef int remove_head(self) except -1
    cdef int apply_policy(self, Delivery* d) except -1
    cdef int became_ready(self) except -1
    cdef int finish_drain(self) except -1
    cdef int _end(self, int code, bytes state) except -1
    cdef int _answer(self, uint32_t index, uint32_t generation, uint64_t token, int code) except -1
    cdef int _loss_of(self, Delivery* d) noexcept
    cdef int _drop_head(self) except -1
    cdef object _drop_oldest(self)
    cdef object _forget_queued(self, Delivery* d)
    cdef object _leave(self, Delivery* d)
