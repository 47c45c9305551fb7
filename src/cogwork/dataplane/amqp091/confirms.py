"""What a client is told of the messages that it has published on a channel (RabbitMQ's confirms).

Theory of operation. Messages are numbered from 1. Of each one it becomes known, in any order, whether
it was taken. What is known without a gap from the oldest on is a row, of which one frame tells as
long as it is all alike; what is known behind a gap is told one by one. So nothing is told twice, and
nothing early: a multiple ack never reaches beyond a message that is still open.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import store_u16, store_u32, store_u64
from cython.cimports.libc.stdlib import calloc, free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SIZE_MIN = cython.declare(uint64_t, 64)

BASIC_ACK = cython.declare(uint32_t, 60 << 16 | 80)
BASIC_NACK = cython.declare(uint32_t, 60 << 16 | 120)
FRAME_END = cython.declare(uint8_t, 0xCE)


class Confirms:
    """The numbered messages of one channel.

    Attributes:
        published: How many there are.
    """

    def __init__(self, wire, channel):
        """Begin to count.

        Args:
            wire: Where confirms are written.
            channel: The channel's number.
        """
        self.wire = wire
        self.channel = channel
        self.oldest = 1
        self.apart = []

    def __dealloc__(self):
        free(self.states)

    def count(self):
        """Return the next message's number."""
        if self.published + 2 - self.oldest > self.size:
            self._grow()
        self.published += 1
        self.states[self.published & (self.size - 1)] = OPEN
        return self.published

    def _grow(self):
        size: uint64_t = self.size * 2 if self.size else SIZE_MIN
        number: uint64_t = self.oldest
        grown: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), calloc(size, 1))
        if grown == cython.NULL:
            raise MemoryError("no room for more unconfirmed messages")
        while number <= self.published:
            grown[number & (size - 1)] = self.states[number & (self.size - 1)]
            number += 1
        free(self.states)
        self.states = grown
        self.size = size
        return 0

    def note(self, number, state):
        """Take note of what became of a message; a second time nothing changes."""
        if number < self.oldest or number > self.published:
            return 0
        if self.states[number & (self.size - 1)] != OPEN:
            return 0
        self.states[number & (self.size - 1)] = state
        if number != self.oldest:
            self.apart.append(number)
            return 0
        while self.oldest <= self.published:
            state = self.states[self.oldest & (self.size - 1)]
            if state == OPEN:
                break
            if state == TOLD:  # it stands in nobody's way
                self.oldest += 1
            else:
                self._add_to_row(state)
        return 0

    def _add_to_row(self, state):
        """Have the oldest message told together with those before it."""
        if self.row_count and self.row_state != state:
            self._write_row()
        self.row_state = state
        self.row_end = self.oldest
        self.row_count += 1
        self.oldest += 1
        return 0

    def _write_row(self):
        if self.row_count:
            # As RabbitMQ's of one message, because clients count those of several apart.
            self._write(self.row_end, self.row_state, self.row_count > 1)
            self.row_count = 0
        return 0

    def write_all(self):
        """Tell what is known and has not been told."""
        at: uint64_t
        self._write_row()
        if self.apart:
            for number in self.apart:
                if number >= self.oldest:
                    at = cython.cast(uint64_t, number) & (self.size - 1)
                    self._write(number, self.states[at], False)
                    self.states[at] = TOLD
            self.apart = []
        return 0

    def _write(self, number, state, multiple):
        """Write basic.ack or basic.nack (§1.8.3.13)."""
        p: cython.pointer(uint8_t)
        if self.wire.closed:
            return 0
        p = self.wire.reserve(21)
        p[0] = 1
        store_u16(p + 1, cython.cast(cython.ushort, self.channel))
        store_u32(p + 3, 13)
        store_u32(p + 7, BASIC_ACK if state == TAKEN else BASIC_NACK)
        store_u64(p + 11, number)
        p[19] = multiple
        p[20] = FRAME_END
        return self.wire.committed(21)
