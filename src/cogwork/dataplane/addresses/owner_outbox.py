"""What this container sends to the owner of a queue, kept until it is answered.

Theory of operation. A message gets a number, and goes to the owner as soon as there is a link that
takes it. Its delivery-tag says who sends it, in which life, and the number. When the link is lost,
or the owner ends, what has no answer is sent again on the next link, in the same order and under
the same tags; the owner knows what it has taken already (`queue.forward_dedup`). So whoever has
published a message is told what became of it, and not that this is not known.

No more is kept than the owner tells apart, or `BYTES_MAX`; the address holds what comes then. Where
the owner is away for long, `refuse` answers all that is kept, and all that comes, until there is a
link again.

An owner that changes, as that of a replicated queue, has no link for as long as nobody knows who is
the next one. So an outbox may hold back: it takes only what its link takes at once, and all else
waits at the address, where its publishers feel it. What it keeps then is what was sent and has no
answer. The next owner may be this container itself: then it goes to the own inlet for what others
send, under the same tags.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import store_u64
from cython.cimports.cogwork.dataplane.queue.forward_dedup import FORWARDS_MAX
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.cogwork.dataplane.transport.delivery import ship
from cython.cimports.cogwork.dataplane.transport.outgoing import OutgoingLink
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    RECEIVED,
    RELEASED,
    fill_verdict,
)
from cython.cimports.libc.stdlib import calloc, free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

BYTES_MAX = cython.declare(int64_t, 32 << 20)
"""So much is kept of one queue's messages."""

CAPACITY_MIN = cython.declare(uint32_t, 64)


class OwnerOutbox(Terminus):
    """Stands in the place of the link to a queue's owner.

    Attributes:
        entry: The address whose messages it takes.
        link: The present link to the owner, or the inlet of this container where that is the owner;
            None while there is neither.
        holds_back: Whether it takes only what can go on at once.
        on_released: Called where the owner gives something back although the link stands.
        is_refusing: Whether the owner has been away for too long.
        sent_again: How many were sent more than once.
        refused: How many were refused because the owner was away for too long.
        lost: Those of them of which nobody is told.
    """

    def __init__(
        self,
        entry: AddressEntry,
        origin: int,
        incarnation: int,
        first: int,
        *,
        holds_back: bool = False,
    ):
        """Keep nothing yet.

        Args:
            entry: The address whose messages it takes.
            origin: A hash of this container's id.
            incarnation: This container's.
            first: The first message's number: above all that an earlier outbox of this life has
                given for the same queue.
            holds_back: Whether it takes only what can go on at once.
        """
        self.holds_back = holds_back
        self.core = entry.core
        self.entry = entry
        self.first = self.unsent = self.following = self.untried = first
        store_u64(self.tag, origin)
        store_u64(self.tag + 8, incarnation)
        self.core.register(self)

    def __dealloc__(self):
        free(self.slots)

    @property
    def unanswered(self) -> int:
        """How far it is from the oldest message without an answer to the newest one."""
        return self.following - self.first

    # -- taking messages

    def is_ready(self):
        if self.is_refusing:
            return True
        if self.following - self.first < FORWARDS_MAX and self.held_bytes < BYTES_MAX:
            if not self.holds_back or self.has_way():
                return True
        self.has_refused = True
        return False

    def has_way(self):
        """Return whether a message would go on at once."""
        return self.link is not None and self.unsent == self.following and self.link.is_ready()

    def room(self) -> int:
        """Return how many messages it takes at most."""
        if not self.is_ready():
            return 0
        self.has_refused = True  # so that room is told of as soon as there is more
        left: uint64_t = FORWARDS_MAX - (self.following - self.first)
        if self.holds_back and isinstance(self.link, OutgoingLink):
            left = min(left, cython.cast(OutgoingLink, self.link).credit)
        return left

    def outstanding(self):
        return cython.cast(uint32_t, self.following - self.first)

    def take(self, s):
        d: cython.pointer(Delivery)
        number: uint64_t = self.following
        if self.is_refusing:
            return self.refuse_one(s)
        if number - self.first >= self.capacity:
            self.grow()
        d = self.core.deliveries.make(s)
        d.complete = True
        d.assembled = True  # what it keeps closes no window: credit bounds that
        self.core.deliveries.append(d, s.data, s.size)
        self.core.deliveries.charge(d)
        self.slots[number % self.capacity] = d
        self.held_bytes += s.size
        self.following = number + 1
        return self.pump()

    def refuse_one(self, s):
        """Say that it is not known when the owner will be back; return 0."""
        verdict: Verdict
        self.refused += 1
        if s.settled:
            self.lost += 1
            return 0
        fill_verdict(cython.address(verdict), LOST, None)
        return self.core.answer(
            s.source_index, s.source_generation, s.token, cython.address(verdict)
        )

    def grow(self):
        """Make room for twice as many."""
        number: uint64_t
        capacity: uint32_t = self.capacity * 2 if self.capacity else CAPACITY_MIN
        slots: cython.pointer(cython.pointer(Delivery)) = cython.cast(
            cython.pointer(cython.pointer(Delivery)),
            calloc(capacity, cython.sizeof(cython.pointer(Delivery))),
        )
        if slots == cython.NULL:
            raise MemoryError("no room for what has no answer yet")
        for number in range(self.first, self.following):
            slots[number % capacity] = self.slots[number % self.capacity]
        free(self.slots)
        self.slots = slots
        self.capacity = capacity
        return 0

    # -- sending

    def set_link(self, link) -> None:
        """Send all that has no answer on another link; None while there is none."""
        if link is self.link:
            return
        self.link = link
        self.unsent = self.first
        if link is not None:
            if isinstance(link, OutgoingLink):
                cython.cast(OutgoingLink, link).feeder = self
            self.is_refusing = False
            self.go_on()

    def go_on(self) -> None:
        """Send what the link takes by now, and let what the address holds follow."""
        self.pump()
        if self.has_refused and self.is_ready():
            self.take_more()

    def on_ready(self, link):
        if link is self.link:
            self.go_on()
        return 0

    def has_waiting(self):
        return self.unsent < self.following

    def pump(self):
        """Send what the link takes."""
        number: uint64_t
        while self.unsent < self.following and self.link is not None and self.link.is_ready():
            number = self.unsent
            self.unsent += 1  # the answer may come while it is sent, and find the next one
            if self.slots[number % self.capacity] != cython.NULL:
                self.send(number)
        return 0

    def send(self, number):
        """Send one message."""
        s: Shipment
        d: cython.pointer(Delivery) = self.slots[number % self.capacity]
        if number < self.untried:
            self.sent_again += 1
        else:
            self.untried = number + 1
        ship(cython.address(s), d, d.first.data)
        s.settled = False
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = number
        store_u64(self.tag + 16, number)
        s.tag = self.tag
        s.tag_size = FORWARD_TAG_BYTES
        return self.link.take(cython.address(s))

    # -- answers

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if token < self.first or token >= self.following:
            return SETTLE
        if self.slots[token % self.capacity] == cython.NULL:
            return SETTLE
        if verdict.code == LOST:
            return SETTLE  # its link is lost: it goes out on the next one
        if verdict.code == RELEASED:
            # The owner is none any more, or not yet: a link to it is tried again.
            if self.on_released is not None and self.has_link():
                self.on_released()
            return SETTLE
        self.settle_one(token, verdict)
        if self.has_refused and self.is_ready():
            self.take_more()
        return SETTLE

    def has_link(self):
        """Return whether there is a link to another container."""
        if not isinstance(self.link, OutgoingLink):
            return False
        return not cython.cast(OutgoingLink, self.link).detached

    def settle_one(self, number, verdict):
        """Tell whoever has published a message what has become of it, and forget it."""
        d: cython.pointer(Delivery) = self.slots[number % self.capacity]
        self.slots[number % self.capacity] = cython.NULL
        self.held_bytes -= d.size_bytes
        while self.first < self.following and (
            self.slots[self.first % self.capacity] == cython.NULL
        ):
            self.first += 1
        self.unsent = max(self.unsent, self.first)
        if not d.settled:
            self.core.answer(d.source_index, d.source_generation, d.token, verdict)
        elif verdict.code != ACCEPTED:
            self.lost += 1
        return self.core.deliveries.release(d)

    def take_more(self):
        """Let what the address holds, and its senders, go on."""
        self.has_refused = False
        self.entry.serve_held()
        return self.entry.renew_credit()

    def refuse(self) -> int:
        """Answer all that is kept, and all that comes until there is a link; return how many.

        One that holds back leaves what comes to wait at the address.
        """
        verdict: Verdict
        number: uint64_t
        count: uint64_t = self.refused
        self.is_refusing = not self.holds_back
        fill_verdict(cython.address(verdict), LOST, None)
        for number in range(self.first, self.following):
            if self.slots[number % self.capacity] != cython.NULL:
                self.refused += 1
                self.settle_one(number, cython.address(verdict))
        self.take_more()
        return self.refused - count

    def close(self) -> None:
        """Take it out of use; what is kept is lost."""
        self.link = None
        self.holds_back = False
        self.refuse()
        self.core.unregister(self)
