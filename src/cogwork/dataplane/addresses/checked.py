"""A link whose messages are looked at before they are routed.

Theory of operation. What comes to a guarded address waits in the link, and so does what comes behind
it, wherever it is sent: so nothing overtakes. Who looks (`Checkpoint`) takes the oldest messages as
octets and decides over them in that order, at once or later; what passes is routed as if it had just
come. What waits counts against the link's credit and its session's window. Other links are not
concerned: they are of another class.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from
from cython.cimports.cogwork.dataplane.message.sections import find_to
from cython.cimports.cogwork.dataplane.transport.delivery import ship
from cython.cimports.cogwork.dataplane.transport.shipment import (
    REJECTED,
    RELEASED,
    Verdict,
    fill_verdict,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class CheckedLink(IncomingLink):
    """The receiving end of such a link.

    Attributes:
        address: Where its messages go; None where each names its own.
        waiting: Messages that nobody has decided over.
    """

    def __init__(
        self,
        session: Session,
        handle: int,
        checkpoint: Checkpoint,
        address,
        entry=None,
        space=None,
        window: int = 0,
        max_message_size: int = 0,
    ):
        """Make the receiving end of a link.

        Args:
            session: As for `IncomingLink`.
            handle: As for `IncomingLink`.
            checkpoint: Who looks at the messages.
            address: Where they go; None for a link to the null target.
            entry: As for `IncomingLink`.
            space: As for `IncomingLink`.
            window: As for `IncomingLink`.
            max_message_size: As for `IncomingLink`.
        """
        IncomingLink.__init__(self, session, handle, entry, space, window, max_message_size)
        self.checkpoint = checkpoint
        self.address = address

    def run_limit(self, size, message_size_max):
        """Take runs only where each message is routed by itself."""
        if self.entry is not None:
            return 0
        return IncomingLink.run_limit(self, size, message_size_max)

    def route(self, s):
        if self.first == cython.NULL and not self.is_guarded(s.data, s.size):
            return IncomingLink.route(self, s)
        return self.keep(s)

    def needs_whole(self, entry, data, size):
        if self.first != cython.NULL or self.is_guarded(data, size):
            return True
        return IncomingLink.needs_whole(self, entry, data, size)

    def is_guarded(self, data, size):
        """Return whether a message, of which this is the beginning, is to be looked at."""
        address: bytes = self.address_of(data, size)
        if address is None or (self.permit is not None and not self.permit[address]):
            return False
        return self.checkpoint.guards_address(address)

    def address_of(self, data, size):
        """Return where a message goes; None where it does not say."""
        found: octets = cython.NULL
        length: uint32_t = 0
        if self.address is not None:
            return self.address
        if find_to(data, size, cython.address(found), cython.address(length)) != 1:
            return None
        return bytes_from(found, length)

    def keep(self, s):
        """Have a message wait until it is decided over."""
        d: cython.pointer(Delivery) = self.core.deliveries.make(s)
        d.complete = True
        self.core.deliveries.append(d, s.data, s.size)
        self.core.deliveries.charge(d)
        if self.last == cython.NULL:
            self.first = d
        else:
            self.last.next = d
        self.last = d
        self.waiting += 1
        if self.waiting == 1:
            self.checkpoint.note(self)
        return 0

    def take_first(self):
        """Take the oldest message out; the caller releases it."""
        d: cython.pointer(Delivery) = self.first
        self.first = d.next
        if self.first == cython.NULL:
            self.last = cython.NULL
        d.next = cython.NULL
        self.waiting -= 1
        return d

    # -- for who looks

    def look(self, count_max: int, size_max: int) -> list:
        """Return the oldest messages that wait, as (address, octets, settled).

        Args:
            count_max: How many at most.
            size_max: How many octets at most; one message comes in any case.
        """
        found: list = []
        d: cython.pointer(Delivery) = self.first
        left: int64_t = size_max
        while d != cython.NULL and len(found) < count_max:
            left -= cython.cast(int64_t, d.size_bytes)
            if found and left < 0:
                break
            address = self.address_of(d.first.data, cython.cast(uint32_t, d.size_bytes))
            found.append((address or b"", bytes_from(d.first.data, d.size_bytes), bool(d.settled)))
            d = d.next
        return found

    def decide(self, verdicts: list) -> None:
        """Decide over the oldest messages: None lets one pass, octets are a rejected outcome."""
        d: cython.pointer(Delivery)
        for state in verdicts:
            if self.first == cython.NULL:
                break
            d = self.take_first()
            try:
                if state is None:
                    self.let_pass(d)
                elif not d.settled:
                    self.answer_with(d, REJECTED, state)
            finally:
                self.core.deliveries.release(d)
        if not self.in_delivery:
            self.top_up()

    def give_back(self) -> int:
        """Give up all that waits: released to its sender; return how many were settled."""
        d: cython.pointer(Delivery)
        dropped: cython.int = 0
        while self.first != cython.NULL:
            d = self.take_first()
            if d.settled:
                dropped += 1
            else:
                self.answer_with(d, RELEASED, None)
            self.core.deliveries.release(d)
        if not self.in_delivery:
            self.top_up()
        return dropped

    def let_pass(self, d):
        """Route a message as if it had just come; also where the link has gone meanwhile."""
        s: Shipment
        entry: AddressEntry
        ship(cython.address(s), d, d.first.data)
        if not self.detached or self.address is None:
            return IncomingLink.route(self, cython.address(s))
        # Its entry may have been given up.
        entry = self.space.find(self.address)
        return 0 if entry is None else entry.route(cython.address(s))

    def answer_with(self, d, code, state):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        self.resolve_outcome(d.token, cython.address(verdict))
        return 0
