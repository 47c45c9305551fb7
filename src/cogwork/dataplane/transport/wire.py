"""One AMQP 1.0 connection's frames, scanned as they arrive.

Theory of operation. What a wire reads is scanned in place: transfers, dispositions and flows go to
the channel that they name, runs of transfers as a whole. Every other performative, and every
violation, goes to the wire's `owner`, which is ordinary Python.
"""

import cython
from cython.cimports.cogwork.dataplane.core import UNFLUSHED_MAX_BYTES
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, load_u16, load_u32
from cython.cimports.cogwork.dataplane.encoding.values import descriptor_code
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cogwork.dataplane.transport.transfers import (
    TransferShape,
    has_shape,
    learn_shape,
    parse_common_transfer,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

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


class Wire(Duplex):
    """One AMQP 1.0 connection: its frames, and the sessions that they are of."""

    def __init__(self, core: Core, owner, max_frame_in: int, fd: int = -1):
        """Make a wire.

        Args:
            core: The core it belongs to.
            owner: Gets what is not transfer, disposition or flow, and every violation.
            max_frame_in: The largest frame in bytes that the peer may send.
            fd: A connected non-blocking socket, or -1 where `feed` and `take_output` are used.
        """
        Duplex.__init__(self, core, owner, max_frame_in, fd)
        self.sessions = []

    # -- what Python does with a wire

    def start_framing(self) -> None:
        """From here on the bytes are frames; before, `owner.on_header` gets them eight at a time."""
        self.framing = True

    def expect_header(self) -> None:
        """The next bytes are a protocol header again, as after SASL (AMQP 1.0 §5.3.2)."""
        self.framing = False

    def map_session(self, channel: int, session) -> None:
        """Let frames on the peer's `channel` reach `session`; None unmaps it."""
        while len(self.sessions) <= channel:
            self.sessions.append(None)
        self.sessions[channel] = session

    def session_on(self, channel: int):
        """Return the session that the peer's `channel` leads to, or None."""
        return self.session_of(channel)

    # -- input

    def first_frame_bytes(self, data, size):
        return load_u32(data) if size >= 4 and self.framing else 0

    def scan(self, data, size):
        at: int64_t = 0
        taken: int64_t
        frame_size: uint32_t
        dispatched: uint32_t = 0
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
                    self.pause_if_long()
                    if self.paused:
                        break
                    if core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
                        core.flush_all()
                    continue
            if not self.dispatch(data + at, frame_size):
                break
            at += frame_size
            dispatched += 1
            if dispatched % HANDED_ON_MAX == 0:
                self.pause_if_long()
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

    def _give_to_owner(self, frame, at, size, channel):
        start_s: cython.double = clock_s()
        body = bytes_from(frame + at, size - at)
        self.owner.on_frame(frame[5], channel, body)
        return self.pause_if_late(start_s)

    def session_of(self, channel):
        if channel >= cython.cast(uint32_t, len(self.sessions)):
            return None
        return cython.cast(Channel, self.sessions[channel])
