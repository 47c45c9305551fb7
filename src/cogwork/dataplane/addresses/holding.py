"""What an address holds while no consumer has room, and what becomes of a message that nobody takes."""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.message.header import ttl_of
from cython.cimports.cogwork.dataplane.message.translation import as_amqp
from cython.cimports.cogwork.dataplane.transport.deliveries import join
from cython.cimports.cogwork.dataplane.transport.delivery import Chunk, is_over, ship
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    RELEASED,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.stdint import int64_t, uint32_t

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

HEADER_BYTES_MAX = cython.declare(uint32_t, 64)
"""Within so many octets of a message its ttl stands, however its header is encoded."""


class HoldingEntry(Terminus):
    """An address without its outlets: deliveries in a chain, the oldest first.

    Attributes:
        ttl_s: How long any of them may wait at most; 0 leaves it to the messages.
    """

    def unroutable(self, s):
        """Answer for a message that nobody is there to take."""
        accepted: cython.bint = self.distribution == MULTICAST and not self.release_unmatched
        if self.dead_letter is not None:
            accepted = self._send_dead_letter(s, "unroutable")
        if accepted:
            self.unmatched += 1
        elif s.settled:
            self.dropped += 1
        else:
            self.released += 1
        return self._answer(s, ACCEPTED if accepted else RELEASED)

    def expire(self, s):
        """Answer for a message that waited longer than it may."""
        self.expired += 1
        if self.dead_letter is None:
            return self._answer(s, RELEASED)
        return self._answer(s, ACCEPTED if self._send_dead_letter(s, "expired") else RELEASED)

    def _send_dead_letter(self, s, reason):
        """Make a dead letter of a message; one that cannot be made leaves it its sender's."""
        try:
            made: cython.bint = self.dead_letter(self, as_amqp(s.data, s.size, s.format), reason)
        except Exception as error:
            self.core.tell_fault(self, error)
            return False
        return made

    def _answer(self, s, code):
        verdict: Verdict
        if not s.settled:
            fill_verdict(cython.address(verdict), code, None)
            self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def hold(self, d):
        """Add a delivery, and note when its time is over."""
        d.refs += 1
        d.next = cython.NULL
        self.watch_life(d)
        if not self.is_listed:
            self.is_listed = True
            self.core.list_holding(self)
        if self.held_last == cython.NULL:
            self.held_first = d
        else:
            self.held_last.next = d
        self.held_last = d
        self.held += 1
        return 0

    def watch_life(self, d):
        """Have a whole delivery given up when its time is over, should it still be held then."""
        self.limit_life(d)
        if d.expires_s and not self.is_expiring:
            self.is_expiring = True
            self.core.expiring.append(self)
        return 0

    def has_waiting(self):
        return self.held_first != cython.NULL

    def unhold(self):
        """Take the oldest one out; the caller releases it."""
        d: cython.pointer(Delivery) = self.held_first
        self.held_first = d.next
        if self.held_first == cython.NULL:
            self.held_last = cython.NULL
        d.next = cython.NULL
        self.held -= 1
        return d

    def discard_held(self, d):
        """Take a delivery that was given up out of what is held, if it is there."""
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

    def take_back(self, session, first, last):
        """Release what a session's peer sent and wants back, by its delivery-ids."""
        s: Shipment
        link: Terminus
        d: cython.pointer(Delivery) = self.held_first
        following: cython.pointer(Delivery)
        while d != cython.NULL:
            following = d.next
            if d.complete and not d.settled:
                if cython.cast(uint32_t, d.token) - first <= last - first:
                    link = self.core.resolve(d.source_index, d.source_generation)
                    # Of a channel of AMQP 0-9-1 nothing is taken back: its owner has no session.
                    if (
                        isinstance(link, ReceivingEnd)
                        and getattr(link.owner, "session", None) is not None
                        and link.owner.session.end is session
                    ):
                        ship(cython.address(s), d, cython.NULL)
                        self.released += 1
                        self._answer(cython.address(s), RELEASED)
                        self.discard_held(d)
            d = following
        return 0

    def _release_held(self):
        """Answer for what was held for consumers that have all gone: it was never forwarded."""
        d: cython.pointer(Delivery)
        link: ReceivingEnd
        while self.held_first != cython.NULL:
            d = self.unhold()
            link = self.sender_of(d)
            if link is None:
                self.give_up(d, False)
            elif self.dead_letter is not None:
                self.await_rest(d)
            else:
                link.current = cython.NULL
                link.discarding = True
                self.core.deliveries.release(d)
            self.core.deliveries.release(d)

    def sender_of(self, d):
        """Return the link on which the rest of a delivery comes; None where there is no rest."""
        link: ReceivingEnd = self.core.resolve(d.charged_index, d.charged_generation)
        return None if d.complete or link is None or link.current != d else link

    def await_rest(self, d):
        """Have a delivery that was held assembled: it comes here again when it is whole."""
        self.received -= 1
        self.received_bytes -= d.size_bytes
        self.core.deliveries.assemble(d)
        return 0

    def give_up(self, d, is_expired):
        """Answer for a whole delivery that went nowhere: it is dead, or its sender's again."""
        s: Shipment
        joined: bytes = join(d)
        ship(cython.address(s), d, octets_of(joined))
        if is_expired:
            self.expire(cython.address(s))
        else:
            self.unroutable(cython.address(s))
        return 0

    def limit_life(self, d):
        """Note when a whole delivery that has to wait is over: by its own ttl, or the address's."""
        ttl_s: cython.double = self.ttl_s
        ttl_ms: int64_t
        chunk: cython.pointer(Chunk) = d.first
        if not d.complete or chunk == cython.NULL or d.format != 0:
            return 0
        if chunk.size < HEADER_BYTES_MAX and chunk.next != cython.NULL:
            self.core.deliveries.merge(d)
            chunk = d.first
        ttl_ms = ttl_of(chunk.data, chunk.size)
        if ttl_ms >= 0:
            d.dies_s = self.core.now + ttl_ms * 0.001
            if ttl_s == 0.0 or ttl_ms * 0.001 < ttl_s:
                ttl_s = ttl_ms * 0.001
        if ttl_ms >= 0 or ttl_s > 0.0:
            d.expires_s = self.core.now + ttl_s
        return 0

    def expire_held(self):
        """Give up what is over by now; return whether something else may be over yet.

        All of it is taken out first: what is given up may come back to this very address.
        """
        d: cython.pointer(Delivery) = self.held_first
        following: cython.pointer(Delivery)
        staying: cython.pointer(Delivery) = cython.NULL
        over: cython.pointer(Delivery) = cython.NULL
        last: cython.pointer(Delivery) = cython.NULL
        while d != cython.NULL:
            following = d.next
            if is_over(d, self.core.now):
                if staying == cython.NULL:
                    self.held_first = following
                else:
                    staying.next = following
                if last == cython.NULL:
                    over = d
                else:
                    last.next = d
                last = d
                d.next = cython.NULL
                self.held -= 1
            else:
                staying = d
            d = following
        self.held_last = staying
        while over != cython.NULL:
            following = over.next
            over.next = cython.NULL
            self.give_up(over, True)
            self.core.deliveries.release(over)
            over = following
        self.is_expiring = self._has_mortal()
        return self.is_expiring

    def still_holds(self) -> bool:
        """Return whether it is to be listed further as one that holds something."""
        self.is_listed = self.held_first != cython.NULL
        return self.is_listed

    def give_back(self, session: object, first: uint32_t, last: uint32_t) -> None:
        """Release what is held of a session's deliveries; see `Core.take_back`."""
        if self.held_first != cython.NULL:
            self.take_back(session, first, last)

    def _has_mortal(self):
        """Return whether anything that is held is over some day."""
        d: cython.pointer(Delivery) = self.held_first
        while d != cython.NULL:
            if d.expires_s != 0.0:
                return True
            d = d.next
        return False
