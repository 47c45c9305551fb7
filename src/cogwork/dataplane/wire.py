"""One connection's bytes: scanning what arrives, gathering what is to be sent.

Theory of operation. What a wire reads is scanned in place: transfers, dispositions and flows go to
the channel that they name, runs of transfers as a whole. Every other performative, and every
violation, goes to the wire's `owner`, which is ordinary Python. Output is gathered in one buffer,
and sent with one system call when the batch ends.
"""

from typing import TYPE_CHECKING

import cython
from cython.cimports.cogwork.dataplane.core import READ_SIZE_BYTES, UNFLUSHED_MAX_BYTES
from cython.cimports.cogwork.dataplane.octets import (
    bytes_from,
    load_u16,
    load_u32,
    octets_of,
    store_u16,
    store_u32,
)
from cython.cimports.cogwork.dataplane.scan import TransferFields, performative_code
from cython.cimports.cogwork.dataplane.system import EAGAIN, EINTR, clock_s, receive, send
from cython.cimports.cogwork.dataplane.transfers import (
    TransferShape,
    has_shape,
    learn_shape,
    parse_common_transfer,
)
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy, memmove

if TYPE_CHECKING:
    from cython.cimports.cogwork.dataplane.shipment import RUN_MAX

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

READ_SIZE_MIN_BYTES = cython.declare(uint32_t, 4096)
"""A wire whose batches take too long reads less at a time, but no less than this."""

BATCH_TIME_MAX_S = cython.declare(cython.double, 0.0005)
"""A batch that takes longer halves what its wire reads next, so that others get their turn."""

WIDE_BATCH_TIME_MAX_S = cython.declare(cython.double, 0.005)
SEND_GOOD_BYTES = cython.declare(uint64_t, 32 * 1024)
"""A batch that goes out to many may take this long, while they would get even less than this each:
smaller ones would spend their time on system calls."""

KEPT_OUTPUT_MAX_BYTES = cython.declare(uint64_t, 64 * 1024 * 1024)
"""Empty output buffers are kept for the next batch while all of them would be no more than this."""

FRAME_MIN_BYTES = cython.declare(int64_t, 75)
"""A frame of a run has room for the largest header that a run's frames may have."""

OUT_SIZE_MIN_BYTES = 1024


class Channel(Due):
    """A session's end, as its wire sees it: what the frames of one channel go to."""

    def mark_dirty(self):
        """Has `end_batch` called when the batch ends."""
        if not self.dirty:
            self.dirty = True
            self.core.dirty_sessions.append(self)
        return 0

    def run_limit(self, handle, size, message_size_max):
        """Says how many transfers of about `size` bytes it takes as a run; 0 for none."""
        return 0

    def route_run(self, handle, pieces, count, settled):
        """Takes a run of no more than `run_limit` transfers."""
        return 0

    def on_transfer(self, p, at, end):
        """Takes a transfer whose fields stand from `at` to `end`, the payload behind them."""
        return 0

    def on_flow(self, p, at, end):
        """Takes a flow."""
        return 0

    def on_disposition(self, p, at, end):
        """Takes a disposition."""
        return 0


class Wire(Due):
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
            self._blame(error)
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
        message_size_max: uint64_t = 0
        piece: cython.pointer(Piece)
        session: Channel
        if load_u16(data + 4) != 0x0200 or data[8] != 0x00 or data[9] != 0x53:
            return 0
        if not parse_common_transfer(data, 11, frame_size, cython.address(t)) or t.more:
            return 0
        session = self.session_of(load_u16(data + 6))
        if session is None or session.ended:
            return 0
        limit = session.run_limit(t.handle, t.payload_size, cython.address(message_size_max))
        if limit == 0:
            return 0
        learn_shape(cython.address(shape), data, cython.address(t))
        if message_size_max:
            largest = min(largest, message_size_max + shape.size)
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
        session.route_run(t.handle, pieces, count, t.settled)
        return at

    def scan_header(self, data):
        self.owner.on_header(bytes_from(data, 8))
        return 0

    def dispatch(self, frame, size):
        at: int64_t = cython.cast(int64_t, frame[4]) * 4
        body: int64_t = 0
        code: cython.int
        session: Channel
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
        return cython.cast(Channel, self.sessions[channel])

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

    def end_batch(self):
        self.dirty = False
        try:
            self.transmit()
        except Exception as error:
            self._blame(error)
        return 0

    def report_lost(self) -> None:
        """Tells the owner that the socket failed."""
        try:
            self.owner.on_lost(self.lost_errno)
        except Exception as error:
            self._blame(error)

    def _blame(self, error):
        """Keeps a fault of ours to the connection that it happened on."""
        try:
            self.owner.on_fault(error)
        except Exception as fault:
            self.stop()
            if self.core.on_error is None:
                raise
            self.core.on_error(self, fault)

    def add_to(self, totals):
        totals.unsent_bytes += self.out_end - self.out_start
        totals.partial_bytes += self.tail_size
        return 0

    def mark_dirty(self):
        if not self.dirty and not self.blocked:
            self.dirty = True
            self.core.dirty_wires.append(self)
        return 0

    def _grow(self, size):
        """Makes room for more output: what has been sent goes first."""
        needed: uint64_t = self.out_end + size
        capacity: uint64_t
        grown: cython.pointer(uint8_t)
        if self.out_start > 0 and self.out_start >= (self.out_capacity >> 1):
            memmove(self.out, self.out + self.out_start, self.out_end - self.out_start)
            self.out_end -= self.out_start
            self.out_start = 0
            needed = self.out_end + size
            if needed <= self.out_capacity:
                return 0
        capacity = max(self.out_capacity, cython.cast(uint64_t, OUT_SIZE_MIN_BYTES))
        while capacity < needed:
            capacity *= 2
        grown = cython.cast(cython.pointer(uint8_t), realloc(self.out, capacity))
        if grown == cython.NULL:
            raise MemoryError("no room for output")
        self.out = grown
        self.out_capacity = capacity
        return 0

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

    def wake_stalled(self):
        links: list = self.stalled
        link: Due
        if not links or self.closed:
            return 0
        self.stalled = []
        for link in links:
            link.relieve()
        return 0
