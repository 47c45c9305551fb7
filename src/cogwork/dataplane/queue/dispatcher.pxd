cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cogwork.dataplane.queue.chain cimport Node
from cogwork.dataplane.queue.consumers cimport Consumer, Round
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.queue.settlement cimport Settlement
from cogwork.dataplane.queue.ready cimport Ready
from cogwork.dataplane.queue.item_table cimport ItemTable
from cogwork.dataplane.transport.shipment cimport Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport Group, Item


@cython.final
cdef class Dispatcher:
    cdef Settlement settlement
    cdef ItemTable items
    cdef Ready ready
    cdef uint32_t shard
    cdef dict consumers
    cdef list browsers
    cdef list departed
    cdef dict by_serial
    cdef dict kept
    cdef Consumer last_held
    cdef Round round
    cdef Round far
    # The rounds of all priorities, the highest first; None while no consumer has one.
    cdef list ranked
    cdef Round round_for(self, ConsumerEnd link, bint is_far)
    cdef int _rank(self, Round added) except -1
    cdef int _offer_by_rank(self, Item* item) except -1
    cdef int _offer_to(self, Round round, Item* item) except -1
    cdef int _serve_round(self, Round round) except -1
    cdef uint32_t next_serial
    cdef bint is_unfinished
    cdef uint64_t sent
    cdef uint64_t redelivered
    cdef int add(self, ConsumerEnd link, bint marks_received, bint is_browser, bint is_far) except -1
    cdef int remove(self, ConsumerEnd link) except -1
    cdef Consumer _take_out(self, ConsumerEnd link)
    cdef int end(self, ConsumerEnd link, Verdict* verdict, bint is_named) except -1
    cdef uint32_t keep(self, ConsumerEnd link) except? 0
    cdef int end_kept(self, uint32_t serial, Verdict* verdict, bint is_named) except -1
    cdef int _end_attempts(self, Consumer consumer, Verdict* verdict, bint is_named) except -1
    cdef int on_ready(self, ConsumerEnd link) except -1
    cdef int hold(self, uint32_t serial) except -1
    cdef int offer(self, Item* item) except -1
    cdef int serve(self) except -1
    cdef int serve_one(self, Consumer consumer) except -1
    cdef int drop_leases(self, ConsumerEnd link) except -1
    cdef int _drop_leases(self, Consumer consumer) except -1
    cdef uint32_t serial_of(self, ConsumerEnd link) except? 0
    cdef list holders(self)
    cdef int take_back(self, uint32_t serial) except -1
    cdef set leased_to(self)
    cdef int sweep_departed(self) except -1
    cdef int resume(self, ConsumerEnd link, uint64_t number, uint32_t attempt, bint is_handed, bint is_there) except -1
    cdef Item* next_for(self, Consumer consumer) except? NULL
    cdef Item* next_by_cursor(self, Consumer consumer) except? NULL
    cdef Item* await_page(self, Item* stand) except? NULL
    cdef Item* go_on_later(self, Consumer consumer) except? NULL
    cdef Item* next_parked(self, Consumer consumer) except? NULL
    cdef bint suits(self, Item* item, Consumer consumer) except -1
    cdef int deliver(self, Item* item, Consumer consumer) except -1
    cdef int ship(self, Item* item, Consumer consumer, Shipment* s) except -1
    cdef int resend(self, Consumer consumer) except -1
    cdef int browse(self, Consumer browser) except -1
