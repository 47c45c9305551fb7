cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from cogwork.dataplane.header cimport Header
from cogwork.dataplane.interest cimport Interest
from cogwork.dataplane.octets cimport octets
from cogwork.dataplane.scan cimport DispositionFields, FlowFields, TransferFields
from cogwork.dataplane.shipment cimport Piece, Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.transfers cimport TransferShape
from cogwork.dataplane.unsettled cimport Sent, UnsettledRing

cdef enum:
    TEMPLATE_MAX_BYTES = 40
    READ_SIZE_BYTES = 262144
    RUN_MAX = 256
    TAIL_ROOM_BYTES = 64
    HEADER_ROOM_BYTES = 96
    CONGESTED_AT_BYTES = 1048576
    SEND_AT_BYTES = 262144
    LOST = 0x01
    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27
    MULTICAST = 0
    CLOSEST = 1
    BALANCED = 2
    BLOCK = 0
    DROP_OLDEST = 1
    DETACH = 2
    KEEP = 0
    SETTLE = 1
    REFUSE = 2

# One frame's payload, waiting until every outlet that still needs it has passed it on.
cdef struct Chunk:
    Chunk* next
    uint32_t size
    uint32_t refs
    uint8_t data[1]

# A delivery that could not be passed on at once, or that has more than one frame.
cdef struct Delivery:
    Delivery* next
    Chunk* first
    Chunk* last
    uint64_t size_bytes
    uint64_t token
    double expires_s
    uint32_t refs
    uint32_t charges
    uint32_t source_index
    uint32_t source_generation
    uint32_t charged_index
    uint32_t charged_generation
    uint32_t format
    uint32_t origin
    bint settled
    bint complete
    bint aborted
    bint assembled
    bint begun

# A multicast delivery that waits for its subscribers' settlements.
cdef struct FanoutRecord:
    uint64_t token
    uint32_t source_index
    uint32_t source_generation
    uint32_t waiting
    bint used

# Joined settlements of consecutive delivery-ids, written as one disposition.
cdef struct SettleRange:
    uint32_t first
    uint32_t last
    int code
    bint open
    bint settled


cdef class Terminus
cdef class Core
cdef class Wire
cdef class Session
cdef class IncomingLink
cdef class OutgoingLink
cdef class AddressEntry
cdef class AddressSpace
cdef class Port
cdef class Fanouts


@cython.final
cdef class Core:
    cdef list termini
    cdef list free_indexes
    cdef uint32_t* generations
    cdef uint32_t generations_size
    cdef readonly list wires
    cdef list dirty_wires
    cdef list dirty_sessions
    cdef list dirty_ports
    cdef list starved
    cdef list expiring
    cdef list lost_wires
    cdef public list overdue
    cdef uint8_t* buffer
    cdef readonly double now
    cdef public object on_error
    cdef uint32_t next_origin
    cdef int64_t unflushed_bytes
    cdef bint flushing
    cdef Fanouts fanouts
    cdef readonly int64_t held_bytes
    cdef public int64_t held_bytes_max
    cdef public int64_t congested_at_bytes
    cdef readonly uint64_t held_deliveries
    cdef readonly uint64_t frames_in
    cdef uint64_t sends
    cdef uint64_t sent_bytes
    cdef uint32_t register(self, Terminus terminus) except? 0xffffffff
    cdef int unregister(self, Terminus terminus) except -1
    cdef Terminus resolve(self, uint32_t index, uint32_t generation)
    cdef int answer(self, uint32_t index, uint32_t generation, uint64_t token, Verdict* verdict) except -1
    cdef Delivery* new_delivery(self, Shipment* s) except NULL
    cdef bint is_over(self, Delivery* d) noexcept
    cdef Chunk* append_chunk(self, Delivery* d, octets data, uint32_t size) except NULL
    cdef int trim(self, Delivery* d) except -1
    cdef int release(self, Delivery* d) except -1
    cdef int uncharge(self, Delivery* d) except -1
    cdef int feed_starved(self) except -1
    cdef int flush_all(self) except -1
    cdef object _run_ports(self)
    cdef object _write_sessions(self)
    cdef object _send_wires(self)
    cdef object _report_lost(self)
    cdef object _blame(self, Wire wire, object error)


cdef class Terminus:
    cdef readonly Core core
    cdef readonly uint32_t index
    cdef readonly uint32_t generation
    cdef bint is_ready(self) noexcept
    cdef bint refuses(self, Shipment* s) except -1
    cdef int take(self, Shipment* s) except -1
    cdef int64_t take_run(self, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef int resolve_outcome(self, uint64_t token, Verdict* verdict) except -1
    cdef int resolve_run(self, uint64_t token, uint32_t count, Verdict* verdict) except -1
    cdef int on_ready(self, OutgoingLink link) except -1
    cdef uint32_t outstanding(self) noexcept


@cython.final
cdef class Fanouts(Terminus):
    cdef FanoutRecord* records
    cdef uint32_t size
    cdef uint32_t* free
    cdef uint32_t free_count
    cdef uint32_t open(self, Shipment* s) except? 0xffffffff
    cdef int cancel(self, uint32_t record) except -1
    cdef int close(self, uint32_t record) except -1
    cdef int grow(self) except -1


@cython.final
cdef class Wire:
    cdef readonly Core core
    cdef public object owner
    cdef public object on_output
    cdef readonly uint32_t origin
    cdef readonly int fd
    cdef uint32_t read_size
    cdef readonly uint32_t max_frame_in
    cdef public uint32_t max_frame_out
    cdef bint framing
    cdef readonly bint closed
    cdef bint dirty
    cdef readonly bint congested
    cdef readonly bint blocked
    cdef int lost_errno
    cdef readonly double last_received_s
    cdef readonly double last_sent_s
    cdef uint8_t* tail
    cdef uint32_t tail_size
    cdef uint32_t tail_capacity
    cdef uint8_t* out
    cdef uint64_t out_start
    cdef uint64_t out_end
    cdef uint64_t out_capacity
    cdef readonly list sessions
    cdef list stalled
    cdef readonly uint64_t bytes_in
    cdef readonly uint64_t bytes_out
    cdef readonly uint64_t frames_in
    cdef readonly uint64_t frames_out
    cpdef object on_readable(self)
    cdef int mark_dirty(self) except -1
    cdef uint8_t* reserve(self, uint32_t size) except NULL
    cdef int committed(self, uint32_t size) except -1
    cdef int append(self, octets data, uint32_t size) except -1
    cdef int64_t scan(self, octets data, int64_t size) except -1
    cdef int64_t scan_run(self, octets data, int64_t size) except -1
    cdef int scan_header(self, octets data) except -1
    cdef int dispatch(self, octets frame, uint32_t size) except -1
    cdef int keep_tail(self, octets data, uint64_t size) except -1
    cdef int consume(self, uint8_t* data, int64_t size) except -1
    cdef int transmit(self) except -1
    cdef int drained(self) except -1
    cdef int stall(self, OutgoingLink link) except -1
    cdef int wake_stalled(self) except -1
    cdef Session session_of(self, uint32_t channel)
    cdef int _adapt_read_size(self, uint64_t sends, uint64_t sent_bytes) except -1
    cdef int _give_to_owner(self, octets frame, int64_t at, uint32_t size, uint32_t channel) except -1


@cython.final
cdef class Session:
    cdef readonly Wire wire
    cdef public object owner
    cdef readonly Core core
    cdef readonly uint16_t local_channel
    cdef readonly uint32_t next_incoming_id
    cdef readonly uint32_t incoming_window
    cdef uint32_t incoming_window_max
    cdef readonly uint32_t next_outgoing_id
    cdef readonly int64_t remote_window
    cdef uint32_t next_delivery_id
    cdef readonly int64_t held_bytes
    cdef readonly list links
    cdef readonly UnsettledRing sent
    cdef SettleRange to_sender
    cdef SettleRange to_receiver
    cdef bint dirty
    cdef bint flow_due
    cdef bint is_starved
    cdef list links_due
    cdef readonly bint ended
    cdef int mark_dirty(self) except -1
    cdef int replenish(self) except -1
    cdef bint holds_too_much(self) noexcept
    cdef int on_transfer(self, octets p, int64_t at, int64_t end) except -1
    cdef int on_flow(self, octets p, int64_t at, int64_t end) except -1
    cdef int on_disposition(self, octets p, int64_t at, int64_t end) except -1
    cdef int settle_sent(self, DispositionFields* d) except -1
    cdef int settle_range(self, uint32_t first, uint32_t last, Verdict* verdict) except -1
    cdef int settle_each(self, uint32_t first, uint32_t last, Verdict* verdict) except -1
    cdef int settle_one(self, Sent* sent, Verdict* verdict) except -1
    cdef int settle_more(self, SettleRange* r, bint as_receiver, uint32_t delivery_id, uint32_t count, Verdict* v, bint settled) except -1
    cdef int settle_spilled(self, uint32_t first, uint32_t last, Verdict* verdict) except -1
    cdef int settle(self, SettleRange* r, bint as_receiver, uint32_t delivery_id, Verdict* v, bint settled) except -1
    cdef int write_range(self, SettleRange* r, bint as_receiver, octets state, uint32_t state_size) except -1
    cdef int write_flow(self, IncomingLink incoming, OutgoingLink outgoing, bint echo) except -1
    cdef int write_due(self) except -1
    cdef object link_of(self, uint32_t handle)
    cdef int _write_long_range(self, SettleRange* r, bint as_receiver, octets state, uint32_t state_size) except -1


@cython.final
cdef class IncomingLink(Terminus):
    cdef readonly Session session
    cdef readonly uint32_t handle
    cdef public object owner
    cdef readonly AddressEntry entry
    cdef readonly AddressSpace space
    cdef public object permit
    cdef readonly uint32_t window
    cdef readonly uint32_t credit
    cdef readonly uint32_t delivery_count
    cdef uint32_t limit
    cdef readonly uint32_t unsettled
    cdef readonly uint32_t charged
    cdef readonly uint64_t deliveries
    cdef public bint settles_second
    cdef public bint wants_tags
    cdef uint64_t max_message_size
    cdef bint in_delivery
    cdef bint discarding
    cdef bint current_settled
    cdef uint32_t current_id
    cdef uint8_t[32] current_tag
    cdef uint32_t current_tag_size
    cdef bint current_answered
    cdef uint64_t current_size
    cdef int64_t held_bytes
    cdef Delivery* current
    cdef AddressEntry current_entry
    cdef list current_outlets
    cdef bint flow_due
    cdef bint drain
    cdef readonly bint detached
    cdef int on_transfer(self, TransferFields* t) except -1
    cdef int begin_delivery(self, TransferFields* t) except -1
    cdef int on_fragment(self, TransferFields* t) except -1
    cdef int forward_fragment(self, Delivery* d, octets data, uint32_t size) except -1
    cdef int finish_delivery(self) except -1
    cdef int abort_delivery(self) except -1
    cdef int start_streaming(self, AddressEntry entry, TransferFields* t) except -1
    cdef AddressEntry choose_entry(self, octets data, uint32_t size)
    cdef int route(self, Shipment* s) except -1
    cdef int route_run(self, Piece* pieces, uint32_t count, bint settled) except -1
    cdef uint32_t run_limit(self, uint32_t size) noexcept
    cdef int reply(self, uint64_t token, int code, bint settled) except -1
    cdef int top_up(self) except -1
    cdef int _take_back_credit(self) except -1
    cdef void promise(self) noexcept
    cdef int flow_later(self) except -1
    cdef int on_flow(self, FlowFields* f) except -1
    cdef object _too_large(self)
    cdef bint _has_no_room(self, uint32_t size) except -1
    cdef int _start_fragments(self, TransferFields* t) except -1
    cdef void _describe(self, Shipment* s, TransferFields* t) noexcept
    cdef int _stream_multicast(self, AddressEntry entry, Shipment* s) except -1
    cdef object _refused(self, Terminus outlet, Shipment* s)
    cdef void _charge(self, Delivery* d) noexcept
    cdef void _disown(self, Delivery* d) noexcept
    cdef int _route_assembled(self, AddressEntry entry, Delivery* d) except -1
    cdef int _route_each(self, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef int _unroutable(self, Shipment* s) except -1


@cython.final
cdef class OutgoingLink(Terminus):
    # What every delivery touches stands together, in as few cache lines as can be.
    cdef readonly Session session
    cdef public object selector
    cdef readonly uint32_t credit
    cdef readonly uint32_t delivery_count
    cdef readonly uint32_t queue_count
    cdef readonly uint32_t unsettled
    cdef readonly uint64_t deliveries
    cdef uint64_t next_tag
    cdef uint32_t template_size
    cdef uint8_t template[TEMPLATE_MAX_BYTES]
    cdef readonly uint32_t handle
    cdef public bint no_local
    cdef readonly bint detached
    cdef readonly bint presettles
    cdef bint stalled
    cdef readonly bint drain
    cdef bint started
    cdef public int policy
    cdef public object owner
    cdef public Terminus feeder
    cdef public int64_t backlog_bytes_max
    cdef readonly int64_t backlog_bytes
    cdef readonly double blocked_since_s
    cdef Delivery** queue
    cdef uint32_t queue_capacity
    cdef uint32_t queue_head
    cdef Chunk* cursor
    cdef uint32_t cursor_offset
    cdef uint32_t started_id
    cdef bint overdue
    cdef bint offered
    cdef readonly uint64_t dropped
    cdef int make_template(self) except -1
    cdef uint32_t run_limit(self, uint32_t count) noexcept
    cdef int write_run(self, Shipment* s, Piece* pieces, uint32_t count, uint64_t size_bytes) except -1
    cdef uint32_t pump_run(self) except? 0xffffffff
    cdef bint can_start(self) noexcept
    cdef int write_first(self, Shipment* s, octets data, uint32_t size, bint more) except -1
    cdef int write_more(self, octets data, uint32_t size, bint more, bint aborted) except -1
    cdef uint32_t frame_room(self) noexcept
    cdef bint picky(self) noexcept
    cdef int enqueue(self, Delivery* d) except -1
    cdef int push(self, Delivery* d) except -1
    cdef int pump(self) except -1
    cdef int pump_head(self, Delivery* d) except -1
    cdef bint may_go_on(self) except -1
    cdef int abandon(self, Delivery* d) except -1
    cdef int send_piece(self, Delivery* d, octets data, uint32_t size, bint last) except -1
    cdef int stream(self, Delivery* d, octets data, uint32_t size, bint begun) except -1
    cdef int pop(self) except -1
    cdef int remove_head(self) except -1
    cdef int apply_policy(self, Delivery* d) except -1
    cdef int became_ready(self) except -1
    cdef int finish_drain(self) except -1
    cdef uint32_t outstanding_available(self) noexcept
    cdef int on_flow(self, FlowFields* f) except -1
    cdef int _answer(self, uint32_t index, uint32_t generation, uint64_t token, int code) except -1
    cdef object _grow_queue(self)
    cdef int _drop_head(self) except -1
    cdef object _drop_oldest(self)
    cdef object _forget_queued(self, Delivery* d)
    cdef object _leave(self, Delivery* d)


@cython.final
cdef class AddressEntry(Terminus):
    cdef readonly object name
    cdef public int distribution
    cdef public bint release_unmatched
    cdef public bint assembles
    cdef public object dead_letter
    cdef public double ttl_s
    cdef readonly uint64_t expired
    cdef bint is_expiring
    cdef readonly list outlets
    cdef readonly list sources
    cdef uint32_t turn
    cdef bint offered
    cdef bint rationed
    cdef uint32_t source_turn
    cdef Interest interest
    cdef bytes subject
    cdef uint64_t version
    cdef Delivery* held_first
    cdef Delivery* held_last
    cdef readonly uint32_t held
    cdef readonly uint64_t received
    cdef readonly uint64_t delivered
    cdef readonly uint64_t released
    cdef readonly uint64_t dropped
    cdef readonly uint64_t unmatched
    cdef int route(self, IncomingLink link, Shipment* s) except -1
    cdef int anycast(self, IncomingLink link, Shipment* s) except -1
    cdef int multicast(self, Shipment* s, list outlets) except -1
    cdef int multicast_late(self, Shipment* s, list late) except -1
    cdef int anycast_run(self, IncomingLink link, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef int multicast_run(self, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef Terminus pick(self, Shipment* s)
    cdef list matching(self)
    cdef bint _some_are_picky(self, list outlets) except -1
    cdef int _run_late(self, Shipment* s, Piece* pieces, Delivery** late, Terminus outlet, uint32_t first, uint32_t count) except -1
    cdef int hold(self, Delivery* d) except -1
    cdef Delivery* unhold(self) noexcept
    cdef int discard_held(self, Delivery* d) except -1
    cdef int serve_held(self) except -1
    cdef int unroutable(self, Shipment* s) except -1
    cdef object _offer(self)
    cdef uint32_t ration(self, IncomingLink link) except? 0xffffffff
    cdef int _pass_credit_on(self) except -1
    cdef int _hand_over(self, Delivery* d, Terminus outlet) except -1
    cdef object _release_held(self)
    cdef int _bury(self, Delivery* d, bint is_expired) except -1
    cdef int limit_life(self, Delivery* d) except -1
    cdef bint expire_held(self) except -1
    cdef int _expire(self, Delivery* d) except -1
    cdef int expire(self, Shipment* s) except -1


@cython.final
cdef class AddressSpace:
    cdef readonly Core core
    cdef readonly dict entries
    cdef public object resolver
    cdef public bytes topic_prefix
    cdef public AddressEntry topic_root
    cdef public uint64_t unroutable
    cdef AddressEntry find(self, bytes address)


@cython.final
cdef class Port(Terminus):
    cdef public object handler
    cdef public list arrivals
    cdef public list outcomes
    cdef public list woken
    cdef public bint open
    cdef bint dirty
    cdef int mark_dirty(self) except -1


@cython.final
cdef class Drain(Terminus):
    cdef readonly uint64_t messages
    cdef readonly uint64_t bytes


cdef uint8_t* _join(Delivery* d) except NULL
