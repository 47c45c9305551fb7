"""The outcomes that a session has to say: joined in ranges, written as dispositions."""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of, store_u32, store_uint
from cython.cimports.cogwork.dataplane.transport.frames import (
    HEADER_ROOM_BYTES,
    end_performative,
    put_bool,
    put_performative,
)
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    RECEIVED,
    REJECTED,
    RELEASED,
)
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ACCEPTED_STATE = cython.declare(bytes, b"\x00\x53\x24\x45")
RELEASED_STATE = cython.declare(bytes, b"\x00\x53\x26\x45")
REJECTED_STATE = cython.declare(bytes, b"\x00\x53\x25\x45")
RECEIVED_STATE = cython.declare(bytes, b"\x00\x53\x23\xc0\x03\x02\x43\x44")
FAILED_STATE = cython.declare(bytes, b"\x00\x53\x27\xc0\x02\x01\x41")
"""The delivery states that the data plane itself says: accepted, released, rejected, received (from
the start), modified (failed)."""


class Settlements(Channel):
    """A session's settlements that are due, as receiver to senders and as sender to receivers."""

    def settle(self, r, as_receiver, delivery_id, v, settled):
        """Join a settlement to the open range, or write that and opens a new one."""
        simple: cython.bint = (
            v.code == ACCEPTED
            or v.code == RELEASED
            or v.code == RECEIVED
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
        """Do the same for `count` consecutive deliveries."""
        index: uint32_t
        self.settle(r, as_receiver, delivery_id, v, settled)
        if r.open:
            r.last = delivery_id + count - 1
            return 0
        for index in range(1, count):
            self.settle(r, as_receiver, delivery_id + index, v, settled)
        return 0

    def write_range(self, r, as_receiver, state, state_size):
        """Write a range, where it is open, with a state or the one that its code says."""
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
            elif r.code == RECEIVED:
                fixed = RECEIVED_STATE
            state = octets_of(fixed)
            state_size = cython.cast(uint32_t, len(fixed))
        frame = self.wire.reserve(HEADER_ROOM_BYTES + state_size)
        # A list32 where the state is long: `end_performative` has room for one octet of size.
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

    def write_settlements(self) -> None:
        """Say the outcomes that are due, before something is said that ends a link or more."""
        if not self.ended:
            self.write_ranges()

    def write_ranges(self):
        self.write_range(cython.address(self.to_sender), True, cython.NULL, 0)
        return self.write_range(cython.address(self.to_receiver), False, cython.NULL, 0)
