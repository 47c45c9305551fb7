"""The message-ids that a queue has seen lately: a window of time and count.

Theory of operation. Sightings stand in a ring by age, each with 128 bits of hash; an open-
addressing table leads from a hash to its place in the ring. The oldest go first, by age or for want
of room.
Half of the hash is keyed with a secret of the process, so that no sender can make two ids look
alike, nor crowd the table.
"""

import cython
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

NOWHERE = cython.declare(uint32_t, 0xFFFFFFFF)
CAPACITY_MIN = cython.declare(uint32_t, 64)


def read_message_id(p, size, found):
    """Fill in what an encoded message-id names, so that every encoding of one id gives the same."""
    start: uint32_t = 1
    found.kind = p[0]
    if p[0] == 0x44 or (p[0] == 0x53 and size == 2):
        memset(found.number, 0, 8)
        found.number[7] = p[1] if p[0] == 0x53 else 0
        found.kind = 0x80
        found.data = found.number
        found.size = 8
        return
    if p[0] == 0xA0 or p[0] == 0xA1:
        start = 2
    elif p[0] == 0xB0 or p[0] == 0xB1:
        start = 5
        found.kind -= 0x10
    found.data = p + start
    found.size = size - start


@cython.cfunc
@cython.exceptval(check=False)
def _mark(p: octets, size: uint32_t, sighting: cython.pointer(Sighting)) -> cython.void:
    """Hash an encoded message-id."""
    found: MessageId
    read_message_id(p, size, cython.address(found))
    sighting.key = cogwork_hash(found.data, found.size)
    sighting.check = cogwork_check(found.kind, found.data, found.size)


class RecentIds:
    """Remembers message-ids for a while.

    Attributes:
        window_s: How long.
        count_max: How many; the oldest make room.
        count: How many are remembered now.
    """

    def __init__(self, window_s: float, count_max: int):
        assert 0 < count_max < 1 << 30
        self.window_s = window_s
        self.count_max = count_max

    def __dealloc__(self):
        free(self.ring)
        free(self.index)

    def saw(self, message_id, size, now_s):
        """Return whether an encoded id was seen within the window."""
        while self.count and self.ring[self.first].seen_s + self.window_s <= now_s:
            self._forget_oldest()
        _mark(message_id, size, cython.address(self.wanted))
        if self.count == 0:
            return False
        return self.index[self._place_of(cython.address(self.wanted))] != NOWHERE

    def remember(self, now_s):
        """Add the id that `saw` was asked for last, and did not know."""
        at: uint32_t
        if self.count == self.count_max:
            self._forget_oldest()
        if self.count == self.capacity:
            self._grow()
        at = (self.first + self.count) & (self.capacity - 1)
        self.ring[at] = self.wanted
        self.ring[at].seen_s = now_s
        self.index[self._place_of(cython.address(self.wanted))] = at
        self.count += 1
        return 0

    def _place_of(self, wanted):
        """Find an id's place in the index, or the free one where it belongs."""
        mask: uint32_t = 2 * self.capacity - 1
        place: uint32_t = cython.cast(uint32_t, wanted.key) & mask
        while self.index[place] != NOWHERE:
            if (
                self.ring[self.index[place]].key == wanted.key
                and self.ring[self.index[place]].check == wanted.check
            ):
                break
            place = (place + 1) & mask
        return place

    def _forget_oldest(self):
        self._close_gap(self._place_of(self.ring + self.first))
        self.first = (self.first + 1) & (self.capacity - 1)
        self.count -= 1

    def _close_gap(self, gap):
        """Empty a place of the index, and move up those that were only pushed past it."""
        mask: uint32_t = 2 * self.capacity - 1
        at: uint32_t = gap
        home: uint32_t
        while True:
            at = (at + 1) & mask
            if self.index[at] == NOWHERE:
                break
            home = cython.cast(uint32_t, self.ring[self.index[at]].key) & mask
            if ((at - home) & mask) >= ((at - gap) & mask):
                self.index[gap] = self.index[at]
                gap = at
        self.index[gap] = NOWHERE

    def _grow(self):
        capacity: uint32_t = self.capacity * 2 if self.capacity else CAPACITY_MIN
        at: uint32_t
        ring: cython.pointer(Sighting) = cython.cast(
            cython.pointer(Sighting), malloc(capacity * cython.sizeof(Sighting))
        )
        index: cython.pointer(uint32_t) = cython.cast(
            cython.pointer(uint32_t), malloc(2 * capacity * cython.sizeof(uint32_t))
        )
        if ring == cython.NULL or index == cython.NULL:
            free(ring)
            free(index)
            raise MemoryError("no room for more message-ids")
        for at in range(self.count):
            ring[at] = self.ring[(self.first + at) & (self.capacity - 1)]
        free(self.ring)
        free(self.index)
        self.ring = ring
        self.index = index
        self.capacity = capacity
        self.first = 0
        memset(index, 0xFF, 2 * capacity * cython.sizeof(uint32_t))
        for at in range(self.count):
            self.index[self._place_of(ring + at)] = at
        return 0
