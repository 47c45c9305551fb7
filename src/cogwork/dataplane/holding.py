"""What an address holds while no consumer has room, and how long it may have to wait."""

import cython
from cython.cimports.cogwork.dataplane.delivery import Chunk, is_over
from cython.cimports.cogwork.dataplane.header import Header, clear_header, read_header

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Holding(Terminus):
    """A row of deliveries, oldest first.

    Attributes:
        ttl_s: How long any of them may wait at most; 0 leaves it to the messages.
        held: How many there are.
    """

    def hold(self, d):
        """Adds a delivery, and notes when its time is over."""
        d.refs += 1
        d.next = cython.NULL
        self.limit_life(d)
        if d.expires_s and not self.is_expiring:
            self.is_expiring = True
            self.core.expiring.append(self)
        if self.held_last == cython.NULL:
            self.held_first = d
        else:
            self.held_last.next = d
        self.held_last = d
        self.held += 1
        return 0

    def has_waiting(self):
        return self.held_first != cython.NULL

    def unhold(self):
        """Takes the oldest one out; the caller releases it."""
        d: cython.pointer(Delivery) = self.held_first
        self.held_first = d.next
        if self.held_first == cython.NULL:
            self.held_last = cython.NULL
        d.next = cython.NULL
        self.held -= 1
        return d

    def discard_held(self, d):
        """Takes a delivery that was given up out of what is held, if it is there."""
        at: cython.pointer(Delivery) = self.held_first
        before: cython.pointer(Delivery) = cython.NULL
        while at != cython.NULL and at != d:
            before = at
            at = at.next
        if at == cython.NULL:
            return 0
        if before == cython.NULL:
            self.held_first = d.next
        else:
            before.next = d.next
        if self.held_last == d:
            self.held_last = before
        d.next = cython.NULL
        self.held -= 1
        return self.core.deliveries.release(d)

    def limit_life(self, d):
        """Notes when a whole delivery that has to wait is over: by its own ttl, or the address's."""
        header: Header
        ttl_s: cython.double = self.ttl_s
        chunk: cython.pointer(Chunk) = d.first
        if not d.complete or chunk == cython.NULL:
            return 0
        clear_header(cython.address(header))
        if (
            chunk.size > 3
            and chunk.data[0] == 0
            and chunk.data[1] == 0x53
            and chunk.data[2] == 0x70
        ):
            read_header(chunk.data, 3, chunk.size, cython.address(header))
        if header.has_ttl and (ttl_s == 0.0 or header.ttl_ms * 0.001 < ttl_s):
            ttl_s = header.ttl_ms * 0.001
        if header.has_ttl or ttl_s > 0.0:
            d.expires_s = self.core.now + ttl_s
        return 0

    def expire_held(self):
        """Gives up what is over by now; returns whether something else may be over yet."""
        d: cython.pointer(Delivery) = self.held_first
        following: cython.pointer(Delivery)
        self.is_expiring = False
        while d != cython.NULL:
            following = d.next
            if is_over(d, self.core.now):
                d.refs += 1
                self.discard_held(d)
                self.give_up(d, True)
                self.core.deliveries.release(d)
            elif d.expires_s:
                self.is_expiring = True
            d = following
        return self.is_expiring

    def give_up(self, d, is_expired):
        """Answers for a whole delivery that nobody took."""
        raise NotImplementedError
