"""A connection's bytes in both directions, whatever protocol they are of.

Theory of operation. What is read stands in the core's buffer, behind the part of a frame that an
earlier read has left, and `scan` takes as many whole frames of it as it may in this turn. What is
left is kept: a partial frame, or frames that have to wait for a later turn because those before
them took long. Output is gathered in one buffer, and sent with one system call when the batch ends.
"""

import cython
from cython.cimports.cogwork.dataplane.core import READ_SIZE_BYTES
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.system import EAGAIN, EINTR, clock_s, receive
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


class Duplex(Output):
    """One connection: the partial frame it read, and its output.

    Attributes:
        origin: Its number; what comes by it bears that.
        paused: Whether frames that have come wait for a later turn.
        source: Who its peer is, where sources share what the event loop has time for.
        held_bytes: What is kept of deliveries that came by it, whole or not.
    """

    def __init__(self, core: Core, owner, max_frame_in: int, fd: int = -1):
        """Make one that reads and writes a socket, or what a stream gives and takes.

        Args:
            core: The core it belongs to.
            owner: Gets what is not hot, and every violation.
            max_frame_in: The largest frame in bytes that the peer may send.
            fd: A connected non-blocking socket, or -1 where `feed` and `take_output` are used.
        """
        Output.__init__(self, core, owner, fd)
        self.max_frame_in = min(max_frame_in, READ_SIZE_BYTES * 4)
        self.read_size = READ_SIZE_START_BYTES
        core.next_origin += 1
        self.origin = core.next_origin
        self.last_received_s = clock_s()
        core.wires.append(self)

    def __dealloc__(self):
        free(self.tail)

    def scan(self, data, size):
        """Take the whole frames in `data`, as far as they may be taken now; return how much that was."""
        return size

    def first_frame_bytes(self, data, size):
        """Return how large the frame is that `data` begins with; 0 where that cannot be told."""
        return 0

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

    def _has_to_wait(self):
        """Leave a frame to a later turn, where others have used up what this one has for such."""
        if not self.core.is_scanned_out() or not self._may_pause():
            return False
        self.paused = True
        self.core.postpone(self)
        return True

    def _may_pause(self):
        return self.fd >= 0 and self.core.on_unscanned is not None and not self.closed

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

    def pause_if_long(self):
        """Leave what follows to a later turn, where what came until now took long to hand on.

        However little is read at a time, each message of it may be for thousands of queues.
        """
        taken_s: cython.double = clock_s() - self.core.now
        is_late: cython.bint = self.core.is_scanned_out()  # others have used up this turn's share
        if taken_s <= (BATCH_TIME_MAX_S if is_late else WIDE_BATCH_TIME_MAX_S):
            return 0
        if self._may_pause():
            self.core.note_scan(taken_s)
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

    def keep_tail(self, data, size):
        grown: cython.pointer(uint8_t)
        needed: uint64_t = size
        if needed > self.tail_capacity:
            needed = max(needed, min(self.first_frame_bytes(data, size), self.max_frame_in))
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
