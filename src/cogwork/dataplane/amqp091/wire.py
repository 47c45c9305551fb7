"""One AMQP 0-9-1 connection's octets: cut into frames as they arrive (§4.2.3).

Theory of operation. The wire starts behind the protocol header. It looks for whole frames, and gives
those that Python deals with to its owner, several at once and in order. It judges nothing: octets
that cannot be a frame go to the owner as they are, whose reader says what is wrong with them.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, load_u32
from cython.cimports.cogwork.dataplane.system import clock_s

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FRAME_START_BYTES = cython.declare(int64_t, 7)
FRAME_OVERHEAD_BYTES = cython.declare(uint64_t, 8)
"""Type, channel and size before a payload, with the end octet behind it."""

FRAME_MAX_BYTES = 131072 + 8
"""What is taken before a limit is negotiated; what the reader takes then is less."""

FRAMES_MAX = cython.declare(uint32_t, 32)
"""So many frames are given to Python at once; then it is looked how long they took."""

BACKLOG_MAX_BYTES = cython.declare(int64_t, 8 * 1024 * 1024)
"""What may wait in addresses of what came by one connection before it is read no more: as of a
session of AMQP 1.0."""


class BasicWire(Duplex):
    """One AMQP 0-9-1 connection: the partial frame it read, and its output."""

    def __init__(self, core, owner, fd: int = -1):
        """Make a wire.

        Args:
            core: The core it belongs to.
            owner: Gets the frames, and hears what becomes of the connection.
            fd: A connected non-blocking socket, or -1 where `feed` and `take_output` are used.
        """
        Duplex.__init__(self, core, owner, FRAME_MAX_BYTES, fd)

    def first_frame_bytes(self, data, size):
        return load_u32(data + 3) + FRAME_OVERHEAD_BYTES if size >= 7 else 0

    def scan(self, data, size):
        at: int64_t = 0
        taken: int64_t
        count: uint32_t = 0
        start_s: cython.double
        while at < size and not self.closed and not self.paused:
            taken = self.whole_frames(data + at, size - at, cython.address(count))
            if taken == 0 or self._has_to_wait():
                break
            self.frames_in += count
            self.core.frames_in += count
            start_s = clock_s()
            self.owner.on_frames(bytes_from(data + at, taken))
            at += taken
            self.pause_if_late(start_s)
        return size if self.closed else at

    def whole_frames(self, data, size, count):
        """Return how many octets whole frames take at the front; all, where there is no frame."""
        at: int64_t = 0
        needed: uint64_t
        count[0] = 0
        while count[0] < FRAMES_MAX and size - at >= FRAME_START_BYTES:
            needed = load_u32(data + at + 3) + FRAME_OVERHEAD_BYTES
            if needed > self.max_frame_in:
                return size  # the owner's reader refuses it, once it has had all that is before it
            if cython.cast(uint64_t, size - at) < needed:
                break
            at += cython.cast(int64_t, needed)
            count[0] += 1
        return at

    # -- what waits of its messages

    def has_backlog(self):
        """Return whether the owner has to hear that what waits is too much, or no longer."""
        if self.is_backlogged:
            return self.held_bytes <= BACKLOG_MAX_BYTES // 2
        return self.held_bytes > BACKLOG_MAX_BYTES

    def tell_backlog(self):
        """Have the owner stop reading while too much waits of what came, and go on then."""
        if self.has_backlog() and not self.closed:
            self.is_backlogged = not self.is_backlogged
            self.owner.on_backlog(self.is_backlogged)
        return 0
