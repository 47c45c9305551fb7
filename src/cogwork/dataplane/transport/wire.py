"""One connection's bytes: scanning what arrives, gathering what is to be sent.

Theory of operation. What a wire reads is scanned in place: transfers, dispositions and flows go to
the channel that they name, runs of transfers as a whole. Every other performative, and every
violation, goes to the wire's `owner`, which is ordinary Python. Output is gathered in one buffer,
and sent with one system call when the batch ends.
"""

import cython
from cython.cimports.cogwork.dataplane.core import READ_SIZE_BYTES, UNFLUSHED_MAX_BYTES
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u16,
    load_u32,
    octets_of,
)
from cython.cimports.cogwork.dataplane.encoding.values import descriptor_code
from cython.cimports.cogwork.dataplane.system import EAGAIN, EINTR, clock_s, receive
from cython.cimports.cogwork.dataplane.transport.transfers import (
    TransferShape,
    has_shape,
    learn_shape,
    parse_common_transfer,
)
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

READ_SIZE_MIN_BYTES = cython.declare(uint32_t, 4096)
"""A wire whose batches take too long reads less at a time, but no less than this."""

BATCH_TIME_MAX_S = cython.declare(cython.double, 0.0005)
"""A batch that takes longer halves what its wire reads next, so that others get their turn."""

WIDE_BATCH_TIME_MAX_S = cython.declare(cython.double, 0.005)
SEND_GOOD_BYTES = cython.declare(uint64_t, 32 * 1024)
"""A batch that goes out to many may take this long, while they would get even less than this each:
smaller ones would spend their time on system calls."""

READ_SIZE_START_BYTES = cython.declare(uint32_t, 16 * 1024)
"""What the first read takes: until its batches are known to be quick, a newcomer is no burden."""

OWNER_TIME_MAX_S = cython.declare(cython.double, 0.0005)
"""So long frames that Python deals with may take in a batch; those that follow have to wait. A quiet
round trip takes about as long."""

LAST_READS_MAX = cython.declare(cython.int, 256)
"""As many reads as no receive buffer is large: a peer that goes on sending is not waited for."""

FRAME_MIN_BYTES = cython.declare(int64_t, 75)
"""A frame of a run has room for the largest header that a run's frames may have."""


class Channel(Due):
    """A session's end, as its wire sees it: what the frames of one channel go to."""

    def mark_dirty(self):
        """Have `end_batch` called when the batch ends."""
        if not self.dirty:
            self.dirty = True
            self.core.dirty_sessions.append(self)
        return 0

    def run_limit(self, handle, size, message_size_max):
        """Return how many transfers of about `size` bytes it takes as a run; 0 for none."""
        return 0

    def route_run(self, handle, pieces, count, settled):
        """Take a run of no more than `run_limit` transfers; return how many of them it took."""
        return count

    def on_transfer(self, p, at, end):
        """Take a transfer whose fields stand from `at` to `end`, the payload behind them."""
        return 0

    def on_flow(self, p, at, end):
        """Take a flow."""
        return 0

    def on_disposition(self, p, at, end):
        """Take a disposition."""
        return 0

    def pass_on(self, data, size):
        """Pass frames on, where this is a session of others; return how much of `data` it took."""
        return 0


class Wire(Output):
    """One connection: the partial frame it read, and its output."""

    def __init__(self, core: Core, owner, max_frame_in: int, fd: int = -1):
        """Make a wire.

        Args:
            core: The core it belongs to.
            owner: Gets what is not transfer, disposition or flow, and every violation.
            max_frame_in: The largest frame in bytes that the peer may send.
            fd: A connected non-blocking socket, or -1 where `feed` and `take_output` are used.
        """
        Output.__init__(self, core, owner, fd)
        self.max_frame_in = min(max_frame_in, READ_SIZE_BYTES * 4)
        self.read_size = READ_SIZE_START_BYTES
        self.sessions = []
        core.next_origin += 1
        self.origin = core.next_origin
        self.last_received_s = clock_s()
        core.wires.append(self)

    def __dealloc__(self):
        free(self.tail)

    # -- what Python does with a wire

    def start_framing(self) -> None:
        """From here on the bytes are frames; before, `owner.on_header` gets them eight at a time."""
        self.framing = True

    def expect_header(self) -> None:
        """The next bytes are a protocol header again, as after SASL (AMQP 1.0 §5.3.2)."""
        self.framing = False

    def allow_frames(self, size_bytes: int) -> None:
        """Take frames of up to so many bytes from now on.

        Args:
            size_bytes: What this side is about to announce.
        """
        self.max_frame_in = min(size_bytes, READ_SIZE_BYTES * 4)

    def feed(self, data: bytes) -> None:
        """Take in bytes that a stream (TLS, WebSocket, memory) has read, and end the batch."""
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
        """Read the socket once, routes what arrived, and end the batch."""
        core: Core = self.core
        if self.closed or self.paused:
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

    def read_rest(self) -> None:
        """Read what the kernel has of a connection before that is given up for another reason.

        What the peer has said stands, also where it has reset the connection since. Frames that have
        to wait for a later turn are no silence.
        """
        buffer: cython.pointer(uint8_t)
        size: int64_t
        reads: cython.int = 0
        if self.closed or self.fd < 0:
            return
        if self.paused:
            self.last_received_s = clock_s()
            return
        # The core's own buffer may be in use: a batch of it is flushed when a socket fails.
        buffer = cython.cast(cython.pointer(uint8_t), malloc(READ_SIZE_BYTES * 5))
        if buffer == cython.NULL:
            raise MemoryError("no room for the last of a connection")
        try:
            while reads < LAST_READS_MAX and not self.closed and not self.paused:
                size = receive(self.fd, buffer + self.tail_size, READ_SIZE_BYTES)
                if size == -EINTR:
                    continue
                if size <= 0:
                    break
                reads += 1
                self.bytes_in += size
                self.core.now = self.last_received_s = clock_s()
                if self.tail_size:
                    memcpy(buffer, self.tail, self.tail_size)
                    size += self.tail_size
                    self.tail_size = 0
                self.consume(buffer, size)
        finally:
            free(buffer)

    def report_lost(self) -> None:
        """Tell the owner that the socket failed, once all has been read that came before.

        Where that takes longer than its share of this turn, the rest of it comes in later ones.
        """
        self.read_rest()
        self.is_lost = self.paused and not self.closed
        if not self.is_lost:
            Output.report_lost(self)

    def _adapt_read_size(self, sends, sent_bytes):
        """Halve the reads after a batch that took too long, given what it sent; else widens them."""
        taken_s: cython.double = clock_s() - self.core.now
        is_wide: cython.bint = sends > 1 and sent_bytes < sends * SEND_GOOD_BYTES
        if taken_s > (WIDE_BATCH_TIME_MAX_S if is_wide else BATCH_TIME_MAX_S):
            self.read_size = max(READ_SIZE_MIN_BYTES, self.read_size // 2)
        elif self.read_size < READ_SIZE_BYTES:
            self.read_size *= 2
        return 0

    def map_session(self, channel: int, session) -> None:
        """Let frames on the peer's `channel` reach `session`; None unmaps it."""
        while len(self.sessions) <= channel:
            self.sessions.append(None)
        self.sessions[channel] = session

    def session_on(self, channel: int):
        """Return the session that the peer's `channel` leads to, or None."""
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
                if self.closed and at < size:
                    self.owner.on_rest(bytes_from(data + at, size - at))
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
            if self.relays:
                taken = self._pass_on(data + at, size - at)
                if taken > 0:
                    at += taken
                    if core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
                        core.flush_all()
                    continue
            if frame_size > 64 and data[at + 10] == 0x14:
                taken = self.scan_run(data + at, size - at)
                if taken > 0:
                    at += taken
                    if self.paused:
                        break
                    if core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
                        core.flush_all()
                    continue
            if not self.dispatch(data + at, frame_size):
                break
            at += frame_size
            if self.paused:
                break
            if core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
                core.flush_all()
        return size if self.closed else at

    def _pass_on(self, data, size):
        """Give frames to a session that others hold with each other by way of this container."""
        session: Channel = self.session_of(load_u16(data + 6))
        return 0 if session is None else session.pass_on(data, size)

    def scan_run(self, data, size):
        """Route a run: consecutive single-frame transfers of one link, all with headers alike.

        Returns the bytes it took; 0 where the first frame does not start a run.
        """
        pieces: Piece[RUN_MAX]
        t: TransferFields
        shape: TransferShape
        at: int64_t = 0
        frame_size: uint32_t = load_u32(data)
        count: uint32_t = 0
        limit: uint32_t
        taken: uint32_t
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
        taken = session.route_run(t.handle, pieces, count, t.settled)
        self.core.frames_in += taken
        self.frames_in += taken
        return at if taken == count else pieces[taken].data - shape.size - data

    def scan_header(self, data):
        self.owner.on_header(bytes_from(data, 8))
        return 0

    def dispatch(self, frame, size):
        """Take a frame; return whether it did: it may have to wait for a later turn."""
        at: int64_t = cython.cast(int64_t, frame[4]) * 4
        body: int64_t = 0
        code: cython.int
        session: Channel
        channel: uint32_t = (cython.cast(uint32_t, frame[6]) << 8) | frame[7]
        if at < 8 or at > size:
            self.owner.on_violation(
                "amqp:connection:framing-error", f"a frame's data offset of {frame[4]} words"
            )
            return True
        if at == size:
            if frame[5] == 1:
                self.owner.on_violation("amqp:connection:framing-error", "an empty SASL frame")
            return True
        code = descriptor_code(frame + at, size - at, cython.address(body)) if frame[5] == 0 else -1
        session = self.session_of(channel) if 0x13 <= code <= 0x15 else None
        if session is None and self._has_to_wait():
            return False
        self.core.frames_in += 1
        self.frames_in += 1
        if session is None:
            self._give_to_owner(frame, at, size, channel)
        elif session.ended:
            pass
        elif code == 0x14:
            session.on_transfer(frame, at + body, size)
        elif code == 0x15:
            session.on_disposition(frame, at + body, size)
        else:
            session.on_flow(frame, at + body, size)
        return True

    def _has_to_wait(self):
        """Leave a frame to a later turn, where others have used up what this one has for such."""
        if not self.core.is_scanned_out() or not self._may_pause():
            return False
        self.paused = True
        self.core.postpone(self)
        return True

    def _may_pause(self):
        return self.fd >= 0 and self.core.on_unscanned is not None and not self.closed

    def _give_to_owner(self, frame, at, size, channel):
        start_s: cython.double = clock_s()
        body = bytes_from(frame + at, size - at)
        self.owner.on_frame(frame[5], channel, body)
        return self.pause_if_late(start_s)

    def pause_if_late(self, start_s):
        """Leave the frames that follow to a later turn, where those until now have taken long.

        What Python does counts, and has just done something: for a frame, or to make the node that
        a message is for.
        """
        now_s: cython.double = clock_s()
        if not self._may_pause():
            return 0
        self.core.note_scan(now_s - start_s)
        if now_s - self.core.now > OWNER_TIME_MAX_S or self.core.is_scanned_out():
            self.paused = True
            self.core.postpone(self)
        return 0

    def scan_on(self):
        """Go on with the frames that were left to this turn."""
        if not self.closed and self.paused:
            self.core.now = self.last_received_s = clock_s()
            self._consume_tail(self.core.buffer)
            if self.is_lost and not self.paused:
                self.report_lost()
        return 0

    def source_of_work(self):
        return self.source

    def _consume_tail(self, buffer):
        size: int64_t = self.tail_size
        self.paused = False
        memcpy(buffer, self.tail, size)
        self.tail_size = 0
        return self.consume(buffer, size)

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

    def let_go(self) -> None:
        """Send and read nothing any more."""
        Output.let_go(self)
        free(self.tail)
        self.tail = cython.NULL
        self.tail_size = self.tail_capacity = 0

    def shed(self) -> None:
        """Give back what an idle connection does not need."""
        if self.tail_size == 0 and self.tail != cython.NULL:
            free(self.tail)
            self.tail = cython.NULL
            self.tail_capacity = 0
        self.shed_output()

    def add_to(self, totals):
        totals.unsent_bytes += self.out_end - self.out_start
        totals.partial_bytes += self.tail_size
        return 0
