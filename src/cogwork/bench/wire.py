"""One AMQP connection with one session, driven without Python objects: what all roles share.

Theory of operation. A step flushes what is left over, lets the role compose more, sends it, reads
once and hands each frame to the role. Two buffers go out: `bulk` (the role's transfers) and
`control` (flows and dispositions). They alternate at frame boundaries only: control waits until
bulk is empty, and once begun it is finished first. While control is full, reading pauses.
"""

import cython
from cython.cimports.cogwork.bench.frame import (
    read_disposition,
    read_flow,
    read_frame,
    read_transfer,
    write_flow,
)
from cython.cimports.cogwork.bench.layout import (
    CODE_DISPOSITION,
    CODE_EMPTY,
    CODE_FLOW,
    CODE_TRANSFER,
    COGWORK_SOURCE_HASH,
    CONTROL_SIZE,
    FAREWELL_SIZE,
    FLOW_SIZE,
    INCOMING_SIZE,
    READ_SIZE,
    STATUS_BLOCKED,
    STATUS_BUSY,
    STATUS_FAILED,
    STATUS_IDLE,
    STATUS_OVER,
    Disposition,
    Flow,
    Frame,
    Transfer,
    octet,
)
from cython.cimports.cogwork.bench.system import (
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    POLLIN,
    POLLOUT,
    poll,
    pollfd,
    recv,
    send,
)
from cython.cimports.cpython.buffer import PyBUF_READ, PyBUF_WRITE
from cython.cimports.cpython.memoryview import PyMemoryView_FromMemory
from cython.cimports.libc.errno import EAGAIN, EINTR, errno
from cython.cimports.libc.stdint import int32_t, int64_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memmove
from cython.cimports.posix.time import CLOCK_MONOTONIC, clock_gettime, timespec

SOURCE_HASH: str = COGWORK_SOURCE_HASH.decode()

BUSY = STATUS_BUSY
IDLE = STATUS_IDLE
BLOCKED = STATUS_BLOCKED
OVER = STATUS_OVER
FAILED = STATUS_FAILED

_POLL_MS = cython.declare(cython.int, 100)
"""How long a blocked wire sleeps at most before it looks at the clock again."""

_INCOMING_WINDOW = cython.declare(int64_t, (1 << 31) - 1)
"""Transfer frames that we take: credit is what bounds a peer here, as in most clients."""


def now_ns() -> uint64_t:
    """Return the monotonic clock, which all processes of a machine share."""
    now = cython.declare(timespec)
    clock_gettime(CLOCK_MONOTONIC, cython.address(now))
    return cython.cast(uint64_t, now.tv_sec) * 1_000_000_000 + cython.cast(uint64_t, now.tv_nsec)


class Wire:
    """A connection beyond its handshake; a role derives from it."""

    def __cinit__(self) -> None:
        self._incoming = cython.cast(cython.pointer(octet), malloc(INCOMING_SIZE))
        self._control = cython.cast(cython.pointer(octet), malloc(CONTROL_SIZE))
        if not self._incoming or not self._control:
            raise MemoryError
        self._fault = cython.NULL

    def __init__(self, peer: object) -> None:
        """Take over a connection whose session is open.

        Args:
            peer: The connection beyond its handshake, a `Peer`. Its socket stays the caller's, and
                so do its bytes where it is a TLS socket: then only `output`, `note_sent`, `room`
                and `note_received` are used.
        """
        received: bytes = peer.received
        if len(received) > READ_SIZE:
            raise ValueError(f"{len(received)} bytes behind the handshake, at most {READ_SIZE}")
        self._fd = peer.fd
        self._channel = peer.channel
        self._window = peer.window
        memcpy(self._incoming, cython.cast(cython.p_char, received), len(received))
        self._in_end = len(received)
        self._stalled = self._in_end > 0

    def __dealloc__(self) -> None:
        free(self._incoming)
        free(self._control)

    @property
    def status(self) -> int:
        """BUSY, IDLE, BLOCKED, OVER or FAILED, as the last step left it."""
        return self._status

    @property
    def fault(self) -> str:
        """What went wrong, empty while nothing has."""
        return "" if self._fault == cython.NULL else self._fault.decode()

    @property
    def farewell(self) -> bytes:
        """The frame with which the peer ended the link, session or connection; else empty."""
        return self._farewell[: self._farewell_size]

    def step(self) -> int:
        """Do what can be done without waiting; return the status."""
        with cython.nogil:
            self._step(False)
        return self._status

    def run(self, slice_s: float) -> int:
        """Work for up to `slice_s`; the socket needs a receive time-out. Returns the status."""
        until_ns: uint64_t = now_ns() + cython.cast(uint64_t, slice_s * 1e9)
        with cython.nogil:
            self._run(until_ns)
        return self._status

    def output(self) -> memoryview:
        """Return what is to be sent next; empty where there is nothing."""
        size: cython.Py_ssize_t = 0
        at = self._pending(cython.address(size))
        if size == 0:
            self._compose()
            at = self._pending(cython.address(size))
        return PyMemoryView_FromMemory(cython.cast(cython.p_char, at), size, PyBUF_READ)

    def note_sent(self, size: cython.Py_ssize_t) -> int:
        """Take note that `size` bytes of `output()` were sent; return the status."""
        self._advance(size)
        return self._settle_status(STATUS_BUSY)

    def room(self) -> memoryview:
        """Return where to read into; empty where `note_received(0)` must come first."""
        size: cython.Py_ssize_t = 0 if self._stalled else READ_SIZE
        return PyMemoryView_FromMemory(
            cython.cast(cython.p_char, self._incoming + self._in_end), size, PyBUF_WRITE
        )

    def note_received(self, size: cython.Py_ssize_t) -> int:
        """Take in `size` bytes that were read into `room()`; return the status."""
        self._in_end += size
        self._consume()
        return self._settle_status(STATUS_BUSY)

    def _fail(self, fault: cython.p_char) -> cython.void:
        if self._status != STATUS_FAILED:
            self._fault = fault
            self._status = STATUS_FAILED

    def _run(self, until_ns: uint64_t) -> cython.void:
        waiting = cython.declare(pollfd)
        waiting.fd = self._fd
        waiting.events = POLLIN | POLLOUT
        while True:
            self._step(True)
            if self._status in (STATUS_OVER, STATUS_FAILED) or now_ns() >= until_ns:
                return
            if self._status == STATUS_BLOCKED:
                poll(cython.address(waiting), 1, _POLL_MS)

    def _step(self, wait: cython.bint) -> cython.int:
        """Send, composes, sends, reads; with `wait` the read may block, if nothing else is due."""
        more: cython.bint = False
        moved: cython.bint
        flushed: cython.bint = self._flush()
        if flushed and not self._stalled:
            more = self._compose()
            flushed = self._flush()
        if self._stalled:
            self._consume()
            moved = not self._stalled
            flushed = self._flush()
        else:
            moved = self._receive(wait and flushed and not more)
        if not flushed:
            return self._settle_status(STATUS_BLOCKED)
        return self._settle_status(STATUS_BUSY if more or moved else STATUS_IDLE)

    def _settle_status(self, status: cython.int) -> cython.int:
        size: cython.Py_ssize_t = 0
        self._pending(cython.address(size))
        if self._status == STATUS_FAILED:
            return self._status
        self._status = STATUS_OVER if size == 0 and self._is_over() else status
        return self._status

    def _pending(self, size: cython.pointer(cython.Py_ssize_t)) -> cython.pointer(octet):
        """Return the segment to send from, and its size."""
        if self._bulk_end > self._bulk_start and self._control_start == 0:
            size[0] = self._bulk_end - self._bulk_start
            return self._bulk + self._bulk_start
        size[0] = self._control_end - self._control_start
        return self._control + self._control_start

    def _advance(self, size: cython.Py_ssize_t) -> cython.void:
        if self._bulk_end > self._bulk_start and self._control_start == 0:
            self._bulk_start += size
            return
        self._control_start += size
        if self._control_start == self._control_end:
            self._control_start = self._control_end = 0

    def _flush(self) -> cython.bint:
        """Send what is pending; return whether nothing is left."""
        size: cython.Py_ssize_t = 0
        count: cython.Py_ssize_t
        while True:
            at = self._pending(cython.address(size))
            if size == 0:
                return True
            count = send(self._fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL)
            if count < 0:
                if errno != EAGAIN and errno != EINTR:  # noqa: PLR1714 -- a set is a Python object
                    self._fail(b"the connection was lost while sending")
                return False
            self._advance(count)

    def _receive(self, wait: cython.bint) -> cython.bint:
        """Read once and hands the frames on; return whether anything came."""
        count: cython.Py_ssize_t = recv(
            self._fd, self._incoming + self._in_end, READ_SIZE, 0 if wait else MSG_DONTWAIT
        )
        if count > 0:
            self._in_end += count
            self._consume()
            return True
        if count == 0:
            self._fail(b"the peer closed the connection")
        elif errno != EAGAIN and errno != EINTR:  # noqa: PLR1714 -- a set is a Python object
            self._fail(b"the connection was lost while receiving")
        return False

    def _consume(self) -> cython.void:
        """Hand on every whole frame that was read, while the role has room for its answers."""
        frame = cython.declare(Frame)
        size: cython.Py_ssize_t = 1
        self.last_ns = now_ns()
        self._stalled = False
        while size > 0:
            if not self._has_room():
                self._stalled = True
                break
            size = read_frame(
                self._incoming + self._in_start,
                self._incoming + self._in_end,
                cython.address(frame),
            )
            if size < 0 or (size > 0 and not self._on_frame(cython.address(frame))):
                self._fail(b"the peer sent a malformed frame")
                return
            self._in_start += size
        self._after_batch()
        self._tidy()

    def _tidy(self) -> cython.void:
        """Move the partial tail to the front."""
        left: cython.Py_ssize_t = self._in_end - self._in_start
        if self._in_start > 0 and left > 0:
            memmove(self._incoming, self._incoming + self._in_start, left)
        self._in_start = 0
        self._in_end = left
        if left > INCOMING_SIZE - READ_SIZE and not self._stalled:
            self._fail(b"the peer sent a frame larger than agreed")

    def _on_frame(self, frame: cython.pointer(Frame)) -> cython.bint:
        transfer = cython.declare(Transfer)
        disposition = cython.declare(Disposition)
        flow = cython.declare(Flow)
        if frame.code == CODE_TRANSFER:
            if not read_transfer(frame, cython.address(transfer)):
                return False
            self._next_incoming_id += 1
            self._on_transfer(cython.address(transfer))
        elif frame.code == CODE_DISPOSITION:
            if not read_disposition(frame, cython.address(disposition)):
                return False
            self._on_disposition(cython.address(disposition))
        elif frame.code == CODE_FLOW:
            if not read_flow(frame, cython.address(flow)):
                return False
            self._update_window(cython.address(flow))
            self._on_flow(cython.address(flow))
        elif frame.code != CODE_EMPTY:
            self._part(frame)
        return True

    def _update_window(self, flow: cython.pointer(Flow)) -> cython.void:
        """Compute what the peer still takes (AMQP 1.0 §2.5.6); an absent id means our first, 0."""
        taken: uint32_t = 0
        if flow.next_incoming_id >= 0:
            taken = cython.cast(uint32_t, flow.next_incoming_id)
        in_flight: int32_t = cython.cast(int32_t, self._next_outgoing_id - taken)
        self._window = flow.incoming_window - in_flight

    def _part(self, frame: cython.pointer(Frame)) -> cython.void:
        """Keep the frame with which the peer ends something, for the report."""
        self._farewell_size = min(frame.size, FAREWELL_SIZE)
        memcpy(self._farewell, frame.end - frame.size, self._farewell_size)
        self._fail(b"the peer ended the link, session or connection")

    def _send_flow(self, handle: int64_t, delivery_count: int64_t, credit: int64_t) -> cython.void:
        """Add a flow to control; `_has_room` has seen to its place."""
        flow = cython.declare(Flow)
        flow.next_incoming_id = self._next_incoming_id
        flow.incoming_window = _INCOMING_WINDOW
        flow.next_outgoing_id = self._next_outgoing_id
        flow.outgoing_window = _INCOMING_WINDOW
        flow.handle = handle
        flow.delivery_count = delivery_count
        flow.link_credit = credit
        self._control_end += write_flow(
            self._control + self._control_end, self._channel, cython.address(flow)
        )

    def _has_room(self) -> cython.bint:
        """Return whether the answers to one more frame have room."""
        return CONTROL_SIZE - self._control_end >= 4 * FLOW_SIZE

    def _compose(self) -> cython.bint:
        """Fill bulk, called when nothing is pending; return whether more could follow at once."""
        return False

    def _after_batch(self) -> cython.void:
        """Close what the role gathered over the frames of one read."""

    def _is_over(self) -> cython.bint:
        """Return whether the role has done all that it was asked for."""
        return False

    def _on_transfer(self, transfer: cython.pointer(Transfer)) -> cython.void:  # noqa: ARG002 -- virtual
        """Take a transfer in; a role without receiving links calls it a fault."""
        self._fail(b"the peer sent a transfer without credit")

    def _on_flow(self, flow: cython.pointer(Flow)) -> cython.void:
        """Take a flow in; the session's window is up to date."""

    def _on_disposition(self, disposition: cython.pointer(Disposition)) -> cython.void:
        """Take a disposition in."""
