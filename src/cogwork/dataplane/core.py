"""Scan, route and emit: what happens to transfers, dispositions and flows.

Theory of operation. A `Wire` is one connection's bytes. What it reads is scanned in place; a
transfer goes by handle to its `IncomingLink`, by that link's `AddressEntry` to a `Terminus` (mostly
an `OutgoingLink`, whose header is written and whose payload is copied straight into the other
wire's output buffer). No Python object is made for a message on that way.

Whatever cannot go on at once becomes a `Delivery`: a counted chain of chunks that waits in the
entry (anycast, no consumer has room) or in an outlet's queue (multicast, a slow subscriber; or a
delivery of many frames that cuts through). Waiting deliveries are charged to the link they came by,
and a link gets credit only for what is not charged and not unsettled: that is the back-pressure.

Settlements travel the other way. An unsettled delivery that was sent has an entry in its session's
ring that names its source by index and generation; a source that has gone is simply not found.
Settlements, credit and session windows are gathered while a batch is scanned and written in ranges
when it ends (`Core.flush`), then each dirty wire is sent with one system call.

Every performative but these three, and every violation, goes to the wire's `owner`, which is
ordinary Python.
"""

import cython
from cython.cimports.cogwork.dataplane.frames import end_performative, put_bool, put_performative
from cython.cimports.cogwork.dataplane.header import clear_header, read_header
from cython.cimports.cogwork.dataplane.octets import (
    bytes_from,
    load_u16,
    load_u32,
    octets_of,
    store_u16,
    store_u32,
    store_uint,
)
from cython.cimports.cogwork.dataplane.scan import (
    find_to,
    parse_disposition,
    parse_flow,
    parse_transfer,
    performative_code,
)
from cython.cimports.cogwork.dataplane.shipment import (
    NOWHERE,
    fill_shipment,
    fill_verdict,
    state_of,
)
from cython.cimports.cogwork.dataplane.system import EAGAIN, EINTR, clock_s, receive, send
from cython.cimports.cogwork.dataplane.transfers import (
    has_shape,
    learn_shape,
    parse_common_transfer,
)
from cython.cimports.libc.stdlib import calloc, free, malloc, realloc
from cython.cimports.libc.string import memcpy, memmove, memset

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.kinds import composite_from
from cogwork.dataplane.codec import decode

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

MULTICAST_CODE, CLOSEST_CODE, BALANCED_CODE = MULTICAST, CLOSEST, BALANCED
"""How an entry shares deliveries out, as Python names it."""

READ_SIZE_MIN_BYTES = cython.declare(uint32_t, 4096)
"""A wire whose batches take too long reads less at a time, but no less than this."""

BATCH_TIME_MAX_S = cython.declare(cython.double, 0.0005)
"""A batch that takes longer halves what its wire reads next, so that others get their turn."""

WIDE_BATCH_TIME_MAX_S = cython.declare(cython.double, 0.005)
SEND_GOOD_BYTES = cython.declare(uint64_t, 32 * 1024)
"""A batch that goes out to many may take this long, while they would get even less than this each:
smaller ones would spend their time on system calls."""

UNFLUSHED_MAX_BYTES = cython.declare(int64_t, 16 * 1024 * 1024)
"""Output written but not sent within one batch: a wide fan-out is sent in slices of this size."""

KEPT_OUTPUT_MAX_BYTES = cython.declare(uint64_t, 64 * 1024 * 1024)
"""Empty output buffers are kept for the next batch while all of them would be no more than this."""

SESSION_HELD_MAX_BYTES = cython.declare(int64_t, 8 * 1024 * 1024)
"""Above this much held for one session its window stays closed until some of it has gone."""

AHEAD_MAX = cython.declare(uint64_t, 32)
"""Messages that a sender may be ahead of the consumers' credit."""

RATIONING_MAX = cython.declare(Py_ssize_t, 16)
"""Consumers whose credit is added up, and senders it is passed on to, in one go."""

FRAME_MIN_BYTES = cython.declare(int64_t, 75)
"""A frame of a run has room for the largest header that a run's frames may have."""

ACCEPTED_STATE = cython.declare(bytes, b"\x00\x53\x24\x45")
RELEASED_STATE = cython.declare(bytes, b"\x00\x53\x26\x45")
REJECTED_STATE = cython.declare(bytes, b"\x00\x53\x25\x45")
FAILED_STATE = cython.declare(bytes, b"\x00\x53\x27\xc0\x02\x01\x41")
"""The delivery states that the data plane itself says: accepted, released, rejected, modified (failed)."""

STALE_STATE = cython.declare(
    bytes,
    b"\x00\x53\x25\xc0\x1e\x01\x00\x53\x1d\xc0\x18\x01\xa3\x15cogwork:stale-attempt",
)
"""Rejected with the condition that tells a consumer its claim came too late."""

OUT_SIZE_MIN_BYTES = 1024


def monotonic_s() -> float:
    """Returns the clock that the data plane goes by."""
    return clock_s()


class Core:
    """Everything one event loop's wires share: the termini, the read buffer, what is due."""

    def __cinit__(self):
        self.buffer = cython.cast(cython.pointer(uint8_t), malloc(READ_SIZE_BYTES * 5))
        if self.buffer == cython.NULL:
            raise MemoryError("no room for the read buffer")

    def __init__(self, on_error=None):
        self.termini = []
        self.free_indexes = []
        self.wires = []
        self.dirty_wires = []
        self.dirty_sessions = []
        self.dirty_ports = []
        self.expiring = []
        self.starved = []
        self.lost_wires = []
        self.overdue = []
        self.held_bytes_max = 256 * 1024 * 1024
        self.congested_at_bytes = CONGESTED_AT_BYTES
        self.on_error = on_error
        self.now = clock_s()
        self.fanouts = Fanouts(self)

    def __dealloc__(self):
        free(self.buffer)
        free(self.generations)

    def register(self, terminus):
        index: uint32_t
        if self.free_indexes:
            index = self.free_indexes.pop()
            self.termini[index] = terminus
        else:
            index = cython.cast(uint32_t, len(self.termini))
            if index >= self.generations_size:
                self._grow_generations()
            self.termini.append(terminus)
        terminus.index = index
        terminus.generation = self.generations[index]
        return index

    def _grow_generations(self):
        size: uint32_t = self.generations_size * 2 if self.generations_size else 64
        grown: cython.pointer(uint32_t) = cython.cast(
            cython.pointer(uint32_t), realloc(self.generations, size * cython.sizeof(uint32_t))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more links")
        memset(
            grown + self.generations_size,
            0,
            (size - self.generations_size) * cython.sizeof(uint32_t),
        )
        self.generations = grown
        self.generations_size = size

    def unregister(self, terminus):
        if terminus.index == NOWHERE:
            return 0
        self.termini[terminus.index] = None
        self.generations[terminus.index] += 1
        self.free_indexes.append(terminus.index)
        terminus.index = NOWHERE
        return 0

    def resolve(self, index, generation):
        if index == NOWHERE or index >= self.generations_size:
            return None
        if self.generations[index] != generation:
            return None
        return cython.cast(Terminus, self.termini[index])

    def answer(self, index, generation, token, verdict):
        """Tells a delivery's source its outcome; a source that has gone is settled for."""
        source: Terminus = self.resolve(index, generation)
        if source is None:
            return SETTLE
        return source.resolve_outcome(token, verdict)

    def new_delivery(self, s):
        d: cython.pointer(Delivery) = cython.cast(
            cython.pointer(Delivery), calloc(1, cython.sizeof(Delivery))
        )
        if d == cython.NULL:
            raise MemoryError("no room for a delivery")
        self.held_deliveries += 1
        d.refs = 1
        d.token = s.token
        d.source_index = s.source_index
        d.source_generation = s.source_generation
        d.charged_index = s.via_index
        d.charged_generation = s.via_generation
        d.format = s.format
        d.settled = s.settled
        d.origin = s.origin
        return d

    def is_over(self, d):
        """Says whether a delivery has waited longer than it may."""
        return d.expires_s != 0.0 and d.expires_s <= self.now

    def expire_held(self) -> None:
        """Gives up what entries hold and what is over by now."""
        entries: list = self.expiring
        self.expiring = []
        for entry in entries:
            if cython.cast(AddressEntry, entry).expire_held():
                self.expiring.append(entry)

    def append_chunk(self, d, data, size):
        chunk: cython.pointer(Chunk) = cython.cast(
            cython.pointer(Chunk), malloc(cython.sizeof(Chunk) + size)
        )
        if chunk == cython.NULL:
            raise MemoryError("no room for a frame")
        chunk.next = cython.NULL
        chunk.size = size
        chunk.refs = 0
        if size:
            memcpy(chunk.data, data, size)
        if d.last == cython.NULL:
            d.first = chunk
        else:
            d.last.next = chunk
        d.last = chunk
        d.size_bytes += size
        self.held_bytes += size
        if not d.assembled:
            link: IncomingLink = self.resolve(d.charged_index, d.charged_generation)
            if link is not None:
                link.held_bytes += size
                link.session.held_bytes += size
        return chunk

    def trim(self, d):
        """Frees the chunks that every outlet has passed; they are always the first ones."""
        chunk: cython.pointer(Chunk)
        freed: int64_t = 0
        while d.first != cython.NULL and d.first.refs == 0:
            chunk = d.first
            d.first = chunk.next
            freed += chunk.size
            free(chunk)
        if d.first == cython.NULL:
            d.last = cython.NULL
        if freed:
            self.held_bytes -= freed
            link: IncomingLink = self.resolve(d.charged_index, d.charged_generation)
            if link is not None and not d.assembled:
                link.held_bytes -= freed
                link.session.held_bytes -= freed
                link.session.replenish()
            if self.starved and self.held_bytes <= self.held_bytes_max:
                self.feed_starved()
        return 0

    def feed_starved(self):
        """Opens the windows that were left closed because too much was held for others."""
        sessions: list = self.starved
        session: Session
        self.starved = []
        for session in sessions:
            session.is_starved = False
            if not session.ended:
                session.replenish()
        return 0

    def release(self, d):
        chunk: cython.pointer(Chunk)
        d.refs -= 1
        if d.refs > 0:
            return 0
        chunk = d.first
        while chunk != cython.NULL:
            chunk.refs = 0
            chunk = chunk.next
        self.trim(d)
        if d.charges:
            d.charges = 1
            self.uncharge(d)
        free(d)
        self.held_deliveries -= 1
        return 0

    def uncharge(self, d):
        """Takes back one reason to withhold credit from the link that `d` came by."""
        d.charges -= 1
        if d.charges > 0 or not d.settled:
            return 0
        link: IncomingLink = self.resolve(d.charged_index, d.charged_generation)
        if link is not None:
            link.charged -= 1
            link.top_up()
        return 0

    def flush(self):
        """Ends a batch: lets the ports work, writes what is due, sends each dirty wire."""
        self.flush_all()

    @property
    def open_fanouts(self) -> int:
        """Counts the multicast deliveries whose subscribers have not all settled."""
        return self.fanouts.size - self.fanouts.free_count

    def blocked_links(self):
        """Lists the outgoing links for which something has been waiting."""
        found = []
        for terminus in self.termini:
            if type(terminus) is OutgoingLink and cython.cast(OutgoingLink, terminus).queue_count:
                found.append(terminus)
        return found

    def totals(self) -> dict:
        """Adds up what all links and wires hold, in one pass without a Python object for each."""
        unsettled: uint64_t = 0
        unsettled_in: uint64_t = 0
        partial_bytes: uint64_t = 0
        backlog_bytes: int64_t = 0
        unsent_bytes: uint64_t = 0
        links: uint32_t = 0
        incoming: IncomingLink
        outgoing: OutgoingLink
        wire: Wire
        for terminus in self.termini:
            if type(terminus) is IncomingLink:
                incoming = cython.cast(IncomingLink, terminus)
                links += 1
                unsettled_in += incoming.unsettled
                if incoming.in_delivery:
                    partial_bytes += incoming.current_size
            elif type(terminus) is OutgoingLink:
                outgoing = cython.cast(OutgoingLink, terminus)
                links += 1
                unsettled += outgoing.unsettled
                backlog_bytes += outgoing.backlog_bytes
        for wire in self.wires:
            unsent_bytes += wire.out_end - wire.out_start
            partial_bytes += wire.tail_size
        return {
            "links": links,
            "unsettled": unsettled,
            "unsettled_in": unsettled_in,
            "partial_bytes": partial_bytes,
            "backlog_bytes": backlog_bytes,
            "unsent_bytes": unsent_bytes,
            "held_bytes": self.held_bytes,
        }

    def tick(self):
        """Reads the clock, so that `now` is true even where nothing arrives."""
        self.now = clock_s()

    def flush_all(self):
        if self.flushing:
            return 0
        self.flushing = True
        try:
            while self.dirty_ports or self.dirty_sessions or self.dirty_wires or self.lost_wires:
                self._run_ports()
                self._write_sessions()
                self._send_wires()
                self._report_lost()
        finally:
            self.flushing = False
            self.unflushed_bytes = 0
        return 0

    def _run_ports(self):
        ports: list = self.dirty_ports
        port: Port
        if not ports:
            return
        self.dirty_ports = []
        for port in ports:
            port.dirty = False
            try:
                port.handler.on_batch(port)
            except Exception as error:
                if self.on_error is None:
                    raise
                self.on_error(port, error)

    def _write_sessions(self):
        sessions: list = self.dirty_sessions
        session: Session
        if not sessions:
            return
        self.dirty_sessions = []
        for session in sessions:
            session.dirty = False
            if not session.ended and not session.wire.closed:
                session.write_due()

    def _send_wires(self):
        wires: list = self.dirty_wires
        wire: Wire
        if not wires:
            return
        self.dirty_wires = []
        for wire in wires:
            wire.dirty = False
            try:
                wire.transmit()
            except Exception as error:
                self._blame(wire, error)

    def _report_lost(self):
        """Tells owners that their sockets failed: only now, when nothing is half routed."""
        wires: list = self.lost_wires
        wire: Wire
        if not wires:
            return
        self.lost_wires = []
        for wire in wires:
            try:
                wire.owner.on_lost(wire.lost_errno)
            except Exception as error:
                self._blame(wire, error)

    def _blame(self, wire, error):
        """Keeps a fault of ours to the connection that it happened on."""
        try:
            wire.owner.on_fault(error)
        except Exception as fault:
            wire.stop()
            if self.on_error is None:
                raise
            self.on_error(wire, fault)


class Terminus:
    """Where deliveries go to, or come from: a link's end, a store, a node's port."""

    def is_ready(self):
        """Says whether `take` may be called now."""
        return True

    def refuses(self, s):
        """Says whether this terminus does not want the message at all (selector, no-local)."""
        return False

    def take(self, s):
        """Takes a whole message; only called when ready."""
        return 0

    def take_run(self, s, pieces, count):
        """Takes the first messages of a run, as many as it is ready for; returns how many."""
        index: uint32_t
        for index in range(count):
            if not self.is_ready():
                return index
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            self.take(s)
        return count

    def resolve_outcome(self, token, verdict):
        """Learns what became of a delivery that came from here; returns KEEP, SETTLE or REFUSE."""
        return SETTLE

    def resolve_run(self, token, count, verdict):
        """Learns the same of `count` deliveries with consecutive tokens, settled by the peer."""
        index: uint32_t
        for index in range(count):
            self.resolve_outcome(token + index, verdict)
        return 0

    def on_ready(self, link):
        """Learns that an outlet which this terminus feeds can take more."""
        return 0

    def outstanding(self):
        """Counts the deliveries that were taken and not yet settled."""
        return 0

    def settle(self, token: int, code: int, state: bytes = None) -> None:
        """Says the outcome of a delivery that came from here, as a consumer in process does.

        Args:
            token: The delivery, as it was named when it was taken.
            code: The outcome's descriptor code, such as 0x24 for accepted.
            state: The outcome encoded, where it says more than its code.
        """
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        self.resolve_outcome(token, cython.address(verdict))


class Fanouts(Terminus):
    """The multicast deliveries whose subscribers have not all settled yet."""

    def __init__(self, core: Core):
        self.core = core
        core.register(self)

    def __dealloc__(self):
        free(self.records)
        free(self.free)

    def grow(self):
        size: uint32_t = self.size * 2 if self.size else 256
        records: cython.pointer(FanoutRecord) = cython.cast(
            cython.pointer(FanoutRecord), realloc(self.records, size * cython.sizeof(FanoutRecord))
        )
        if records == cython.NULL:
            raise MemoryError("no room for more unsettled multicast deliveries")
        self.records = records
        vacant: cython.pointer(uint32_t) = cython.cast(
            cython.pointer(uint32_t), realloc(self.free, size * cython.sizeof(uint32_t))
        )
        if vacant == cython.NULL:
            raise MemoryError("no room for more unsettled multicast deliveries")
        self.free = vacant
        index: uint32_t = size
        while index > self.size:
            index -= 1
            self.records[index].used = False
            self.free[self.free_count] = index
            self.free_count += 1
        self.size = size
        return 0

    def open(self, s):
        """Starts a record for a shipment; it holds itself open until `close`."""
        if self.free_count == 0:
            self.grow()
        self.free_count -= 1
        index: uint32_t = self.free[self.free_count]
        record: cython.pointer(FanoutRecord) = self.records + index
        record.token = s.token
        record.source_index = s.source_index
        record.source_generation = s.source_generation
        record.waiting = 1
        record.used = True
        return index

    def cancel(self, record):
        """Frees a record that nobody waits on, without a word to the publisher."""
        self.records[record].used = False
        self.free[self.free_count] = record
        self.free_count += 1
        return 0

    def close(self, record):
        """Drops one reason to wait; with the last one the publisher is told: accepted."""
        index: uint32_t = record
        source_index: uint32_t
        verdict: Verdict
        self.records[index].waiting -= 1
        if self.records[index].waiting > 0:
            return 0
        self.cancel(index)
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        source_index = self.records[index].source_index
        self.core.answer(
            source_index,
            self.records[index].source_generation,
            self.records[index].token,
            cython.address(verdict),
        )
        return 0

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if token < self.size and self.records[token].used:
            self.close(cython.cast(uint32_t, token))
        return SETTLE


class Wire:
    """One connection's bytes: the partial frame it read, the output it has not sent."""

    def __init__(self, core: Core, owner, max_frame_in: int, fd: int = -1):
        """Makes a wire.

        Args:
            core: The core it belongs to.
            owner: Gets what is not transfer, disposition or flow, and every violation.
            max_frame_in: The largest frame in bytes that the peer may send.
            fd: A connected non-blocking socket, or -1 where `feed` and `take_output` are used.
        """
        self.core = core
        self.owner = owner
        self.fd = fd
        self.max_frame_in = min(max_frame_in, READ_SIZE_BYTES * 4)
        self.max_frame_out = 512
        self.read_size = READ_SIZE_BYTES
        self.sessions = []
        self.stalled = []
        core.next_origin += 1
        self.origin = core.next_origin
        self.last_received_s = self.last_sent_s = clock_s()
        core.wires.append(self)

    def __dealloc__(self):
        free(self.tail)
        free(self.out)

    # -- what Python does with a wire

    def start_framing(self) -> None:
        """From here on the bytes are frames; before, `owner.on_header` gets them eight at a time."""
        self.framing = True

    def expect_header(self) -> None:
        """The next bytes are a protocol header again, as after SASL (AMQP 1.0 §5.3.2)."""
        self.framing = False

    def stop(self) -> None:
        """Reads no more: what arrives from now on is thrown away."""
        self.closed = True
        if self in self.core.wires:
            self.core.wires.remove(self)

    def feed(self, data: bytes) -> None:
        """Takes in bytes that a stream (TLS, WebSocket, memory) has read, and ends the batch."""
        self.core.now = self.last_received_s = clock_s()
        size: int64_t = len(data)
        joined: cython.pointer(uint8_t)
        self.bytes_in += size
        if self.tail_size == 0:
            self.consume(cython.cast(cython.pointer(uint8_t), octets_of(data)), size)
        else:
            joined = cython.cast(cython.pointer(uint8_t), malloc(self.tail_size + size))
            if joined == cython.NULL:
                raise MemoryError("no room for input")
            memcpy(joined, self.tail, self.tail_size)
            memcpy(joined + self.tail_size, octets_of(data), size)
            size += self.tail_size
            self.tail_size = 0
            try:
                self.consume(joined, size)
            finally:
                free(joined)
        self.core.flush_all()

    def on_readable(self):
        """Reads the socket once, routes what arrived, and ends the batch."""
        core: Core = self.core
        if self.closed:
            return
        room: cython.pointer(uint8_t) = core.buffer + self.tail_size
        sends: uint64_t = core.sends
        sent_bytes: uint64_t = core.sent_bytes
        size: int64_t = receive(self.fd, room, self.read_size)
        if size <= 0:
            if size == -EAGAIN or size == -EINTR:
                return
            self.owner.on_lost(cython.cast(cython.int, -size))
            core.flush_all()
            return
        self.bytes_in += size
        core.now = self.last_received_s = clock_s()
        if self.tail_size:
            memcpy(core.buffer, self.tail, self.tail_size)
            size += self.tail_size
            self.tail_size = 0
        self.consume(core.buffer, size)
        core.flush_all()
        self._adapt_read_size(core.sends - sends, core.sent_bytes - sent_bytes)

    def _adapt_read_size(self, sends, sent_bytes):
        """Halves the reads after a batch that took too long, given what it sent; else widens them."""
        taken_s: cython.double = clock_s() - self.core.now
        is_wide: cython.bint = sends > 1 and sent_bytes < sends * SEND_GOOD_BYTES
        if taken_s > (WIDE_BATCH_TIME_MAX_S if is_wide else BATCH_TIME_MAX_S):
            self.read_size = max(READ_SIZE_MIN_BYTES, self.read_size // 2)
        elif self.read_size < READ_SIZE_BYTES:
            self.read_size *= 2
        return 0

    def on_writable(self) -> None:
        """Goes on sending after the socket was full."""
        self.blocked = False
        self.core.now = clock_s()
        self.transmit()
        self.core.flush_all()

    def send_rest(self) -> None:
        """Sends what was written, as far as the socket takes it, also after `stop`."""
        if not self.blocked:
            self.transmit()

    def write(self, data: bytes) -> None:
        """Appends bytes to the output as they are."""
        self.append(
            octets_of(data),
            cython.cast(uint32_t, len(data)),
        )

    def write_frame(self, channel: int, body: bytes, frame_type: int = 0) -> None:
        """Appends one frame whose body is given whole."""
        size: uint32_t = cython.cast(uint32_t, len(body))
        p: cython.pointer(uint8_t) = self.reserve(size + 8)
        store_u32(p, size + 8)
        p[4] = 2
        p[5] = frame_type
        store_u16(p + 6, channel)
        if size:
            memcpy(p + 8, octets_of(body), size)
        self.committed(size + 8)

    def take_output(self, size_max_bytes: int = 1 << 30) -> bytes:
        """Hands over output for a stream to send; what is handed over counts as sent."""
        size: uint64_t = min(self.out_end - self.out_start, cython.cast(uint64_t, size_max_bytes))
        data = bytes_from(self.out + self.out_start, size)
        self.out_start += size
        self.bytes_out += size
        self.last_sent_s = self.core.now
        self.drained()
        return data

    @property
    def unsent_bytes(self) -> int:
        """Counts the output that the peer's window or the socket has not taken."""
        return self.out_end - self.out_start

    def map_session(self, channel: int, session) -> None:
        """Lets frames on the peer's `channel` reach `session`; None unmaps it."""
        while len(self.sessions) <= channel:
            self.sessions.append(None)
        self.sessions[channel] = session

    def session_on(self, channel: int):
        """Returns the session that the peer's `channel` leads to, or None."""
        return self.session_of(channel)

    # -- input

    def consume(self, data, size):
        done: int64_t = size
        try:
            done = self.scan(data, size)
        except Exception as error:
            self.core._blame(self, error)
        if self.closed:
            self.tail_size = 0
        elif done < size:
            self.keep_tail(data + done, size - done)
        return 0

    def scan(self, data, size):
        at: int64_t = 0
        taken: int64_t
        frame_size: uint32_t
        core: Core = self.core
        while size - at >= 8 and not self.closed:
            if not self.framing:
                self.scan_header(data + at)
                at += 8
                continue
            frame_size = load_u32(data + at)
            if frame_size < 8 or frame_size > self.max_frame_in:
                self.owner.on_violation(
                    "amqp:connection:framing-error",
                    f"a frame of {frame_size} bytes; between 8 and {self.max_frame_in} are allowed",
                )
                return size
            if size - at < frame_size:
                break
            if frame_size > 64 and data[at + 10] == 0x14:
                taken = self.scan_run(data + at, size - at)
                if taken > 0:
                    at += taken
                    if core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
                        core.flush_all()
                    continue
            self.dispatch(data + at, frame_size)
            at += frame_size
            if core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
                core.flush_all()
        return size if self.closed else at

    def scan_run(self, data, size):
        """Routes a run: consecutive single-frame transfers of one link, all with headers alike.

        Returns the bytes it took; 0 where the first frame does not start a run.
        """
        pieces: Piece[RUN_MAX]
        t: TransferFields
        shape: TransferShape
        at: int64_t = 0
        frame_size: uint32_t = load_u32(data)
        count: uint32_t = 0
        limit: uint32_t
        largest: uint64_t = self.max_frame_in
        piece: cython.pointer(Piece)
        link: IncomingLink
        session: Session
        if load_u16(data + 4) != 0x0200 or data[8] != 0x00 or data[9] != 0x53:
            return 0
        if not parse_common_transfer(data, 11, frame_size, cython.address(t)) or t.more:
            return 0
        session = self.session_of(load_u16(data + 6))
        if session is None or session.ended:
            return 0
        found = session.link_of(t.handle)
        if type(found) is not IncomingLink:
            return 0
        link = cython.cast(IncomingLink, found)
        limit = link.run_limit(t.payload_size)
        learn_shape(cython.address(shape), data, cython.address(t))
        if link.max_message_size:
            largest = min(largest, link.max_message_size + shape.size)
        while count < limit and frame_size <= largest:
            piece = pieces + count
            piece.data = data + at + shape.size
            piece.size = frame_size - shape.size
            piece.token = load_u32(data + at + shape.id_at) if count else t.delivery_id
            count += 1
            at += frame_size
            if size - at < FRAME_MIN_BYTES:
                break
            frame_size = load_u32(data + at)
            if (
                frame_size > size - at
                or frame_size < FRAME_MIN_BYTES
                or not has_shape(cython.address(shape), data + at)
            ):
                break
        if count == 0:
            return 0
        self.core.frames_in += count
        self.frames_in += count
        session.incoming_window -= count
        session.next_incoming_id += count
        link.route_run(pieces, count, t.settled)
        session.replenish()
        return at

    def scan_header(self, data):
        self.owner.on_header(bytes_from(data, 8))
        return 0

    def dispatch(self, frame, size):
        at: int64_t = cython.cast(int64_t, frame[4]) * 4
        body: int64_t = 0
        code: cython.int
        session: Session
        channel: uint32_t = (cython.cast(uint32_t, frame[6]) << 8) | frame[7]
        if at < 8 or at > size:
            self.owner.on_violation(
                "amqp:connection:framing-error", f"a frame's data offset of {frame[4]} words"
            )
            return 0
        if at == size:
            if frame[5] == 1:
                self.owner.on_violation("amqp:connection:framing-error", "an empty SASL frame")
            return 0
        self.core.frames_in += 1
        self.frames_in += 1
        code = (
            performative_code(frame + at, size - at, cython.address(body)) if frame[5] == 0 else -1
        )
        session = self.session_of(channel) if 0x13 <= code <= 0x15 else None
        if session is None:
            return self._give_to_owner(frame, at, size, channel)
        if session.ended:
            return 0
        if code == 0x14:
            return session.on_transfer(frame, at + body, size)
        if code == 0x15:
            return session.on_disposition(frame, at + body, size)
        return session.on_flow(frame, at + body, size)

    def _give_to_owner(self, frame, at, size, channel):
        body = bytes_from(frame + at, size - at)
        self.owner.on_frame(frame[5], channel, body)
        return 0

    def session_of(self, channel):
        if channel >= cython.cast(uint32_t, len(self.sessions)):
            return None
        return cython.cast(Session, self.sessions[channel])

    def keep_tail(self, data, size):
        grown: cython.pointer(uint8_t)
        needed: uint64_t = size
        if needed > self.tail_capacity:
            if size >= 4 and self.framing:
                needed = max(needed, min(load_u32(data), self.max_frame_in))
            grown = cython.cast(cython.pointer(uint8_t), realloc(self.tail, needed))
            if grown == cython.NULL:
                raise MemoryError("no room for a partial frame")
            self.tail = grown
            self.tail_capacity = cython.cast(uint32_t, needed)
        memcpy(self.tail, data, size)
        self.tail_size = cython.cast(uint32_t, size)
        return 0

    def shed(self) -> None:
        """Gives back what an idle connection does not need."""
        if self.tail_size == 0 and self.tail != cython.NULL:
            free(self.tail)
            self.tail = cython.NULL
            self.tail_capacity = 0
        if self.out_end == 0 and self.out != cython.NULL:
            free(self.out)
            self.out = cython.NULL
            self.out_capacity = 0

    # -- output

    def mark_dirty(self):
        if not self.dirty and not self.blocked:
            self.dirty = True
            self.core.dirty_wires.append(self)
        return 0

    def reserve(self, size):
        needed: uint64_t = self.out_end + size
        capacity: uint64_t
        grown: cython.pointer(uint8_t)
        if needed <= self.out_capacity:
            return self.out + self.out_end
        if self.out_start > 0 and self.out_start >= (self.out_capacity >> 1):
            memmove(self.out, self.out + self.out_start, self.out_end - self.out_start)
            self.out_end -= self.out_start
            self.out_start = 0
            needed = self.out_end + size
            if needed <= self.out_capacity:
                return self.out + self.out_end
        capacity = max(self.out_capacity, cython.cast(uint64_t, OUT_SIZE_MIN_BYTES))
        while capacity < needed:
            capacity *= 2
        grown = cython.cast(cython.pointer(uint8_t), realloc(self.out, capacity))
        if grown == cython.NULL:
            raise MemoryError("no room for output")
        self.out = grown
        self.out_capacity = capacity
        return self.out + self.out_end

    def committed(self, size):
        unsent_bytes: int64_t
        self.out_end += size
        self.frames_out += 1
        self.core.unflushed_bytes += size
        if not self.dirty and not self.blocked:
            self.mark_dirty()
        unsent_bytes = self.out_end - self.out_start
        if unsent_bytes > self.core.congested_at_bytes and not self.congested:
            if self.fd >= 0 and not self.blocked:
                self.transmit()
                unsent_bytes = self.out_end - self.out_start
            if unsent_bytes > self.core.congested_at_bytes:
                self.congested = True
        return 0

    def append(self, data, size):
        p: cython.pointer(uint8_t) = self.reserve(size)
        memcpy(p, data, size)
        self.committed(size)
        return 0

    def transmit(self):
        sent: int64_t
        if self.fd < 0:
            if self.on_output is not None and self.out_end > self.out_start:
                self.on_output()
            return 0
        while self.out_start < self.out_end and not self.blocked:
            sent = send(self.fd, self.out + self.out_start, self.out_end - self.out_start)
            if sent < 0:
                if sent == -EINTR:
                    continue
                self.blocked = True
                if sent == -EAGAIN:
                    if self.on_output is not None:
                        self.on_output()
                else:
                    # The owner must not hear of it here: a delivery may be half routed.
                    self.out_start = self.out_end
                    self.lost_errno = cython.cast(cython.int, -sent)
                    self.core.lost_wires.append(self)
                break
            self.out_start += sent
            self.bytes_out += sent
            self.core.sends += 1
            self.core.sent_bytes += sent
        self.last_sent_s = self.core.now
        self.drained()
        return 0

    def drained(self):
        left: uint64_t = self.out_end - self.out_start
        if left == 0:
            self.out_start = 0
            self.out_end = 0
            if self.out_capacity * len(self.core.wires) > KEPT_OUTPUT_MAX_BYTES:
                free(self.out)
                self.out = cython.NULL
                self.out_capacity = 0
        if self.congested and left <= cython.cast(uint64_t, self.core.congested_at_bytes) // 2:
            self.congested = False
            self.wake_stalled()
        return 0

    def stall(self, link):
        if not link.stalled:
            link.stalled = True
            self.stalled.append(link)
        return 0

    def wake_stalled(self):
        links: list = self.stalled
        link: OutgoingLink
        if not links or self.closed:
            return 0
        self.stalled = []
        for link in links:
            link.stalled = False
            if not link.detached:
                link.became_ready()
        return 0


def _check_state(state: bytes) -> None:
    """Decodes a delivery state.

    Raises:
        ProtocolError: It is malformed.
    """
    composite_from(decode(state, 0)[0])


class Session:
    """One session's windows, its links by the peer's handle, and its unsettled deliveries."""

    def __init__(
        self,
        wire: Wire,
        local_channel: int,
        next_incoming_id: int,
        remote_window: int,
        incoming_window: int,
    ):
        """Makes a session.

        Args:
            wire: The connection it runs on.
            local_channel: The channel that this side sends on.
            next_incoming_id: The peer's next-outgoing-id.
            remote_window: The peer's incoming-window in frames.
            incoming_window: How many frames the peer may send ahead.
        """
        self.wire = wire
        self.core = wire.core
        self.local_channel = local_channel
        self.next_incoming_id = next_incoming_id
        self.remote_window = remote_window
        self.incoming_window = incoming_window
        self.incoming_window_max = incoming_window
        self.links = []
        self.links_due = []
        self.sent = UnsettledRing()

    def peer_began(self, next_incoming_id: int, remote_window: int) -> None:
        """Takes in the peer's answer to a begin that this side sent first."""
        self.next_incoming_id = next_incoming_id
        self.remote_window = remote_window

    def map_link(self, handle: int, link) -> None:
        """Lets transfers and flows with the peer's `handle` reach `link`; None unmaps it.

        For anything but a link's compiled end, one that was refused say, they are thrown away.
        """
        while len(self.links) <= handle:
            self.links.append(None)
        self.links[handle] = link

    def end(self) -> None:
        """Discards from now on whatever arrives; the links must have been detached."""
        self.ended = True

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent on this session and are not settled."""
        return len(self.sent)

    def mark_dirty(self):
        if not self.dirty:
            self.dirty = True
            self.core.dirty_sessions.append(self)
        return 0

    def replenish(self):
        """Opens the window again once half of it is used and what is held has gone on."""
        if self.flow_due or self.incoming_window > self.incoming_window_max // 2:
            return 0
        if self.held_bytes > 0 and self.core.held_bytes > self.core.held_bytes_max:
            if not self.is_starved:
                self.is_starved = True
                self.core.starved.append(self)
            return 0
        if self.holds_too_much():
            return 0
        self.flow_due = True
        return self.mark_dirty()

    def holds_too_much(self):
        """Says whether the window must stay as it is: one that holds nothing is never to blame."""
        if self.held_bytes > SESSION_HELD_MAX_BYTES:
            return True
        return self.held_bytes > 0 and self.core.held_bytes > self.core.held_bytes_max

    def link_of(self, handle):
        if handle >= cython.cast(uint32_t, len(self.links)):
            return None
        return cython.cast(object, self.links[handle])

    # -- transfer, flow, disposition

    def on_transfer(self, p, at, end):
        t: TransferFields
        problem: cython.p_const_char
        if not parse_common_transfer(p, at, end, cython.address(t)):
            problem = parse_transfer(p, at, end, cython.address(t))
            if problem != cython.NULL:
                self.wire.owner.on_violation("amqp:decode-error", problem.decode())
                return 0
        if self.incoming_window == 0:
            self.wire.owner.on_session_violation(
                self,
                "amqp:session:window-violation",
                f"a transfer beyond the incoming-window of {self.incoming_window_max} frames",
            )
            return 0
        self.incoming_window -= 1
        self.next_incoming_id += 1
        link = self.link_of(t.handle)
        if type(link) is not IncomingLink:
            if link is not None and type(link) is not OutgoingLink:
                return self.replenish()
            self.wire.owner.on_session_violation(
                self,
                "amqp:session:unattached-handle",
                f"a transfer on handle {t.handle}, where no sender is attached",
            )
            return 0
        cython.cast(IncomingLink, link).on_transfer(cython.address(t))
        return self.replenish()

    def on_flow(self, p, at, end):
        f: FlowFields
        problem: cython.p_const_char = parse_flow(p, at, end, cython.address(f))
        unseen: uint32_t
        widened: cython.bint
        if problem != cython.NULL:
            self.wire.owner.on_violation("amqp:decode-error", problem.decode())
            return 0
        unseen = self.next_outgoing_id
        if f.has_next_incoming_id:
            unseen -= f.next_incoming_id
        widened = self.remote_window <= 0
        self.remote_window = cython.cast(int64_t, f.incoming_window) - unseen
        if widened and self.remote_window > 0:
            self.wire.wake_stalled()
        if not f.has_handle:
            if f.echo:
                self.flow_due = True
                self.mark_dirty()
            return 0
        link = self.link_of(f.handle)
        if type(link) is OutgoingLink:
            return cython.cast(OutgoingLink, link).on_flow(cython.address(f))
        if type(link) is IncomingLink:
            return cython.cast(IncomingLink, link).on_flow(cython.address(f))
        if link is not None:
            return 0
        self.wire.owner.on_session_violation(
            self,
            "amqp:session:unattached-handle",
            f"a flow on handle {f.handle}, where no link is attached",
        )
        return 0

    def on_disposition(self, p, at, end):
        d: DispositionFields
        problem: cython.p_const_char = parse_disposition(p, at, end, cython.address(d))
        if problem != cython.NULL:
            self.wire.owner.on_violation("amqp:decode-error", problem.decode())
            return 0
        if d.from_receiver:
            # A state with fields goes on to another peer: what is malformed ends here.
            if d.state_size > 4 and d.code >= REJECTED and d.code != RELEASED:
                try:
                    _check_state(bytes_from(d.state, d.state_size))
                except ProtocolError as error:
                    self.wire.owner.on_violation("amqp:decode-error", f"disposition: {error}")
                    return 0
            return self.settle_sent(cython.address(d))
        self.wire.owner.on_sender_disposition(
            self,
            d.first,
            d.last,
            d.settled,
            bytes_from(d.state, d.state_size),
        )
        return 0

    def settle_sent(self, d):
        """Applies a receiver's disposition to every delivery in its range (AMQP 1.0 §2.6.12)."""
        verdict: Verdict
        first: uint32_t = d.first
        last: uint32_t = d.last
        if cython.cast(cython.int, last - first) < 0:
            self.wire.owner.on_session_violation(
                self, "amqp:invalid-field", f"a disposition from {first} back to {last}"
            )
            return 0
        if d.code == 0 and not d.settled:
            return 0
        # Settled without an outcome is the source's default outcome (AMQP 1.0 §3.5.3): released.
        if d.code == 0 or (d.code == RECEIVED and d.settled):
            verdict.code = RELEASED
            verdict.state = cython.NULL
        else:
            verdict.code = d.code
            verdict.state = d.state
        verdict.state_size = d.state_size
        verdict.settled = d.settled
        if self.sent.spilled:
            self.settle_spilled(first, last, cython.address(verdict))
        if not self.sent.clip(cython.address(first), cython.address(last)):
            return 0
        if verdict.settled:
            return self.settle_range(first, last, cython.address(verdict))
        return self.settle_each(first, last, cython.address(verdict))

    def settle_range(self, first, last, verdict):
        """Settles deliveries; what has one source, one link and consecutive tokens in one go."""
        left: uint32_t = last - first + 1
        count: uint32_t
        sent: Sent
        source: Terminus
        link: OutgoingLink
        while left:
            count = self.sent.take_run(last - left + 1, last, cython.address(sent))
            if count == 0:
                left -= 1
                continue
            left -= count
            link = cython.cast(OutgoingLink, self.core.termini[sent.link_index])
            if link is not None:
                link.unsettled -= count
            source = self.core.resolve(sent.source_index, sent.source_generation)
            if source is None:
                continue
            if count == 1:
                source.resolve_outcome(sent.token, verdict)
            else:
                source.resolve_run(sent.token, count, verdict)
        return 0

    def settle_each(self, first, last, verdict):
        """Passes on what a receiver says that has not settled yet."""
        sent: Sent
        left: uint32_t = last - first + 1
        while left:
            left -= 1
            if self.sent.find(last - left, cython.address(sent)):
                self.settle_one(cython.address(sent), verdict)
        return 0

    def settle_one(self, sent, verdict):
        """Tells one delivery's source its outcome, and confirms to a receiver that settles second."""
        refusal: Verdict
        reply: cython.int
        link: OutgoingLink
        delivery_id: uint32_t = sent.delivery_id
        link_index: uint32_t = sent.link_index
        reply = self.core.answer(sent.source_index, sent.source_generation, sent.token, verdict)
        if not verdict.settled:
            if reply == KEEP:
                return 0
            self.sent.forget(delivery_id)
            if reply == REFUSE:
                fill_verdict(cython.address(refusal), REJECTED, STALE_STATE)
                self.settle(
                    cython.address(self.to_receiver),
                    False,
                    delivery_id,
                    cython.address(refusal),
                    True,
                )
            else:
                self.settle(cython.address(self.to_receiver), False, delivery_id, verdict, True)
        link = cython.cast(OutgoingLink, self.core.termini[link_index])
        if link is not None:
            link.unsettled -= 1
        return 0

    def settle_spilled(self, first, last, verdict):
        sent: Sent
        for fields in self.sent.spilled_between(first, last):
            sent.delivery_id = fields[0]
            sent.link_index = fields[1]
            sent.source_index = fields[2]
            sent.source_generation = fields[3]
            sent.token = fields[4]
            if verdict.settled:
                self.sent.forget(sent.delivery_id)
            self.settle_one(cython.address(sent), verdict)
        return 0

    def confirm(self, delivery_id: int, code: int, state: bytes = None) -> None:
        """Settles a delivery that was sent, once its source kept the receiver waiting for that."""
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        self.sent.forget(delivery_id)
        self.settle(
            cython.address(self.to_receiver), False, delivery_id, cython.address(verdict), True
        )

    def lose_link(self, link_index: int) -> None:
        """Answers for every unsettled delivery of a link that is going: they are in doubt."""
        verdict: Verdict
        fill_verdict(cython.address(verdict), LOST, None)
        sent: Sent
        cursor: uint32_t = self.sent.first
        while self.sent.take_next(link_index, cython.address(cursor), cython.address(sent)):
            self.core.answer(
                sent.source_index, sent.source_generation, sent.token, cython.address(verdict)
            )
        for key, fields in list(self.sent.spilled.items()):
            if fields[0] == link_index:
                del self.sent.spilled[key]
                self.core.answer(fields[1], fields[2], fields[3], cython.address(verdict))

    # -- what is due at the end of a batch

    def settle(self, r, as_receiver, delivery_id, v, settled):
        """Joins a settlement to the open range, or writes that and opens a new one."""
        simple: cython.bint = (
            v.code == ACCEPTED
            or v.code == RELEASED
            or v.state == cython.NULL
            or v.state_size + HEADER_ROOM_BYTES > self.wire.max_frame_out
        )
        if r.open and (
            not simple or r.code != v.code or r.settled != settled or delivery_id != r.last + 1
        ):
            self.write_range(r, as_receiver, cython.NULL, 0)
        if r.open:
            r.last = delivery_id
            return 0
        r.first = r.last = delivery_id
        r.code = v.code
        r.settled = settled
        r.open = True
        if simple:
            return self.mark_dirty()
        return self.write_range(r, as_receiver, v.state, v.state_size)

    def settle_more(self, r, as_receiver, delivery_id, count, v, settled):
        """Does the same for `count` consecutive deliveries."""
        index: uint32_t
        self.settle(r, as_receiver, delivery_id, v, settled)
        if r.open:
            r.last = delivery_id + count - 1
            return 0
        for index in range(1, count):
            self.settle(r, as_receiver, delivery_id + index, v, settled)
        return 0

    def write_range(self, r, as_receiver, state, state_size):
        p: cython.pointer(uint8_t)
        frame: cython.pointer(uint8_t)
        fixed: bytes = FAILED_STATE
        if not r.open:
            return 0
        r.open = False
        if self.wire.closed:
            return 0
        if state == cython.NULL:
            if r.code == ACCEPTED:
                fixed = ACCEPTED_STATE
            elif r.code == RELEASED:
                fixed = RELEASED_STATE
            elif r.code == REJECTED:
                fixed = REJECTED_STATE
            state = octets_of(fixed)
            state_size = cython.cast(uint32_t, len(fixed))
        frame = self.wire.reserve(HEADER_ROOM_BYTES + state_size)
        # A list32 where the state is long: `_end_performative` has room for one octet of size.
        if state_size > 128:
            return self._write_long_range(r, as_receiver, state, state_size)
        p = put_performative(frame, self.local_channel, 0x15, 5)
        p = put_bool(p, as_receiver)
        p = store_uint(p, r.first)
        p = store_uint(p, r.last)
        p = put_bool(p, r.settled)
        memcpy(p, state, state_size)
        return self.wire.committed(end_performative(frame, p + state_size, 0))

    def _write_long_range(self, r, as_receiver, state, state_size):
        frame: cython.pointer(uint8_t) = self.wire.reserve(HEADER_ROOM_BYTES + state_size)
        p: cython.pointer(uint8_t) = put_performative(frame, self.local_channel, 0x15, 5)
        size: uint32_t
        frame[11] = 0xD0
        p = frame + 20
        p = put_bool(p, as_receiver)
        p = store_uint(p, r.first)
        p = store_uint(p, r.last)
        p = put_bool(p, r.settled)
        memcpy(p, state, state_size)
        size = cython.cast(uint32_t, p - frame) + state_size
        store_u32(frame + 12, size - 16)
        store_u32(frame + 16, 5)
        store_u32(frame, size)
        return self.wire.committed(size)

    def write_flow(self, incoming, outgoing, echo):
        """Writes the session's state, with a link's where one is given (AMQP 1.0 §2.7.4)."""
        frame: cython.pointer(uint8_t) = self.wire.reserve(HEADER_ROOM_BYTES)
        count: uint8_t = 4 if incoming is None and outgoing is None else 9
        if echo:
            count = 10
        p: cython.pointer(uint8_t) = put_performative(frame, self.local_channel, 0x13, count)
        if not self.holds_too_much():
            self.incoming_window = self.incoming_window_max
        p = store_uint(p, self.next_incoming_id)
        p = store_uint(p, self.incoming_window)
        p = store_uint(p, self.next_outgoing_id)
        p = store_uint(p, 0x7FFFFFFF)
        self.flow_due = False
        if incoming is not None:
            incoming.promise()
            p = store_uint(p, incoming.handle)
            p = store_uint(p, incoming.delivery_count)
            p = store_uint(p, incoming.credit)
            p[0] = 0x40
            p = put_bool(p + 1, incoming.drain)
        elif outgoing is not None:
            p = store_uint(p, outgoing.handle)
            p = store_uint(p, outgoing.delivery_count)
            p = store_uint(p, outgoing.credit)
            p = store_uint(p, outgoing.outstanding_available())
            p = put_bool(p, outgoing.drain)
        elif echo:
            memset(p, 0x40, 5)
            p += 5
        if echo:
            p = put_bool(p, True)
        return self.wire.committed(end_performative(frame, p, 0))

    def send_flow(self, echo: bool = False) -> None:
        """Tells the peer this side's windows now, and asks for its own where `echo` is set."""
        self.write_flow(None, None, echo)

    def write_settlements(self) -> None:
        """Says the outcomes that are due, before something is said that ends a link or more."""
        if not self.ended:
            self.write_range(cython.address(self.to_sender), True, cython.NULL, 0)
            self.write_range(cython.address(self.to_receiver), False, cython.NULL, 0)

    def write_due(self):
        links: list = self.links_due
        link: IncomingLink
        self.write_range(cython.address(self.to_sender), True, cython.NULL, 0)
        self.write_range(cython.address(self.to_receiver), False, cython.NULL, 0)
        if links:
            self.links_due = []
            for link in links:
                link.flow_due = False
                if not link.detached:
                    self.write_flow(link, None, False)
        if self.flow_due:
            self.write_flow(None, None, False)
        return 0


class IncomingLink(Terminus):
    """A link on which the peer sends: credit given, deliveries counted, the entry they go to."""

    def __init__(
        self,
        session: Session,
        handle: int,
        entry=None,
        space=None,
        window: int = 0,
        max_message_size: int = 0,
    ):
        """Makes the receiving end of a link.

        Args:
            session: The session it is attached on.
            handle: The handle this side sends its flows with.
            entry: Where its deliveries go; None for a link to the null target, whose messages name
                their address themselves.
            space: The addresses of its virtual host, for such a link.
            window: Deliveries that may be unsettled or held; 0 leaves credit to `grant`.
            max_message_size: Largest message in bytes; 0 for no limit.
        """
        self.core = session.core
        self.session = session
        self.handle = handle
        self.entry = entry
        self.space = space
        self.window = window
        self.max_message_size = max_message_size
        self.core.register(self)

    # -- credit

    def start_at(self, delivery_count: int) -> None:
        """Takes over where its sender starts to count (AMQP 1.0 §2.7.3, initial-delivery-count)."""
        self.delivery_count = delivery_count
        self.limit = delivery_count
        if self.credit:
            self.flow_later()

    def grant(self, credit: int, drain: bool = False) -> None:
        """Sets the credit to `credit`, as one that counts its own messages does."""
        self.credit = credit
        self.drain = drain
        self.flow_later()

    def top_up(self):
        """Gives credit for what is neither unsettled nor held, a quarter of the window at a time."""
        used: uint32_t = self.unsettled + self.charged
        target: uint32_t = self.window - used if self.window > used else 0
        # What is due anyway carries as much as there is.
        quantum: uint32_t = 1 if self.flow_due else self.window >> 2
        ration: uint32_t
        entry: AddressEntry = self.entry
        if self.window == 0 or self.detached:
            return 0
        if entry is not None and entry.distribution != MULTICAST:
            if not entry.offered:
                return self._take_back_credit()
            if target < self.credit + quantum:
                return 0
            ration = entry.ration(self)
            if ration < target:
                entry.rationed = True
                target = ration
                quantum = min(quantum, ration >> 1)
        if target > self.credit and target - self.credit >= quantum:
            self.credit = target
            return self.flow_later()
        return 0

    def _take_back_credit(self):
        if self.credit:
            self.credit = 0
            self.flow_later()
        return 0

    def open_credit(self) -> None:
        """Gives the first credit, once the attach has been answered."""
        self.top_up()

    def flow_later(self):
        if not self.flow_due and not self.detached:
            self.flow_due = True
            self.session.links_due.append(self)
            self.session.mark_dirty()
        return 0

    def promise(self):
        """Notes the furthest delivery-count the peer was ever told it may reach.

        Where credit is taken back, transfers may be under way already: they are taken, as AMQP 1.0
        §2.6.7 lets a receiver do.
        """
        limit: uint32_t = self.delivery_count + self.credit
        if cython.cast(cython.int, limit - self.limit) > 0:
            self.limit = limit

    def on_flow(self, f):
        passed: uint32_t
        if f.has_delivery_count:
            passed = f.delivery_count - self.delivery_count
            if 0 < passed <= self.credit:
                self.delivery_count += passed
                self.credit -= passed
        if f.echo:
            self.flow_later()
        if self.drain and self.credit == 0:
            self.drain = False
            if self.owner is not None:
                self.owner.on_drained(self)
        return 0

    # -- deliveries

    def on_transfer(self, t):
        s: Shipment
        if self.detached:
            return 0
        if self.in_delivery:
            return self.on_fragment(t)
        if self.begin_delivery(t) == 0:
            return 0
        if t.more:
            return self.on_fragment(t)
        self.in_delivery = False
        if not t.settled:
            self.unsettled += 1
        s.data = t.payload
        s.size = t.payload_size
        s.format = t.message_format
        s.settled = t.settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = t.delivery_id
        s.tag = t.tag
        s.tag_size = t.tag_size
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        self.route(cython.address(s))
        return self.top_up()

    def begin_delivery(self, t):
        """Checks and counts a delivery's first transfer; returns 0 where it goes no further."""
        if not t.has_delivery_id:
            self.session.wire.owner.on_session_violation(
                self.session, "amqp:invalid-field", "a delivery's first transfer has no delivery-id"
            )
            return 0
        if self.credit:
            self.credit -= 1
        elif cython.cast(cython.int, self.limit - self.delivery_count) <= 0:
            self.session.wire.owner.on_link_violation(
                self, "amqp:link:transfer-limit-exceeded", "a transfer beyond the link credit"
            )
            return 0
        self.delivery_count += 1
        self.deliveries += 1
        if t.aborted:
            self.top_up()
            return 0
        if self.max_message_size and t.payload_size > self.max_message_size:
            self._too_large()
            return 0
        self.in_delivery = True
        self.discarding = False
        self.current = cython.NULL
        self.current_id = t.delivery_id
        self.current_tag_size = min(t.tag_size, cython.cast(uint32_t, 32))
        if self.current_tag_size:
            memcpy(self.current_tag, t.tag, self.current_tag_size)
        self.current_answered = False
        self.current_settled = t.settled
        self.current_size = 0
        return 1

    def _too_large(self):
        self.session.wire.owner.on_link_violation(
            self,
            "amqp:link:message-size-exceeded",
            f"a message of more than {self.max_message_size} bytes",
        )

    def on_fragment(self, t):
        """Takes one transfer of a delivery that has several (AMQP 1.0 §2.6.14)."""
        if t.has_delivery_id and t.delivery_id != self.current_id:
            self.session.wire.owner.on_session_violation(
                self.session,
                "amqp:invalid-field",
                f"delivery {t.delivery_id} begins before delivery {self.current_id} has ended",
            )
            return 0
        if t.aborted:
            self.abort_delivery()
            return self.top_up()
        self.current_size += t.payload_size
        if self.max_message_size and self.current_size > self.max_message_size:
            self.abort_delivery()
            self._too_large()
            return 0
        if self.current == cython.NULL and not self.discarding:
            self._start_fragments(t)
        if self.current != cython.NULL:
            if self.current.assembled and self._has_no_room(t.payload_size):
                return 0
            self.current.complete = not t.more
            self.forward_fragment(self.current, t.payload, t.payload_size)
        if not t.more:
            self.finish_delivery()
            return self.top_up()
        return 0

    def _has_no_room(self, size):
        """Detaches the link where the message it sends cannot be assembled any further."""
        if self.core.held_bytes + size <= self.core.held_bytes_max:
            return False
        self.abort_delivery()
        self.session.wire.owner.on_link_violation(
            self,
            "amqp:resource-limit-exceeded",
            f"messages under way take {self.core.held_bytes_max} bytes already",
        )
        return True

    def _start_fragments(self, t):
        s: Shipment
        entry: AddressEntry = self.choose_entry(t.payload, t.payload_size)
        self.current_entry = entry
        self.current_outlets = None
        if not self.current_settled:
            self.unsettled += 1
        if entry is None:
            self.discarding = True
            return 0
        if not entry.assembles:
            return self.start_streaming(entry, t)
        self._describe(cython.address(s), t)
        self.current = self.core.new_delivery(cython.address(s))
        self.current.assembled = True
        return 0

    def _describe(self, s, t):
        s.data = cython.NULL
        s.size = 0
        s.format = t.message_format
        s.settled = self.current_settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = self.current_id
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation

    def start_streaming(self, entry, t):
        """Chooses the outlets of a delivery that cuts through frame by frame."""
        s: Shipment
        d: cython.pointer(Delivery)
        outlet: Terminus
        self._describe(cython.address(s), t)
        s.data = t.payload
        s.size = t.payload_size
        entry.received += 1
        if entry.distribution == MULTICAST:
            return self._stream_multicast(entry, cython.address(s))
        if not entry.outlets:
            self.discarding = True
            return 0
        d = self.core.new_delivery(cython.address(s))
        self.current = d
        self._charge(d)
        outlet = entry.pick(cython.address(s)) if entry.held_first == cython.NULL else None
        if outlet is None:
            return entry.hold(d)
        entry.delivered += 1
        self.current_outlets = [outlet]
        return cython.cast(OutgoingLink, outlet).enqueue(d)

    def _stream_multicast(self, entry, s):
        outlet: Terminus
        record: uint32_t = 0
        outlets: list = [o for o in entry.matching() if not self._refused(o, s)]
        if not outlets:
            entry.unmatched += 1
            self.discarding = True
            return 0
        if not s.settled:
            record = self.core.fanouts.open(s)
            s.source_index = self.core.fanouts.index
            s.source_generation = self.core.fanouts.generation
            s.token = record
        self.current = self.core.new_delivery(s)
        self.current_outlets = outlets
        for outlet in outlets:
            if not s.settled:
                self.core.fanouts.records[record].waiting += 1
            entry.delivered += 1
            cython.cast(OutgoingLink, outlet).enqueue(self.current)
            cython.cast(OutgoingLink, outlet).apply_policy(self.current)
        if not s.settled:
            self.core.fanouts.close(record)
        return 0

    def _refused(self, outlet, s):
        return outlet.refuses(s)

    def _charge(self, d):
        d.charges += 1
        if d.charges == 1 and d.settled:
            self.charged += 1

    def forward_fragment(self, d, data, size):
        """Streams a frame to the outlets that are ready for it, keeps it for those that are not."""
        outlet: OutgoingLink
        chunk: cython.pointer(Chunk) = cython.NULL
        waits: cython.int
        begun: cython.bint = d.begun
        d.begun = True
        if self.current_outlets is None:
            self.core.append_chunk(d, data, size)
            return 0
        for outlet in self.current_outlets:
            waits = outlet.stream(d, data, size, begun)
            if waits == 0:
                continue
            if chunk == cython.NULL:
                chunk = self.core.append_chunk(d, data, size)
            chunk.refs += 1
            outlet.backlog_bytes += size
            if waits == 2:
                outlet.cursor = chunk
        return 0

    def finish_delivery(self):
        """Ends a delivery of several frames: routes what was assembled, answers what was dropped."""
        d: cython.pointer(Delivery) = self.current
        entry: AddressEntry = self.current_entry
        self.in_delivery = False
        self.current = cython.NULL
        self.current_entry = None
        outlets: list = self.current_outlets
        self.current_outlets = None
        if d == cython.NULL:
            if not self.current_settled:
                accepted: cython.bint = (
                    entry is not None
                    and entry.distribution == MULTICAST
                    and not entry.release_unmatched
                )
                self.reply(self.current_id, ACCEPTED if accepted else RELEASED, True)
            elif entry is not None:
                entry.dropped += 1
            return 0
        try:
            if d.assembled:
                self._route_assembled(entry, d)
            elif outlets is None:
                entry.serve_held()
        finally:
            self.core.release(d)
        return 0

    def _route_assembled(self, entry, d):
        s: Shipment
        joined: cython.pointer(uint8_t) = _join(d)
        _ship(cython.address(s), d, joined)
        s.tag = self.current_tag
        s.tag_size = self.current_tag_size
        try:
            entry.route(self, cython.address(s))
        finally:
            free(joined)
        return 0

    def abort_delivery(self):
        """Gives up a delivery whose sender aborted it or has gone (AMQP 1.0 §2.7.5)."""
        d: cython.pointer(Delivery) = self.current
        entry: AddressEntry = self.current_entry
        outlets: list = self.current_outlets
        outlet: OutgoingLink
        if not self.in_delivery:
            return 0
        self.in_delivery = False
        self.current = cython.NULL
        self.current_entry = None
        self.current_outlets = None
        counted: cython.bint = d != cython.NULL or self.discarding
        if counted and not self.current_settled and not self.current_answered:
            self.unsettled -= 1
        self.discarding = False
        if d == cython.NULL:
            return 0
        d.aborted = True
        d.complete = True
        if not d.settled and not self.current_answered:
            self._disown(d)
        if outlets is None:
            entry.discard_held(d)
        else:
            for outlet in outlets:
                if not outlet.detached:
                    outlet.abandon(d)
        return self.core.release(d)

    def _disown(self, d):
        """Has nobody told of an aborted delivery's outcome: its sender holds it settled."""
        if d.source_index == self.core.fanouts.index:
            self.core.fanouts.records[d.token].source_index = NOWHERE
        else:
            d.source_index = NOWHERE

    def choose_entry(self, data, size):
        """Finds where a message goes: the link's own entry, or that of its `to`."""
        found: octets = cython.NULL
        length: uint32_t = 0
        if self.entry is not None:
            return self.entry
        if find_to(data, size, cython.address(found), cython.address(length)) != 1:
            return None
        address: bytes = bytes_from(found, length)
        if self.permit is not None and not self.permit[address]:
            return None
        return self.space.find(address)

    def route(self, s):
        entry: AddressEntry
        root: AddressEntry
        prefix: bytes
        found: octets = cython.NULL
        length: uint32_t = 0
        skip: uint32_t
        if self.entry is not None:
            return self.entry.route(self, s)
        if find_to(s.data, s.size, cython.address(found), cython.address(length)) != 1:
            return self._unroutable(s)
        if self.permit is None and self.space.topic_root is not None:
            root = self.space.topic_root
            prefix = self.space.topic_prefix
            skip = cython.cast(uint32_t, len(prefix))
            if length > skip and _starts_with(found, prefix, skip):
                root.received += 1
                return root.multicast(
                    s,
                    root.interest.match_octets(found + skip, length - skip),
                )
        entry = self.choose_entry(s.data, s.size)
        if entry is None:
            return self._unroutable(s)
        return entry.route(self, s)

    def run_limit(self, size):
        """Says how many deliveries of about `size` bytes may be routed in one go; 0 for none."""
        limit: uint64_t = RUN_MAX
        share: uint64_t
        entry: AddressEntry = self.entry
        if self.detached or self.in_delivery or self.wants_tags:
            return 0
        limit = min(limit, cython.cast(uint64_t, self.credit))
        limit = min(limit, cython.cast(uint64_t, self.session.incoming_window))
        if entry is not None and entry.distribution == MULTICAST:
            share = cython.cast(uint64_t, len(entry.outlets)) * (size + 32) + 1
            limit = min(limit, cython.cast(uint64_t, UNFLUSHED_MAX_BYTES) // share + 1)
        return cython.cast(uint32_t, limit)

    def route_run(self, pieces, count, settled):
        """Routes a run; its frames have been checked against credit, window and size."""
        s: Shipment
        entry: AddressEntry = self.entry
        self.credit -= count
        self.delivery_count += count
        self.deliveries += count
        if not settled:
            self.unsettled += count
        s.format = 0
        s.settled = settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        if entry is None:
            self._route_each(cython.address(s), pieces, count)
            return self.top_up()
        entry.received += count
        if entry.distribution == MULTICAST:
            entry.multicast_run(cython.address(s), pieces, count)
        else:
            entry.anycast_run(self, cython.address(s), pieces, count)
        return self.top_up()

    def _route_each(self, s, pieces, count):
        """Routes messages that name their addresses themselves."""
        index: uint32_t
        for index in range(count):
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            self.route(s)
        return 0

    def _unroutable(self, s):
        """Answers for a message whose `to` is missing, forbidden or leads nowhere."""
        if self.space is not None:
            self.space.unroutable += 1
        if not s.settled:
            self.reply(cython.cast(uint32_t, s.token), RELEASED, True)
        return 0

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if self.detached:
            return SETTLE
        self.unsettled -= 1
        self.session.settle(
            cython.address(self.session.to_sender),
            True,
            cython.cast(uint32_t, token),
            verdict,
            not self.settles_second or verdict.code != ACCEPTED,
        )
        if not self.in_delivery:
            self.top_up()
        elif token == self.current_id:
            self.current_answered = True
        return SETTLE

    def resolve_run(self, token, count, verdict):
        if verdict.code == RECEIVED or self.detached:
            return 0
        self.unsettled -= count
        self.session.settle_more(
            cython.address(self.session.to_sender),
            True,
            cython.cast(uint32_t, token),
            count,
            verdict,
            not self.settles_second or verdict.code != ACCEPTED,
        )
        if not self.in_delivery:
            self.top_up()
        elif self.current_id - cython.cast(uint32_t, token) < count:
            self.current_answered = True
        return 0

    def reply(self, token, code, settled):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, None)
        verdict.settled = settled
        self.resolve_outcome(token, cython.address(verdict))
        return 0

    def detach(self) -> None:
        """Ends the link: a delivery in the middle is aborted, outcomes still to come are dropped."""
        if self.detached:
            return
        self.abort_delivery()
        self.detached = True
        if self.entry is not None:
            self.entry.remove_source(self)
        self.session.held_bytes -= self.held_bytes
        self.session.replenish()
        self.core.unregister(self)


@cython.cfunc
@cython.inline
def _starts_with(p: octets, prefix: bytes, size: uint32_t) -> cython.bint:
    at: uint32_t
    q: octets = octets_of(prefix)
    for at in range(size):
        if p[at] != q[at]:
            return False
    return True


def _join(d):
    """Copies a complete delivery's chunks into one block, which the caller frees."""
    joined: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), malloc(d.size_bytes + 1))
    if joined == cython.NULL:
        raise MemoryError("no room to assemble a message")
    at: uint64_t = 0
    chunk: cython.pointer(Chunk) = d.first
    while chunk != cython.NULL:
        memcpy(joined + at, chunk.data, chunk.size)
        at += chunk.size
        chunk = chunk.next
    return joined


@cython.cfunc
@cython.exceptval(check=False)
def _ship(s: cython.pointer(Shipment), d: cython.pointer(Delivery), data: octets) -> cython.void:
    """Describes a whole delivery as a shipment again."""
    s.data = data
    s.size = cython.cast(uint32_t, d.size_bytes)
    s.format = d.format
    s.settled = d.settled
    s.source_index = d.source_index
    s.source_generation = d.source_generation
    s.token = d.token
    s.tag = cython.NULL
    s.tag_size = 0
    s.origin = d.origin
    s.via_index = d.charged_index
    s.via_generation = d.charged_generation


class OutgoingLink(Terminus):
    """A link on which this side sends: the peer's credit, and a queue for what must wait."""

    def __init__(self, session: Session, handle: int, presettles: bool = False, next_tag: int = 0):
        """Makes the sending end of a link.

        Args:
            session: The session it is attached on.
            handle: The handle this side sends its transfers with.
            presettles: Whether every delivery is sent settled (snd-settle-mode 1).
            next_tag: The first delivery-tag's number.
        """
        self.core = session.core
        self.session = session
        self.handle = handle
        self.presettles = presettles
        self.next_tag = next_tag
        self.backlog_bytes_max = 4 * 1024 * 1024
        self.core.register(self)
        self.make_template()

    def __dealloc__(self):
        free(self.queue)

    def can_start(self):
        wire: Wire = self.session.wire
        if self.credit == 0 or self.detached:
            return False
        if wire.congested or self.session.remote_window <= 0:
            if not self.stalled:
                wire.stall(self)
            return False
        return not wire.closed

    def is_ready(self):
        return self.queue_count == 0 and self.can_start()

    def outstanding(self):
        return self.unsettled + self.queue_count

    @property
    def is_midway(self) -> bool:
        """Says whether a delivery has been sent in part."""
        return self.started

    @property
    def waits_for(self):
        """Names the link whose sender leaves others waiting here, or None.

        That is one with a delivery under way of which all that came was sent on, that could send
        more, and behind which there are deliveries of others.
        """
        d: cython.pointer(Delivery)
        link: IncomingLink
        entry: AddressEntry
        if not self.queue_count or not self.started or self.cursor != cython.NULL:
            return None
        d = self.queue[self.queue_head]
        if d.complete:
            return None
        if self.queue_count == 1:
            if type(self.feeder) is not AddressEntry:
                return None
            entry = self.feeder
            if entry.held_first == cython.NULL:
                return None
        link = self.core.resolve(d.charged_index, d.charged_generation)
        return link if link is not None and link.session.incoming_window else None

    def pardon(self) -> None:
        """Takes back that its backlog is too large: that is another's fault."""
        self.overdue = False

    def outstanding_available(self):
        """Counts what waits here, for the `available` of a flow."""
        return self.queue_count

    def refuses(self, s):
        if self.no_local and s.origin == self.session.wire.origin:
            return True
        if self.selector is None:
            return False
        try:
            return not self.selector(bytes_from(s.data, s.size))
        except Exception as error:
            # A consumer's selector must not harm whoever publishes.
            if self.core.on_error is None:
                raise
            self.core.on_error(self, error)
            return True

    def picky(self):
        """Says whether `refuses` has to be asked for each message."""
        return self.no_local or self.selector is not None

    def frame_room(self):
        """Counts the payload bytes that fit one of the peer's frames beside a transfer's header."""
        return self.session.wire.max_frame_out - HEADER_ROOM_BYTES

    # -- writing

    def make_template(self):
        """Prepares a single-frame transfer's header with a four-octet tag.

        What changes from one delivery to the next stands at fixed places from its end: the
        delivery-id 12 octets before it, the tag 6, `settled` 1.
        """
        p: cython.pointer(uint8_t) = put_performative(
            self.template, self.session.local_channel, 0x14, 5
        )
        p = store_uint(p, self.handle)
        p[0] = 0x70
        p[5] = 0xA0
        p[6] = 4
        p[11] = 0x43
        p[12] = 0x41
        p += 13
        self.template_size = end_performative(self.template, p, 0)
        return 0

    def take_run(self, s, pieces, count):
        room: uint32_t = self.frame_room()
        index: uint32_t
        size_bytes: uint64_t = 0
        if self.queue_count or not self.can_start():
            return 0
        count = self.run_limit(count)
        for index in range(count):
            if pieces[index].size > room:
                count = index
                break
            size_bytes += pieces[index].size
        if count == 0:
            return Terminus.take_run(self, s, pieces, 1)
        self.write_run(s, pieces, count, size_bytes)
        if self.presettles and not s.settled:
            for index in range(count):
                self._answer(s.source_index, s.source_generation, pieces[index].token, ACCEPTED)
        return count

    def run_limit(self, count):
        """Says how many of `count` deliveries the peer's credit and window allow."""
        count = min(count, self.credit)
        if count > self.session.remote_window:
            count = cython.cast(uint32_t, self.session.remote_window)
        return count

    def write_run(self, s, pieces, count, size_bytes):
        """Writes single-frame deliveries of one source; the caller has checked room for them.

        `size_bytes` is that of all payloads together.
        """
        session: Session = self.session
        wire: Wire = session.wire
        # A copy here can be no part of what is written, so that its bytes stay in registers.
        header: uint8_t[TEMPLATE_MAX_BYTES]
        header_size: uint32_t = self.template_size
        index: uint32_t
        total: uint32_t = cython.cast(uint32_t, size_bytes) + count * header_size
        settled: cython.bint = s.settled or self.presettles
        delivery_id: uint32_t = session.next_delivery_id
        tag: uint32_t = cython.cast(uint32_t, self.next_tag)
        size: uint32_t
        p: cython.pointer(uint8_t) = wire.reserve(total + TEMPLATE_MAX_BYTES)
        memcpy(header, self.template, TEMPLATE_MAX_BYTES)
        if not settled:
            header[header_size - 1] = 0x42
        for index in range(count):
            size = pieces[index].size
            # The whole template, for a copy of known size is quicker; the payload covers the rest.
            memcpy(p, header, TEMPLATE_MAX_BYTES)
            store_u32(p, header_size + size)
            store_u32(p + header_size - 12, delivery_id)
            store_u32(p + header_size - 6, tag)
            memcpy(p + header_size, pieces[index].data, size)
            p += header_size + size
            delivery_id += 1
            tag += 1
        self.next_tag = tag
        if not settled:
            session.sent.track_run(session.next_delivery_id, self.index, s, pieces, count)
        else:
            session.sent.skip(session.next_delivery_id, delivery_id)
        session.next_delivery_id = delivery_id
        session.next_outgoing_id += count
        session.remote_window -= count
        self.delivery_count += count
        self.credit -= count
        self.deliveries += count
        if not settled:
            self.unsettled += count
        return wire.committed(total)

    def take(self, s):
        d: cython.pointer(Delivery)
        if s.size <= self.frame_room():
            self.write_first(s, s.data, s.size, False)
            if self.presettles and not s.settled:
                self._answer(s.source_index, s.source_generation, s.token, ACCEPTED)
            return 0
        d = self.core.new_delivery(s)
        d.complete = True
        self.core.append_chunk(d, s.data, s.size)
        # The first frame goes out here: only the shipment knows the delivery-tag.
        self.enqueue(d)
        self.started = True
        self.cursor = d.first
        self.cursor_offset = self.frame_room()
        self.write_first(s, s.data, self.cursor_offset, True)
        self.pump()
        return self.core.release(d)

    def _answer(self, index, generation, token, code):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, None)
        return self.core.answer(index, generation, token, cython.address(verdict))

    def write_first(self, s, data, size, more):
        """Writes a delivery's first transfer; the caller has checked credit, window and size."""
        session: Session = self.session
        wire: Wire = session.wire
        frame: cython.pointer(uint8_t) = wire.reserve(HEADER_ROOM_BYTES + size)
        delivery_id: uint32_t = session.next_delivery_id
        settled: cython.bint = s.settled or self.presettles
        p: cython.pointer(uint8_t) = put_performative(
            frame, session.local_channel, 0x14, 6 if more else 5
        )
        p = store_uint(p, self.handle)
        p[0] = 0x70
        store_u32(p + 1, delivery_id)
        p[5] = 0xA0
        if s.tag_size and s.tag_size <= 32 and s.source_index != s.via_index:
            p[6] = cython.cast(uint8_t, s.tag_size)
            memcpy(p + 7, s.tag, s.tag_size)
            p += 7 + s.tag_size
        else:
            p[6] = 4
            store_u32(p + 7, cython.cast(uint32_t, self.next_tag))
            self.next_tag += 1
            p += 11
        if s.format == 0:
            p[0] = 0x43
            p += 1
        else:
            p[0] = 0x70
            store_u32(p + 1, s.format)
            p += 5
        p = put_bool(p, settled)
        if more:
            p = put_bool(p, True)
        if size:
            memcpy(p, data, size)
        session.next_delivery_id = delivery_id + 1
        session.next_outgoing_id += 1
        session.remote_window -= 1
        self.delivery_count += 1
        self.credit -= 1
        self.deliveries += 1
        if not settled:
            self.unsettled += 1
            session.sent.track(delivery_id, self.index, s)
        else:
            session.sent.skip(delivery_id, delivery_id + 1)
        return wire.committed(end_performative(frame, p, size))

    def write_more(self, data, size, more, aborted):
        """Writes a further transfer of the delivery that was started last on this link."""
        session: Session = self.session
        frame: cython.pointer(uint8_t) = session.wire.reserve(HEADER_ROOM_BYTES + size)
        p: cython.pointer(uint8_t) = put_performative(
            frame, session.local_channel, 0x14, 10 if aborted else 6
        )
        p = store_uint(p, self.handle)
        memset(p, 0x40, 4)
        p = put_bool(p + 4, more)
        if aborted:
            memset(p, 0x40, 3)
            p = put_bool(p + 3, True)
        if size:
            memcpy(p, data, size)
        session.next_outgoing_id += 1
        session.remote_window -= 1
        return session.wire.committed(end_performative(frame, p, size))

    # -- the queue of what must wait

    def push(self, d):
        """Queues a delivery with all the chunks it has, and sends what can be sent."""
        self.enqueue(d)
        self.pump()
        return 0

    def enqueue(self, d):
        chunk: cython.pointer(Chunk) = d.first
        if self.queue_count == self.queue_capacity:
            self._grow_queue()
        self.queue[(self.queue_head + self.queue_count) & (self.queue_capacity - 1)] = d
        self.queue_count += 1
        d.refs += 1
        if self.backlog_bytes == 0:
            self.blocked_since_s = self.core.now
        while chunk != cython.NULL:
            chunk.refs += 1
            self.backlog_bytes += chunk.size
            chunk = chunk.next
        return 0

    def _grow_queue(self):
        capacity: uint32_t = self.queue_capacity * 2 if self.queue_capacity else 4
        at: uint32_t
        grown: cython.pointer(cython.pointer(Delivery)) = cython.cast(
            cython.pointer(cython.pointer(Delivery)),
            malloc(capacity * cython.sizeof(cython.pointer(Delivery))),
        )
        if grown == cython.NULL:
            raise MemoryError("no room for a longer queue")
        for at in range(self.queue_count):
            grown[at] = self.queue[(self.queue_head + at) & (self.queue_capacity - 1)]
        free(self.queue)
        self.queue = grown
        self.queue_capacity = capacity
        self.queue_head = 0

    def pump(self):
        """Sends from the queue's head for as long as the peer takes it."""
        while self.queue_count and not self.detached:
            if not self.started and self.core.is_over(self.queue[self.queue_head]):
                self._drop_head()
                continue
            if self.queue_count > 1 and self.pump_run():
                continue
            if self.pump_head(self.queue[self.queue_head]) == 0:
                return 0
            self.pop()
        return 0

    def pump_run(self):
        """Sends deliveries of one frame and one source from the queue's head in one go.

        Returns how many it sent.
        """
        s: Shipment
        pieces: Piece[RUN_MAX]
        d: cython.pointer(Delivery) = self.queue[self.queue_head]
        room: uint32_t = self.frame_room()
        size_bytes: uint64_t = 0
        count: uint32_t = 0
        limit: uint32_t
        index: uint32_t
        if self.started or not self.can_start():
            return 0
        limit = self.run_limit(min(self.queue_count, cython.cast(uint32_t, RUN_MAX)))
        _ship(cython.address(s), d, cython.NULL)
        while count < limit:
            d = self.queue[(self.queue_head + count) & (self.queue_capacity - 1)]
            if (
                not _is_single_frame(d, room)
                or d.settled != s.settled
                or d.format != 0
                or d.expires_s
                or d.source_index != s.source_index
                or d.source_generation != s.source_generation
            ):
                break
            pieces[count].data = d.first.data
            pieces[count].size = d.first.size
            pieces[count].token = d.token
            size_bytes += d.first.size
            count += 1
        if count < 2:
            return 0
        self.write_run(cython.address(s), pieces, count, size_bytes)
        self.blocked_since_s = self.core.now
        for index in range(count):
            self.pop()
        return count

    def pump_head(self, d):
        """Sends the head delivery's chunks; returns 1 once it is done with."""
        chunk: cython.pointer(Chunk)
        if d.aborted:
            if self.started:
                if not self.may_go_on():
                    return 0
                self.write_more(cython.NULL, 0, False, True)
            return 1
        if not self.started:
            self.cursor = d.first
            self.cursor_offset = 0
        while self.cursor != cython.NULL:
            chunk = self.cursor
            if (
                self.send_piece(d, chunk.data, chunk.size, d.complete and chunk.next == cython.NULL)
                == 0
            ):
                return 0
            self.cursor = chunk.next
            self.cursor_offset = 0
            chunk.refs -= 1
            self.backlog_bytes -= chunk.size
            self.blocked_since_s = self.core.now
            if chunk.next == cython.NULL and d.complete:
                self.core.trim(d)
                return 1
            self.core.trim(d)
        return 0

    def send_piece(self, d, data, size, last):
        """Sends `data` from `cursor_offset` on in the peer's frames; returns 1 once all is sent."""
        s: Shipment
        room: uint32_t = self.frame_room()
        count: uint32_t
        more: cython.bint
        if not self.started:
            if not self.can_start():
                return 0
            _ship(cython.address(s), d, cython.NULL)
            count = min(size, room)
            more = not (last and count == size)
            self.started = True
            self.started_id = self.session.next_delivery_id
            self.cursor_offset = count
            self.write_first(cython.address(s), data, count, more)
            if not more or count == size:
                return 1
        while True:
            if not self.may_go_on():
                return 0
            count = min(size - self.cursor_offset, room)
            more = not (last and self.cursor_offset + count == size)
            self.write_more(data + self.cursor_offset, count, more, False)
            self.cursor_offset += count
            if self.cursor_offset == size:
                return 1

    def may_go_on(self):
        """Says whether a further transfer may be written now; else the link is woken for it."""
        if self.session.wire.congested or self.session.remote_window <= 0:
            if not self.stalled:
                self.session.wire.stall(self)
            return False
        return True

    def abandon(self, d):
        """Forgets a delivery whose sender gave it up; the peer is told in its turn."""
        if not d.settled:
            if not self.started or self.presettles or self.queue[self.queue_head] != d:
                self._answer(d.source_index, d.source_generation, d.token, LOST)
            elif self.session.sent.forget(self.started_id):
                self.unsettled -= 1
                self._answer(d.source_index, d.source_generation, d.token, LOST)
        return self.became_ready()

    def stream(self, d, data, size, begun):
        """Sends a frame that has just arrived, where this outlet has passed all before it.

        `begun` says whether the delivery had frames before.

        Returns 0 when it is done with the frame; 1 when it needs it kept; 2 when it needs it kept
        and has to go on from it.
        """
        if self.detached:
            return 0
        if self.queue[self.queue_head] != d:
            return 1
        if self.cursor != cython.NULL or (not self.started and begun):
            return 1
        self.cursor_offset = 0
        self.blocked_since_s = self.core.now
        if self.send_piece(d, data, size, d.complete):
            if d.complete:
                self.pop()
                self.became_ready()
            return 0
        return 2 if self.started else 1

    def pop(self):
        """Takes the head off the queue once it was sent, or was aborted."""
        d: cython.pointer(Delivery) = self.queue[self.queue_head]
        if self.presettles and not d.settled and not d.aborted:
            self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
        return self.remove_head()

    def remove_head(self):
        """Takes the head off the queue with the chunks that were kept for it."""
        d: cython.pointer(Delivery) = self.queue[self.queue_head]
        chunk: cython.pointer(Chunk) = self.cursor if self.started else d.first
        self.queue_head = (self.queue_head + 1) & (self.queue_capacity - 1)
        self.queue_count -= 1
        while chunk != cython.NULL:
            chunk.refs -= 1
            self.backlog_bytes -= chunk.size
            chunk = chunk.next
        self.started = False
        self.cursor = cython.NULL
        self.cursor_offset = 0
        if d.charges and self.feeder is None and self.policy == BLOCK:
            self.core.uncharge(d)
        self.core.trim(d)
        return self.core.release(d)

    def apply_policy(self, d):
        """Charges a publisher for a slow subscriber, or makes that one pay, as its policy says."""
        link: IncomingLink
        if self.policy == BLOCK:
            d.charges += 1
            if d.charges == 1 and d.settled:
                link = self.core.resolve(d.charged_index, d.charged_generation)
                if link is not None:
                    link.charged += 1
        elif self.policy == DROP_OLDEST:
            while self.backlog_bytes > self.backlog_bytes_max and self.queue_count > 1:
                self._drop_oldest()
            return 0
        if self.backlog_bytes > self.backlog_bytes_max and not self.overdue:
            self.overdue = True
            self.core.overdue.append(self)
        return 0

    def _drop_head(self):
        """Drops a delivery that waited here longer than it may; a sender owes it to nobody now."""
        d: cython.pointer(Delivery) = self.queue[self.queue_head]
        if not d.settled:
            self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
        self.dropped += 1
        return self.remove_head()

    def _drop_oldest(self):
        """Drops the oldest delivery that was not started."""
        d: cython.pointer(Delivery)
        second: uint32_t = (self.queue_head + 1) & (self.queue_capacity - 1)
        if self.started:
            d = self.queue[second]
            self.queue[second] = self.queue[self.queue_head]
            self.queue_head = second
            self._forget_queued(d)
        else:
            d = self.queue[self.queue_head]
            self.queue_head = second
            self._forget_queued(d)
        self.queue_count -= 1
        self.dropped += 1

    def _forget_queued(self, d):
        chunk: cython.pointer(Chunk) = d.first
        while chunk != cython.NULL:
            chunk.refs -= 1
            self.backlog_bytes -= chunk.size
            chunk = chunk.next
        if not d.settled and not d.aborted:
            self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
        if not d.complete:
            self._leave(d)
        self.core.trim(d)
        self.core.release(d)

    def _leave(self, d):
        """Takes this outlet off a delivery that is still arriving."""
        link: IncomingLink = self.core.resolve(d.charged_index, d.charged_generation)
        if link is not None and link.current == d and link.current_outlets is not None:
            link.current_outlets = [o for o in link.current_outlets if o is not self]

    # -- the peer's credit

    def on_flow(self, f):
        under_way: uint32_t = self.delivery_count
        if f.has_link_credit:
            if f.has_delivery_count:
                under_way -= f.delivery_count
            self.credit = f.link_credit - under_way if f.link_credit > under_way else 0
            self.drain = f.drain
            self.became_ready()
        if f.echo and not self.detached:
            self.session.write_flow(None, self, False)
        return 0

    def became_ready(self):
        """Goes on with the queue, then lets whoever feeds this link give it more."""
        if self.queue_count:
            self.pump()
        if self.feeder is not None and self.queue_count == 0 and not self.detached:
            self.feeder.on_ready(self)
        return self.finish_drain()

    def finish_drain(self):
        """Uses up what credit is left, as a drain asks for (AMQP 1.0 §2.6.7)."""
        if not self.drain or self.queue_count or self.detached:
            return 0
        if self.credit:
            self.delivery_count += self.credit
            self.credit = 0
        self.session.write_flow(None, self, False)
        self.drain = False
        return 0

    def send(self, port, token: int, data: bytes, settled: bool, tag: bytes = None) -> bool:
        """Sends a message from within the process; False where there is no credit or room.

        Args:
            port: Gets the outcome, as `(token, code, state, settled)`.
            token: Names the delivery to the port.
            data: The encoded message.
            settled: Whether it is sent settled, so that no outcome will come.
            tag: The delivery-tag; None for one of the link's own.
        """
        s: Shipment
        p: Port = port
        if not self.is_ready():
            return False
        _ship_bytes(cython.address(s), p, token, data, settled)
        if tag is not None:
            s.tag = octets_of(tag)
            s.tag_size = cython.cast(uint32_t, len(tag))
        self.take(cython.address(s))
        return True

    def detach(self) -> None:
        """Ends the link: what was sent and not settled is in doubt, what waits is released."""
        d: cython.pointer(Delivery)
        if self.detached:
            return
        self.detached = True
        if self.unsettled:
            self.session.lose_link(self.index)
        while self.queue_count:
            d = self.queue[self.queue_head]
            if not d.settled and not d.aborted:
                if not self.started:
                    self._answer(d.source_index, d.source_generation, d.token, RELEASED)
                elif self.presettles:
                    self._answer(d.source_index, d.source_generation, d.token, LOST)
            self.remove_head()
        self.unsettled = 0
        self.core.unregister(self)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_single_frame(d: cython.pointer(Delivery), room: uint32_t) -> cython.bint:
    if not d.complete or d.aborted or d.first == cython.NULL:
        return False
    return d.first.next == cython.NULL and d.first.size <= room


@cython.cfunc
@cython.exceptval(check=False)
def _ship_bytes(
    s: cython.pointer(Shipment), port: Port, token: uint64_t, data: bytes, settled: cython.bint
) -> cython.void:
    fill_shipment(s, octets_of(data), cython.cast(uint32_t, len(data)))
    s.settled = settled
    s.source_index = port.index
    s.source_generation = port.generation
    s.token = token


class AddressEntry(Terminus):
    """One address: who takes its deliveries, and how they are shared out."""

    def __init__(
        self,
        core: Core,
        name: str,
        distribution: int,
        interest=None,
        subject: bytes = None,
        assembles: bool = False,
    ):
        """Makes an entry.

        Args:
            core: The core it belongs to.
            name: The address, for people.
            distribution: MULTICAST, CLOSEST or BALANCED.
            interest: Where the outlets are found by subject; None where they are added here.
            subject: What to look up there.
            assembles: Whether some outlet (a store, a port) takes only whole messages.
        """
        self.core = core
        self.name = name
        self.distribution = distribution
        self.interest = interest
        self.subject = subject
        self.assembles = assembles
        self.outlets = []
        self.sources = []
        core.register(self)

    # -- who is attached

    def add_source(self, link: IncomingLink) -> None:
        """Lets a link that sends to this address get credit as consumers come and go."""
        self.sources.append(link)

    def remove_source(self, link) -> None:
        """Forgets such a link."""
        if link in self.sources:
            self.sources.remove(link)

    def add_outlet(self, outlet: Terminus) -> None:
        """Lets `outlet` take deliveries of this address."""
        self.outlets.append(outlet)
        if type(outlet) is OutgoingLink:
            if self.distribution != MULTICAST:
                cython.cast(OutgoingLink, outlet).feeder = self
            if cython.cast(OutgoingLink, outlet).credit:
                self.on_ready(outlet)
        else:
            self.assembles = True
            self._offer()

    def remove_outlet(self, outlet: Terminus) -> None:
        """Stops `outlet` from taking deliveries; with the last one credit is taken back."""
        if outlet not in self.outlets:
            return
        self.outlets.remove(outlet)
        if self.distribution == MULTICAST:
            return
        self.offered = any(
            type(o) is not OutgoingLink or cython.cast(OutgoingLink, o).offered
            for o in self.outlets
        )
        if not self.outlets:
            self._release_held()
        if not self.offered:
            for link in self.sources:
                cython.cast(IncomingLink, link).top_up()

    def _offer(self):
        """The first credit a consumer gives lets the publishers start."""
        if self.offered:
            return
        self.offered = True
        for link in self.sources:
            cython.cast(IncomingLink, link).top_up()

    def on_ready(self, link):
        if link.credit:
            link.offered = True
            self._offer()
        if self.held_first != cython.NULL:
            self.serve_held()
        if self.rationed:
            self._pass_credit_on()
        return 0

    def ration(self, link):
        """Says how much credit a sender may have: as much as the consumers can take at once.

        What is sent beyond that would be held here, copied once more than it need be. A sender of
        which nothing is held may always be a little ahead, so that consumers with little credit
        need not wait for it, and none is left without credit for good.
        """
        room: uint64_t = 0 if link.held_bytes else AHEAD_MAX
        total: uint64_t = 0
        outlet: Terminus
        if len(self.outlets) > RATIONING_MAX:
            return NOWHERE
        for outlet in self.outlets:
            if type(outlet) is not OutgoingLink:
                return NOWHERE
            total += cython.cast(OutgoingLink, outlet).credit
        return cython.cast(uint32_t, min(max(room, total), cython.cast(uint64_t, NOWHERE)))

    def _pass_credit_on(self):
        """Gives senders their share of credit that has just come; where they are many, in turn."""
        count: uint32_t = cython.cast(uint32_t, len(self.sources))
        step: uint32_t
        self.rationed = count > RATIONING_MAX
        for step in range(min(count, cython.cast(uint32_t, RATIONING_MAX))):
            if self.source_turn >= count:
                self.source_turn = 0
            cython.cast(IncomingLink, self.sources[self.source_turn]).top_up()
            self.source_turn += 1
        return 0

    # -- routing

    def route(self, link, s):
        self.received += 1
        if self.distribution == MULTICAST:
            return self.multicast(s, self.matching())
        return self.anycast(link, s)

    def matching(self):
        """Lists the outlets of a multicast address; matches anew only after a change."""
        if self.interest is not None and self.version != self.interest.version:
            self.outlets = self.interest.match_octets(octets_of(self.subject), len(self.subject))
            self.version = self.interest.version
        return self.outlets

    def anycast(self, link, s):
        outlet: Terminus
        d: cython.pointer(Delivery)
        if self.held_first == cython.NULL:
            outlet = self.pick(s)
            if outlet is not None:
                self.delivered += 1
                if type(outlet) is OutgoingLink:
                    return cython.cast(OutgoingLink, outlet).take(s)
                return outlet.take(s)
        if not self.outlets:
            return self.unroutable(s)
        d = self.core.new_delivery(s)
        d.complete = True
        self.core.append_chunk(d, s.data, s.size)
        if link is not None:
            link._charge(d)
        self.hold(d)
        return self.core.release(d)

    def anycast_run(self, link, s, pieces, count):
        """Gives a run to the only outlet as a whole; several outlets take turns, one by one."""
        at: uint32_t = 0
        outlet: Terminus
        taken: int64_t
        while at < count:
            if len(self.outlets) == 1 and self.held_first == cython.NULL:
                outlet = cython.cast(Terminus, self.outlets[0])
                s.data = pieces[at].data
                s.size = pieces[at].size
                if (
                    type(outlet) is not OutgoingLink
                    or not cython.cast(OutgoingLink, outlet).picky()
                ):
                    taken = outlet.take_run(s, pieces + at, count - at)
                    self.delivered += taken
                    at += cython.cast(uint32_t, taken)
                    if at == count:
                        break
            s.data = pieces[at].data
            s.size = pieces[at].size
            s.token = pieces[at].token
            self.anycast(link, s)
            at += 1
        return 0

    def multicast_run(self, s, pieces, count):
        """Gives a run to every outlet in turn, so that each one's output is written in one piece."""
        outlets: list = self.matching()
        outlet: Terminus
        index: uint32_t
        taken: uint32_t
        step: int64_t
        late: cython.pointer(Delivery)[RUN_MAX]
        if not outlets or self._some_are_picky(outlets):
            for index in range(count):
                s.data = pieces[index].data
                s.size = pieces[index].size
                s.token = pieces[index].token
                self.multicast(s, outlets)
            return 0
        memset(late, 0, count * cython.sizeof(cython.pointer(Delivery)))
        if not s.settled:
            for index in range(count):
                s.token = pieces[index].token
                pieces[index].token = self.core.fanouts.open(s)
            s.source_index = self.core.fanouts.index
            s.source_generation = self.core.fanouts.generation
        for outlet in outlets:
            if not s.settled:
                for index in range(count):
                    self.core.fanouts.records[pieces[index].token].waiting += 1
            taken = 0
            # Until it takes no more: only then is it noted as one to be woken.
            while taken < count:
                if type(outlet) is OutgoingLink:
                    step = cython.cast(OutgoingLink, outlet).take_run(
                        s, pieces + taken, count - taken
                    )
                else:
                    step = outlet.take_run(s, pieces + taken, count - taken)
                if step == 0:
                    break
                taken += cython.cast(uint32_t, step)
            if taken < count:
                self._run_late(s, pieces, late, outlet, taken, count)
        self.delivered += cython.cast(uint64_t, len(outlets)) * count
        for index in range(count):
            if late[index] != cython.NULL:
                self.core.release(late[index])
            if not s.settled:
                self.core.fanouts.close(cython.cast(uint32_t, pieces[index].token))
        return 0

    def _some_are_picky(self, outlets):
        outlet: Terminus
        for outlet in outlets:
            if type(outlet) is OutgoingLink and cython.cast(OutgoingLink, outlet).picky():
                return True
        return False

    def _run_late(self, s, pieces, late, outlet, first, count):
        """Queues the rest of a run for an outlet that could not take it; copies are shared."""
        index: uint32_t
        for index in range(first, count):
            if type(outlet) is not OutgoingLink:
                if not s.settled:
                    self.core.fanouts.close(cython.cast(uint32_t, pieces[index].token))
                continue
            if late[index] == cython.NULL:
                s.token = pieces[index].token
                late[index] = self.core.new_delivery(s)
                late[index].complete = True
                self.core.append_chunk(late[index], pieces[index].data, pieces[index].size)
                self.limit_life(late[index])
            cython.cast(OutgoingLink, outlet).enqueue(late[index])
            cython.cast(OutgoingLink, outlet).apply_policy(late[index])
        if type(outlet) is OutgoingLink:
            # A run that filled the session's window leaves the link neither stalled nor without
            # credit: only this makes the wire wake it when the window opens.
            cython.cast(OutgoingLink, outlet).pump()
        return 0

    def pick(self, s):
        """Chooses who takes a delivery: in turn (closest), or who has least to do (balanced)."""
        count: uint32_t = cython.cast(uint32_t, len(self.outlets))
        step: uint32_t
        at: uint32_t = self.turn
        outlet: Terminus
        best: Terminus = None
        least: uint32_t = NOWHERE
        if count == 1:
            outlet = cython.cast(Terminus, self.outlets[0])
            if type(outlet) is OutgoingLink:
                if cython.cast(OutgoingLink, outlet).is_ready() and not cython.cast(
                    OutgoingLink, outlet
                ).refuses(s):
                    return outlet
                return None
        for step in range(count):
            if at >= count:
                at = 0
            outlet = cython.cast(Terminus, self.outlets[at])
            at += 1
            if not outlet.is_ready() or outlet.refuses(s):
                continue
            if self.distribution == CLOSEST:
                self.turn = at
                return outlet
            if outlet.outstanding() < least:
                least = outlet.outstanding()
                best = outlet
                self.turn = at
        return best

    def multicast(self, s, outlets):
        """Gives a message to every outlet; those that cannot take it now get it queued."""
        outlet: Terminus
        link: OutgoingLink
        late: list = None
        given: uint32_t = 0
        record: uint32_t = 0
        shipment: Shipment = s[0]
        if not outlets:
            return self.unroutable(s)
        if not s.settled:
            record = self.core.fanouts.open(s)
            shipment.source_index = self.core.fanouts.index
            shipment.source_generation = self.core.fanouts.generation
            shipment.token = record
            shipment.tag_size = 0
        for outlet in outlets:
            if type(outlet) is OutgoingLink:
                link = cython.cast(OutgoingLink, outlet)
                if link.picky() and link.refuses(s):
                    continue
                given += 1
                if not s.settled:
                    self.core.fanouts.records[record].waiting += 1
                if link.is_ready():
                    link.take(cython.address(shipment))
                    continue
            elif outlet.refuses(s):
                continue
            else:
                given += 1
                if not s.settled:
                    self.core.fanouts.records[record].waiting += 1
                if outlet.is_ready():
                    outlet.take(cython.address(shipment))
                    continue
            if late is None:
                late = [outlet]
            else:
                late.append(outlet)
        if late is not None:
            self.multicast_late(cython.address(shipment), late)
        if given == 0:
            if not s.settled:
                self.core.fanouts.cancel(record)
            return self.unroutable(s)
        self.delivered += given
        if not s.settled:
            self.core.fanouts.close(record)
        return 0

    def multicast_late(self, s, late):
        """Queues one shared copy for every outlet that was not ready."""
        outlet: Terminus
        d: cython.pointer(Delivery) = self.core.new_delivery(s)
        d.complete = True
        self.core.append_chunk(d, s.data, s.size)
        self.limit_life(d)
        for outlet in late:
            if type(outlet) is OutgoingLink:
                cython.cast(OutgoingLink, outlet).enqueue(d)
                cython.cast(OutgoingLink, outlet).apply_policy(d)
            elif not s.settled:
                self.core.fanouts.close(cython.cast(uint32_t, s.token))
        return self.core.release(d)

    def unroutable(self, s):
        """Answers for a message that nobody is there to take."""
        verdict: Verdict
        accepted: cython.bint = self.distribution == MULTICAST and not self.release_unmatched
        if self.dead_letter is not None:
            self.dead_letter(self, bytes_from(s.data, s.size), "unroutable")
            accepted = True
        if accepted:
            self.unmatched += 1
        elif s.settled:
            self.dropped += 1
        else:
            self.released += 1
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), ACCEPTED if accepted else RELEASED, None)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    # -- what nobody has room for yet

    def hold(self, d):
        d.refs += 1
        d.next = cython.NULL
        self.limit_life(d)
        if d.expires_s and not self.is_expiring:
            self.is_expiring = True
            self.core.expiring.append(self)
        if self.held_last == cython.NULL:
            self.held_first = d
        else:
            self.held_last.next = d
        self.held_last = d
        self.held += 1
        return 0

    def unhold(self):
        d: cython.pointer(Delivery) = self.held_first
        self.held_first = d.next
        if self.held_first == cython.NULL:
            self.held_last = cython.NULL
        d.next = cython.NULL
        self.held -= 1
        return d

    def discard_held(self, d):
        """Takes a delivery that was given up out of what is held, if it is there."""
        at: cython.pointer(Delivery) = self.held_first
        before: cython.pointer(Delivery) = cython.NULL
        while at != cython.NULL and at != d:
            before = at
            at = at.next
        if at == cython.NULL:
            return 0
        if before == cython.NULL:
            self.held_first = d.next
        else:
            before.next = d.next
        if self.held_last == d:
            self.held_last = before
        d.next = cython.NULL
        self.held -= 1
        return self.core.release(d)

    def serve_held(self):
        """Gives what was held to the outlets that have room now, oldest first."""
        outlet: Terminus
        s: Shipment
        d: cython.pointer(Delivery)
        while self.held_first != cython.NULL:
            d = self.held_first
            if self.core.is_over(d):
                self._expire(self.unhold())
                continue
            _ship(cython.address(s), d, d.first.data if d.first != cython.NULL else cython.NULL)
            if d.first != cython.NULL:
                s.size = d.first.size
            outlet = self.pick(cython.address(s))
            if outlet is None or (not d.complete and type(outlet) is not OutgoingLink):
                return 0
            self.unhold()
            self.delivered += 1
            self._hand_over(d, outlet)
            self.core.release(d)
        return 0

    def _hand_over(self, d, outlet):
        s: Shipment
        joined: cython.pointer(uint8_t)
        link: IncomingLink
        if type(outlet) is OutgoingLink:
            if not d.complete:
                link = self.core.resolve(d.charged_index, d.charged_generation)
                if link is not None and link.current == d:
                    link.current_outlets = [outlet]
            return cython.cast(OutgoingLink, outlet).push(d)
        joined = _join(d)
        _ship(cython.address(s), d, joined)
        try:
            return outlet.take(cython.address(s))
        finally:
            free(joined)

    def _release_held(self):
        """Answers for what was held for consumers that have all gone: it was never forwarded."""
        d: cython.pointer(Delivery)
        link: IncomingLink
        while self.held_first != cython.NULL:
            d = self.unhold()
            link = self.core.resolve(d.charged_index, d.charged_generation)
            if not d.complete and link is not None and link.current == d:
                link.current = cython.NULL
                link.discarding = True
                self.core.release(d)
            else:
                self._bury(d, False)
            self.core.release(d)

    def _bury(self, d, is_expired):
        """Answers for a whole delivery that went nowhere: it is dead, or its sender's again."""
        s: Shipment
        joined: cython.pointer(uint8_t) = _join(d)
        _ship(cython.address(s), d, joined)
        try:
            if is_expired:
                self.expire(cython.address(s))
            else:
                self.unroutable(cython.address(s))
        finally:
            free(joined)
        return 0

    # -- what has waited too long

    def limit_life(self, d):
        """Notes when a whole delivery that has to wait is over: by its own ttl, or the address's."""
        header: Header
        ttl_s: cython.double = self.ttl_s
        chunk: cython.pointer(Chunk) = d.first
        if not d.complete or chunk == cython.NULL:
            return 0
        clear_header(cython.address(header))
        if (
            chunk.size > 3
            and chunk.data[0] == 0
            and chunk.data[1] == 0x53
            and chunk.data[2] == 0x70
        ):
            read_header(chunk.data, 3, chunk.size, cython.address(header))
        if header.has_ttl and (ttl_s == 0.0 or header.ttl_ms * 0.001 < ttl_s):
            ttl_s = header.ttl_ms * 0.001
        if header.has_ttl or ttl_s > 0.0:
            d.expires_s = self.core.now + ttl_s
        return 0

    def expire_held(self):
        """Answers for what is held and over; returns whether something held may end so yet."""
        d: cython.pointer(Delivery) = self.held_first
        following: cython.pointer(Delivery)
        is_expiring: cython.bint = False
        while d != cython.NULL:
            following = d.next
            if self.core.is_over(d):
                d.refs += 1
                self.discard_held(d)
                self._expire(d)
            elif d.expires_s:
                is_expiring = True
            d = following
        self.is_expiring = is_expiring
        return is_expiring

    def _expire(self, d):
        self._bury(d, True)
        return self.core.release(d)

    def expire(self, s):
        """Answers for a message that waited longer than it may."""
        verdict: Verdict
        self.expired += 1
        if self.dead_letter is not None:
            self.dead_letter(self, bytes_from(s.data, s.size), "expired")
        if s.settled:
            return 0
        fill_verdict(
            cython.address(verdict), RELEASED if self.dead_letter is None else ACCEPTED, None
        )
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def close(self) -> None:
        """Takes the entry out of use."""
        self._release_held()
        self.core.unregister(self)

    def send(self, port, token: int, data: bytes, settled: bool) -> None:
        """Sends a message from within the process to this address."""
        s: Shipment
        _ship_bytes(cython.address(s), port, token, data, settled)
        self.route(None, cython.address(s))

    @property
    def is_idle(self) -> bool:
        """Says whether nobody is attached and nothing waits."""
        if self.interest is None and self.outlets:
            return False
        return not self.sources and self.held == 0


class AddressSpace:
    """The addresses of one virtual host, by name; the router makes those that are missing."""

    def __init__(self, core: Core, resolver):
        """Makes a space.

        Args:
            core: The core whose entries it holds.
            resolver: Called with an address that is not known; returns its entry, or None.
        """
        self.core = core
        self.resolver = resolver
        self.entries = {}

    def find(self, address):
        entry = self.entries.get(address)
        if entry is None:
            entry = self.resolver(address)
        return entry

    def send(self, port, token: int, address: bytes, data: bytes, settled: bool) -> bool:
        """Sends a message from within the process to an address; False where that is not known."""
        s: Shipment
        entry: AddressEntry = self.find(address)
        if entry is None:
            return False
        _ship_bytes(cython.address(s), port, token, data, settled)
        entry.route(None, cython.address(s))
        return True


class Port(Terminus):
    """Python's end of deliveries: arrivals and outcomes are gathered and handed over in batches.

    `arrivals` holds `(message, token, source, settled)`; `source.settle(token, code)` answers one.
    `outcomes` holds `(token, code, state, settled)` of what was sent from here. `woken` holds links
    that can take more. After each batch `handler.on_batch(port)` is called once; it takes the lists.
    """

    def __init__(self, core: Core, handler):
        self.core = core
        self.handler = handler
        self.arrivals = []
        self.outcomes = []
        self.woken = []
        self.open = True
        core.register(self)

    def mark_dirty(self):
        if not self.dirty:
            self.dirty = True
            self.core.dirty_ports.append(self)
        return 0

    def is_ready(self):
        return self.open

    def take(self, s):
        source: Terminus = self.core.resolve(s.source_index, s.source_generation)
        self.arrivals.append(
            (
                bytes_from(s.data, s.size),
                s.token,
                source,
                s.settled,
            )
        )
        return self.mark_dirty()

    def resolve_outcome(self, token, verdict):
        state = None if verdict.code == ACCEPTED else state_of(verdict)
        self.outcomes.append((token, verdict.code, state, verdict.settled))
        self.mark_dirty()
        return KEEP if verdict.code == RECEIVED else SETTLE

    def on_ready(self, link):
        self.woken.append(link)
        return self.mark_dirty()

    def close(self) -> None:
        """Takes the port out of use; outcomes still to come find nobody."""
        self.open = False
        self.core.unregister(self)


class Drain(Terminus):
    """Takes everything, counts it, and keeps nothing."""

    def __init__(self, core: Core):
        self.core = core
        core.register(self)

    def take(self, s):
        verdict: Verdict
        self.messages += 1
        self.bytes += s.size
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0
