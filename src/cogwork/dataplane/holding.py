"""What an address holds while no consumer has room, and what becomes of a message that nobody takes."""

import cython
from cython.cimports.cogwork.dataplane.delivery import ship
from cython.cimports.cogwork.dataplane.octets import bytes_from
from cython.cimports.cogwork.dataplane.shipment import ACCEPTED, RELEASED, Verdict, fill_verdict

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class HoldingEntry(Terminus):
    """An address without its outlets: deliveries in a chain, the oldest first."""

    def unroutable(self, s):
        """Answers for a message that nobody is there to take."""
        verdict: Verdict
        accepted: cython.bint = self.distribution == MULTICAST and not self.release_unmatched
        if self.dead_letter is not None:
            self.dead_letter(self, bytes_from(s.data, s.size))
            accepted = True
        if accepted:
            self.unmatched += 1
        elif s.settled:
            self.dropped += 1
        else:
            self.released += 1
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), ACCEPTED if accepted else RELEASED, None)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def hold(self, d):
        d.refs += 1
        d.next = cython.NULL
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

    def _release_held(self):
        """Answers for what was held for consumers that have all gone: it was never forwarded."""
        d: cython.pointer(Delivery)
        link: ReceivingEnd
        s: Shipment
        while self.held_first != cython.NULL:
            d = self.unhold()
            link = self.core.resolve(d.charged_index, d.charged_generation)
            if not d.complete and link is not None and link.current == d:
                link.current = cython.NULL
                link.discarding = True
                self.core.deliveries.release(d)
            else:
                ship(cython.address(s), d, cython.NULL)
                self.unroutable(cython.address(s))
            self.core.deliveries.release(d)
