"""One AMQP 0-9-1 connection's octets: cut into frames as they arrive (§4.2.3).

Theory of operation. The wire starts behind the protocol header. It looks for whole frames, and gives
those that Python deals with to its owner, several at once and in order. A channel may take the frames
of some methods itself. The wire judges nothing: octets that cannot be a frame go to the owner as they
are, whose reader says what is wrong with them, and so does whatever a channel does not understand.
"""

import cython
from cython.cimports.cogwork.dataplane.core import UNFLUSHED_MAX_BYTES
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u16,
    load_u32,
    load_u64,
)
from cython.cimports.cogwork.dataplane.system import clock_s

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FRAME_START_BYTES = cython.declare(int64_t, 7)
FRAME_OVERHEAD_BYTES = cython.declare(uint64_t, 8)
"""Type, channel and size before a payload, with the end octet behind it."""

METHOD_FRAME_MIN_BYTES = cython.declare(uint64_t, 12)
"""With class and method."""

FRAME_MAX_BYTES = 131072 + 8
"""What is taken before a limit is negotiated; what the reader takes then is less."""

METHOD = cython.declare(uint8_t, 1)
HEADER = cython.declare(uint8_t, 2)
BODY = cython.declare(uint8_t, 3)
BASIC_CLASS = cython.declare(uint16_t, 60)
BASIC_PUBLISH = cython.declare(uint16_t, 40)
BASIC_ACK = cython.declare(uint16_t, 80)

FRAMES_MAX = cython.declare(uint32_t, 32)
"""So many frames are given to Python at once; then it is looked how long they took."""

BACKLOG_MAX_BYTES = cython.declare(int64_t, 8 * 1024 * 1024)
"""What may wait in addresses of what came by one connection before it is read no more: as of a
session of AMQP 1.0."""


class DirectChannel(ReceivingEnd):
    """A channel, as its wire sees it: what frames may go to without Python.

    Attributes:
        is_direct: Whether it takes frames at all; the owner lets it, and stops it.
    """

    def take_frames(self, data, size):
        """Take the method that `data` begins with, and its content; return how many octets it took.

        That is INDIRECT where Python is to deal with it, INCOMPLETE where not all of it has come.
        """
        return INDIRECT

    def follow(self, frame):
        """Take note of a frame that goes to Python, of a content perhaps (§4.2.6)."""
        self.content = NO_CONTENT if frame[0] == METHOD else self.content
        if frame[0] == METHOD:
            if load_u32(frame + 3) >= 4 and is_followed_by_content(frame):
                self.content = HEADER_NEXT
        elif frame[0] == HEADER and self.content == HEADER_NEXT and load_u32(frame + 3) >= 12:
            self.body_left = load_u64(frame + 11)
            self.content = BODY_NEXT if self.body_left else NO_CONTENT
        elif frame[0] == BODY and self.content == BODY_NEXT:
            self.body_left -= min(self.body_left, cython.cast(uint64_t, load_u32(frame + 3)))
            if self.body_left == 0:
                self.content = NO_CONTENT


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_followed_by_content(frame: octets) -> cython.bint:
    """Return whether a method that a client sends has a content: basic.publish alone."""
    return load_u16(frame + 7) == BASIC_CLASS and load_u16(frame + 9) == BASIC_PUBLISH


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
        self.channels = []

    def first_frame_bytes(self, data, size):
        return load_u32(data + 3) + FRAME_OVERHEAD_BYTES if size >= 7 else 0

    # -- channels that take frames themselves

    def map(self, number, channel):
        """Let the frames of a channel reach it; None leaves them all to Python."""
        while cython.cast(uint32_t, len(self.channels)) <= number:
            self.channels.append(None)
        self.channels[number] = channel
        self.has_channels = self.has_channels or channel is not None
        return 0

    def channel_of(self, number):
        if number >= cython.cast(uint32_t, len(self.channels)):
            return None
        return cython.cast(DirectChannel, self.channels[number])

    # -- input

    def scan(self, data, size):
        """Give frames to the channels that take them, the rest to Python in runs, all in order."""
        at: int64_t = 0
        taken: int64_t = 0
        run: int64_t = 0
        count: uint32_t = 0
        handed_on: uint32_t = 0
        needed: uint64_t
        # `run` octets from `at` on are whole frames for Python, `count` of them.
        while not self.closed and not self.paused and size - at - run >= FRAME_START_BYTES:
            needed = load_u32(data + at + run + 3) + FRAME_OVERHEAD_BYTES
            if needed > self.max_frame_in:
                run = size - at  # the owner's reader refuses it, after what is before it
                break
            if cython.cast(uint64_t, size - at - run) < needed:
                break
            if needed >= METHOD_FRAME_MIN_BYTES and self.takes(data + at + run):
                if count == 0:
                    taken = self.scan_direct(data + at, size - at)
                    if taken == INCOMPLETE:
                        break
                    at += taken
                    handed_on += 1
                    if handed_on % HANDED_ON_MAX == 0:
                        self.pause_if_long()
                if count or taken:
                    at += self.give(data + at, run, count)
                    run = count = 0
                    continue
            self.follow(data + at + run)
            run += cython.cast(int64_t, needed)
            count += 1
            if count == FRAMES_MAX:
                at += self.give(data + at, run, count)
                run = count = 0
        if run and not self.closed and not self.paused:
            at += self.give(data + at, run, count)
        return size if self.closed else at

    def takes(self, frame):
        """Return whether a channel may take a frame itself."""
        channel: DirectChannel
        method: uint16_t
        if not self.has_channels or frame[0] != METHOD or load_u16(frame + 7) != BASIC_CLASS:
            return False
        method = load_u16(frame + 9)
        if method not in (BASIC_PUBLISH, BASIC_ACK):
            return False
        channel = self.channel_of(load_u16(frame + 1))
        return channel is not None and channel.is_direct and channel.content == NO_CONTENT

    def scan_direct(self, data, size):
        """Give a channel the frames of one method; return how many octets it took."""
        channel: DirectChannel = self.channel_of(load_u16(data + 1))
        taken: int64_t = channel.take_frames(data, size)
        if self.core.unflushed_bytes > UNFLUSHED_MAX_BYTES:
            self.core.flush_all()
        return taken

    def follow(self, frame):
        """Have a channel know where the content stands that Python puts together for it."""
        channel: DirectChannel
        if self.has_channels:
            channel = self.channel_of(load_u16(frame + 1))
            if channel is not None:
                channel.follow(frame)
        return 0

    def give(self, data, size, count):
        """Give frames to the owner; return how many octets: none where they have to wait."""
        start_s: cython.double
        if size == 0 or self._has_to_wait():
            return 0
        self.frames_in += count
        self.core.frames_in += count
        start_s = clock_s()
        self.owner.on_frames(bytes_from(data, size))
        self.pause_if_late(start_s)
        return size

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
