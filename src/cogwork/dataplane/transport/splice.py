"""A session that is passed on: its frames go out on another connection as they came in.

A tunnel is a session between two containers that are not neighbours. The containers between them
do not take part in it: what arrives on its channel is copied to the next wire, and only the channel
number in each frame's header is another one (AMQP 1.0 §2.3.1). Windows, credit and settlement are
the two ends' own business.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import load_u16, load_u32, store_u16
from cython.cimports.cogwork.dataplane.transport.wire import Wire
from cython.cimports.libc.stdint import uint8_t, uint16_t, uint32_t
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ATTACH = cython.declare(uint8_t, 0x12)
DETACH = cython.declare(uint8_t, 0x16)
"""From attach to detach, the performatives that belong to a session's ends alone."""

TRANSFER = cython.declare(uint8_t, 0x14)
TRANSFER_MIN_BYTES = cython.declare(uint32_t, 26)
"""With room for a list of any form, a handle of any form, and a delivery-id."""

LIST_MIN_BYTES = cython.declare(int64_t, 15)
"""The same without the frame's header and the descriptor."""

FRAME_MIN_BYTES = cython.declare(int64_t, 11)
"""A header, and a descriptor in its short form."""


@cython.cfunc
@cython.exceptval(check=False)
def begins_delivery(p: octets) -> cython.bint:
    """Return whether a transfer's list has a delivery-id: only the first frame needs one (§2.6.14).

    `p` has room for a list's head, a handle and one octet more.
    """
    at: cython.int = 3 if p[0] == 0xC0 else 9
    if p[at] == 0x70:
        at += 5
    else:
        at += 2 if p[at] == 0x52 else 1
    return p[at] != 0x40


class Splice(Channel):
    """One of the two sides of a session that is passed on.

    Attributes:
        owner: Gets what is not passed on: begin and end.
        other: The side that what arrives here goes out by.
        frames: How many went through, coming from this side.
        bytes: Of these frames.
        messages: How many began with one of these frames.
    """

    def __init__(self, wire: Wire, channel: int):
        """Make a side that has no other yet.

        Args:
            wire: The connection on this side.
            channel: What frames carry that go out there.
        """
        self.wire = wire
        self.core = wire.core
        self.local_channel = channel

    def join(self, other: Splice) -> None:
        """Let frames pass from here to the other side, and back."""
        self.other = other
        other.other = self

    def end(self) -> None:
        """Throw away from now on what arrives here."""
        self.ended = True

    @property
    def unsettled(self) -> int:
        """Counts nothing: what is under way is the ends' to settle."""
        return 0

    def write_settlements(self) -> None:
        """Write nothing: settlements pass through as they come."""

    def pass_on(self, data, size):
        """Pass on the frames of this channel that `data` starts with; return their size.

        A frame that concerns the session itself is left to the wire; so is one whose header or
        descriptor is not in its short form, which comes back one by one.
        """
        at: int64_t = 0
        frames: uint32_t = 0
        messages: uint32_t = 0
        frame_size: uint32_t
        channel: uint16_t = load_u16(data + 6)
        while size - at >= FRAME_MIN_BYTES:
            frame_size = load_u32(data + at)
            if frame_size < FRAME_MIN_BYTES or frame_size > size - at:
                break
            if load_u16(data + at + 6) != channel or frame_size > self.wire.max_frame_in:
                break
            if load_u16(data + at + 4) != 0x0200 or load_u16(data + at + 8) != 0x0053:
                break
            if data[at + 10] < ATTACH or data[at + 10] > DETACH:
                break
            if data[at + 10] == TRANSFER and frame_size >= TRANSFER_MIN_BYTES:
                messages += begins_delivery(data + at + 11)
            at += frame_size
            frames += 1
        if at and not self.ended:
            self.wire.frames_in += frames
            self.core.frames_in += frames
            self._copy(data, at, frames, messages)
        return at

    def on_transfer(self, p, at, end):
        is_first: cython.bint = end - at >= LIST_MIN_BYTES and begins_delivery(p + at)
        return self._pass_one(p, end, is_first)

    def on_flow(self, p, at, end):
        return self._pass_one(p, end, 0)

    def on_disposition(self, p, at, end):
        return self._pass_one(p, end, 0)

    def _pass_one(self, frame, size, messages):
        """Pass on one frame, which the wire has counted."""
        return 0 if self.ended else self._copy(frame, size, 1, messages)

    def _copy(self, data, size, frames, messages):
        """Write frames to the other side's wire, under that side's channel."""
        wire: Wire
        p: cython.pointer(uint8_t)
        at: int64_t = 0
        if self.other is None or self.other.ended:
            return 0
        wire = self.other.wire
        if wire.closed:
            return 0
        self.frames += frames
        self.bytes += size
        self.messages += messages
        p = wire.reserve(cython.cast(uint32_t, size))
        memcpy(p, data, size)
        while at < size:
            store_u16(p + at + 6, self.other.local_channel)
            at += load_u32(p + at)
        wire.frames_out += frames - 1
        return wire.committed(cython.cast(uint32_t, size))
