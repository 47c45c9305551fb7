"""What is to be sent on one connection, and the links that wait for room in it.

Theory of operation. All output stands in one buffer and is sent in order. Where something that was
written follows from a change that is not durable yet, the buffer has a hold: the bytes behind its
position stay until the core releases its barrier. So whoever writes need not wait, or know, and
nothing leaves too early. What is held for a barrier that will never be released is cut off, and the
connection is closed.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    octets_of,
    store_u16,
    store_u32,
)
from cython.cimports.cogwork.dataplane.system import EAGAIN, EINTR, clock_s, send
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy, memmove

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

KEPT_OUTPUT_MAX_BYTES = cython.declare(uint64_t, 64 * 1024 * 1024)
"""Empty output buffers are kept for the next batch while all of them would be no more than this."""

OUT_SIZE_MIN_BYTES = 1024

SEND_SIZE_MAX_BYTES = cython.declare(uint64_t, 128 * 1024)
"""What one system call sends: most kernels let nobody else have the processor before it returns, and
some megabytes for a process of the same machine take them two milliseconds."""

SLICE_BYTES = cython.declare(uint64_t, 256 * 1024)
"""So much is sent at once, while it is in the processor's cache, and does not wait for more."""

HOLDS_MIN = cython.declare(uint32_t, 4)
"""About as many barriers as are open at once."""


class Output(Due):
    """A connection's output: one buffer, which is sent when the batch ends.

    Attributes:
        is_never_held: Whether nothing here waits for what is durable: consensus itself goes by it.
    """

    def __init__(self, core: Core, owner, fd: int):
        self.core = core
        self.owner = owner
        self.fd = fd
        self.max_frame_out = 512
        self.stalled = []
        self.last_sent_s = clock_s()

    def __dealloc__(self):
        free(self.out)
        free(self.holds)

    # -- what Python does with it

    def stop(self) -> None:
        """Read no more: what arrives from now on is thrown away."""
        self.closed = True
        if self in self.core.wires:
            self.core.wires.remove(self)

    def on_writable(self) -> None:
        """Go on sending after the socket was full."""
        self.blocked = False
        self.core.now = clock_s()
        self.transmit()
        self.core.flush_all()

    def send_rest(self) -> None:
        """Send what was written, as far as the socket takes it, also after `stop`."""
        if not self.blocked:
            self.transmit()

    def let_go(self) -> None:
        """Send nothing any more: another socket may get the number of this one's descriptor.

        Its memory is given back now: a connection is part of cycles, which are found much later.
        """
        self.fd = -1
        self.on_output = None
        self.drop_output()

    def drop_output(self) -> None:
        """Throw away what its peer has not taken, and give the memory back; it is over then."""
        self.holds_count = 0
        self.out_start = self.out_end = self.out_capacity = 0
        free(self.out)
        self.out = cython.NULL

    def write(self, data: bytes) -> None:
        """Append bytes to the output as they are."""
        self.append(
            octets_of(data),
            cython.cast(uint32_t, len(data)),
        )

    def write_frame(self, channel: int, body: bytes, frame_type: int = 0) -> None:
        """Append one frame whose body is given whole."""
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
        """Hand over output for a stream to send; what is handed over counts as sent."""
        size: uint64_t = self.sendable_end() - self.out_start
        size = min(size, cython.cast(uint64_t, size_max_bytes))
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

    @property
    def output_bytes(self) -> int:
        """Counts the memory that the output takes, with what has been sent of it."""
        return self.out_capacity

    @property
    def sendable_bytes(self) -> int:
        """Counts the unsent output that is not held."""
        return self.sendable_end() - self.out_start

    def owe_open(self) -> None:
        """Take note that nothing can be told on this connection before its open."""
        self.opened_at = cython.cast(uint64_t, 0) - 1

    def note_open(self) -> None:
        """Take note that the open has been written just now."""
        self.opened_at = self.bytes_out + self.out_end - self.out_start

    # -- output that must not leave before something is durable

    def hold_output(self) -> None:
        """Hold whatever is written from now on until the core's open barrier is released."""
        self.hold()

    def _hold(self):
        grown: cython.pointer(Hold)
        capacity: uint32_t
        if self.is_never_held:
            self.last_barrier = self.core.open_barrier
            return 0
        if self.holds_count == self.holds_capacity:
            capacity = self.holds_capacity * 2 if self.holds_capacity else HOLDS_MIN
            grown = cython.cast(
                cython.pointer(Hold), realloc(self.holds, capacity * cython.sizeof(Hold))
            )
            if grown == cython.NULL:
                raise MemoryError("no room for held output")
            self.holds = grown
            self.holds_capacity = capacity
        if self.holds_count == 0:
            self.core.held_wires.append(self)
        self.last_barrier = self.core.open_barrier
        self.holds[self.holds_count].position = self.bytes_out + self.out_end - self.out_start
        self.holds[self.holds_count].barrier = self.last_barrier
        self.holds_count += 1
        return self.core.use_barrier()

    def release(self, barrier: int) -> bool:
        """Let go what is held for barriers up to one; return whether anything is held still.

        It is sent when the core is flushed.
        """
        released: uint64_t = barrier
        count: uint32_t = 0
        while count < self.holds_count and self.holds[count].barrier <= released:
            count += 1
        if count:
            self.holds_count -= count
            memmove(self.holds, self.holds + count, self.holds_count * cython.sizeof(Hold))
            if self.closed:
                self._call_for_output()
            self.mark_dirty()
        return self.holds_count > 0

    def break_off(self, condition: str, description: str) -> None:
        """Throw away what is held, and have the owner close the connection."""
        self.out_end = self.sendable_end()
        self.holds_count = 0
        if self.closed:
            self._call_for_output()
            return
        try:
            if self.bytes_out + self.out_end - self.out_start < self.opened_at:
                self.owner.on_lost(0)  # its open is not told, so no close can be
            else:
                self.owner.on_violation(condition, description)
        except Exception as error:
            self._blame(error)

    def _call_for_output(self):
        """Have whoever takes the output look whether there is more, or none will come."""
        if self.on_output is not None:
            try:
                self.on_output()
            except Exception as error:
                self._blame(error)
        return 0

    # -- what is written to it

    def mark_dirty(self):
        if not self.dirty and not self.blocked:
            self.dirty = True
            self.core.dirty_wires.append(self)
        return 0

    def _grow(self, size):
        """Make room for more output: what has been sent goes first."""
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
        if self.fd >= 0 and not self.blocked and not self.congested:
            if self.sendable_end() - self.out_start > min(
                cython.cast(uint64_t, self.core.congested_at_bytes), SLICE_BYTES
            ):
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

    # -- sending

    def end_batch(self):
        self.dirty = False
        try:
            self.transmit()
        except Exception as error:
            self._blame(error)
        return 0

    def transmit(self):
        sent: int64_t
        size: uint64_t
        end: uint64_t = self.sendable_end()
        if self.fd < 0:
            if self.on_output is not None and end > self.out_start:
                self.on_output()
            return 0
        while self.out_start < end and not self.blocked:
            size = end - self.out_start
            sent = send(self.fd, self.out + self.out_start, min(size, SEND_SIZE_MAX_BYTES))
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
                    self.holds_count = 0
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
        if self.departing is not None:
            self._report_departed()
        if self.congested and left <= cython.cast(uint64_t, self.core.congested_at_bytes) // 2:
            self.congested = False
            self.wake_stalled()
        return 0

    def _report_departed(self):
        """Have those look again who wait for what they wrote to leave."""
        due: Due
        waiting: list = self.departing
        self.departing = None
        for due in waiting:
            self.core.put_off(due)
        return 0

    def keep(self, size_bytes: int) -> None:
        """Take note that a layer between has taken output, and have so much of it unsent."""
        self.kept_bytes = size_bytes
        if self.departing is not None and size_bytes == 0:
            self._report_departed()

    def wake_stalled(self):
        """Let links go on, in turn: one that has sent and wants more comes behind all others."""
        links: list = self.stalled
        served: list = []
        link: Due
        last: cython.Py_ssize_t
        frames: uint64_t
        if not links or self.closed:
            return 0
        self.stalled = []
        for link in links:
            frames = self.frames_out
            link.relieve()
            last = len(self.stalled) - 1
            if self.frames_out != frames and last >= 0 and self.stalled[last] is link:
                served.append(self.stalled.pop())
        self.stalled += served
        return 0

    def report_lost(self) -> None:
        """Tell the owner that the socket failed."""
        try:
            self.owner.on_lost(self.lost_errno)
        except Exception as error:
            self._blame(error)

    def _blame(self, error):
        """Keep a fault of ours to the connection that it happened on."""
        try:
            self.owner.on_fault(error)
        except Exception as fault:
            self.stop()
            self.core.tell_fault(self, fault)

    def shed_output(self):
        """Give the buffer back where nothing is in it."""
        if self.out_end == 0 and self.out != cython.NULL:
            free(self.out)
            self.out = cython.NULL
            self.out_capacity = 0
        return 0
