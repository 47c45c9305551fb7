"""Items: messages that the application settles, and the inbox that keeps them from link to link.

Theory of operation. An accept is a claim: it is sent unsettled (rcv-settle-mode second, AMQP 1.0
§2.6.12), and stands once the owner has settled it. Until then, and while the application holds an
item, the inbox knows it by its delivery-id; when the link breaks, by its delivery-tag. The next
attach presents these tags (§2.6.13); the owner resumes the deliveries under new ids, and what was
decided in the meantime is said then. What the owner does not resume was confirmed before, or is stale
where it says that somebody else has it; else it is in doubt.

An item is handed over only after its mark, `received`, has left this process, so that the owner
knows which ones may have been worked on, whatever becomes of the application. What is marked and
was not handed over when a link breaks is resumed as the rest is, and waits again. `Pace` says how
many are marked in one go. Before a mark is worth anything the connection must stand: after a time
in which nothing was sent, so that the owner may have given the consumer up, it is asked first.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.client.claims import Claim, new_claim
from cython.cimports.cogwork.dataplane.client.flusher import Flusher  # noqa: TC002  # compiled
from cython.cimports.cogwork.dataplane.client.inbox import (
    TURN_FIRST,
    TURN_MESSAGES,
    WAIT,
    Inbox,
)
from cython.cimports.cogwork.dataplane.client.marks import Marks
from cython.cimports.cogwork.dataplane.client.pace import Pace
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.message.contents import fill
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cogwork.dataplane.transport.scan import state_code
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    MODIFIED,
    REJECTED,
    RELEASED,
)
from cython.cimports.cogwork.dataplane.transport.wire import Wire  # noqa: TC002  # compiled
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.stdint import uint32_t, uint64_t

from cogwork.amqp.errors import AmqpError, LocalProtocolError
from cogwork.amqp.extensions import STALE_ATTEMPT as STALE_SYMBOL
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected
from cogwork.amqp.types import Symbol
from cogwork.dataplane.client.pace import MARK_AHEAD_MAX
from cogwork.dataplane.encoding.codec import encode

__all__ = ("SOURCE_HASH", "Item", "ItemInbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

STALE_ATTEMPT = cython.declare(bytes, STALE_SYMBOL.encode())

ENTRY_BYTES = cython.declare(cython.Py_ssize_t, 12)
"""What an entry of an unsettled map takes beside the tag: the constructors and the state."""

LATE_KEPT = cython.declare(cython.Py_ssize_t, 1_000)
"""Items that were not confirmed and that nobody awaited, kept to be reported by `confirmed`."""

LOOK_S = cython.declare(cython.double, 0.01)
"""An application that keeps the event loop for longer gets nothing before the loop has read its
sockets: the owner may have taken back what waits here."""

STAGES = {
    WAITING: "waiting",
    HELD: "held",
    CLAIMED: "claimed",
    SETTLED: "settled",
    STALE: "stale",
    IN_DOUBT: "in-doubt",
}


@cython.cfunc
def claim_for(inbox: ItemInbox, count: cython.Py_ssize_t) -> Claim:
    return new_claim(inbox.create_future, inbox.on_late, count)


class Item(Message):
    """A message that the application has to settle: accept, release, reject or modify it, once.

    Each of the four acts at once. What it returns may be awaited: an accept to learn that it
    stands, the others for the look of it.

    Attributes:
        delivery_tag: Names this attempt.
    """

    @property
    def stage(self) -> str:
        """Returns `held`, `claimed`, `settled`, `stale` or `in-doubt`."""
        return STAGES[self.phase]

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be done with it."""
        return self.phase >= SETTLED

    def accept(self) -> Claim:
        """Claim the item as processed; awaiting the result returns once the claim stands.

        Raises:
            LocalProtocolError: The item was settled before.
            StaleAttempt: When awaited: somebody else has, or had, the item.
            InDoubt: When awaited: it is not known whether the claim was counted.
        """
        claim: Claim = claim_for(self.inbox, 1)
        if self.phase >= STALE:
            claim.answer(self, True)
            return claim
        self.inbox.settle(self, ACCEPTED, None, claim)
        return claim

    def accept_nowait(self) -> None:
        """Claim the item as processed, and go on; the consumer's `flush` tells of late ones.

        Raises:
            LocalProtocolError: The item was settled before.
        """
        self.inbox.settle(self, ACCEPTED, None, None)

    def release(self) -> Claim:
        """Give the item back as if it had never been sent.

        Raises:
            LocalProtocolError: The item was settled before.
        """
        self.inbox.settle(self, RELEASED, None, None)
        return claim_for(self.inbox, 0)

    def reject(self, reason: object = "", condition: str = "amqp:precondition-failed") -> Claim:
        """Refuse the item for good: its queue dead-letters it.

        Args:
            reason: Why, for people; an exception will do.
            condition: Why, for programs.

        Raises:
            LocalProtocolError: The item was settled before.
        """
        error = AmqpError(condition=Symbol(condition), description=str(reason) or None)
        self.inbox.settle(self, REJECTED, encode(Rejected(error=error).to_described()), None)
        return claim_for(self.inbox, 0)

    def modify(
        self,
        failed: bool = False,
        undeliverable_here: bool = False,
        annotations: dict | None = None,
    ) -> Claim:
        """Give the item back, changed.

        Args:
            failed: Whether to count this as a failed attempt.
            undeliverable_here: Whether this consumer must not get it again.
            annotations: Message annotations that are merged into its own, for who gets it next.

        Raises:
            LocalProtocolError: The item was settled before.
        """
        state = Modified(
            delivery_failed=failed,
            undeliverable_here=undeliverable_here,
            message_annotations=(
                None if annotations is None else {Symbol(k): v for k, v in annotations.items()}
            ),
        )
        self.inbox.settle(self, MODIFIED, encode(state.to_described()), None)
        return claim_for(self.inbox, 0)


class ItemInbox(Inbox):
    """The inbox of a consumer.

    Attributes:
        marks_received: Whether the owner wants to know which items were handed over.
        claimed: Counts accepts that are not confirmed.
        marked: Counts the items that are marked and were not handed over.
        silence_max_s: After so long without a word from here the owner may have given this consumer
            up; 0 where it never does.
    """

    def __init__(
        self,
        flusher: Flusher,
        create_future: object,
        window: int,
        on_late: object,
        mark_ahead: int = MARK_AHEAD_MAX,
    ) -> None:
        """Start without a link.

        Args:
            flusher: Of the core.
            create_future: Makes what a task waits for.
            window: Items that may be on their way, waiting or held; at least 1.
            on_late: Makes the exception for a list of items that were not confirmed.
            mark_ahead: How many items may be marked in one go, of which one is handed over.
        """
        Inbox.__init__(self, flusher, create_future, window)
        self.on_late = on_late
        self.marks = Marks()
        self.pace = Pace(mark_ahead)
        self.has_rested = True
        self.open_items = {}
        self.earlier = {}
        self.late = []
        self.claim_waiters = []
        self.epoch = 1

    # -- arrivals

    def admit(self, s):
        item: Item
        tag: bytes = bytes_from(s.tag, s.tag_size)
        if self.earlier:
            item = self.earlier.pop(tag, None)
            if item is not None:
                self.resume(item, cython.cast(uint32_t, s.token))
                return item if item.phase == WAITING else None
        item = cython.cast(Item, Item.__new__(Item))
        fill(item, self.payload(s))
        item.inbox = self
        item.delivery_tag = tag
        item.delivery_id = cython.cast(uint32_t, s.token)
        item.epoch = self.epoch
        item.phase = SETTLED if s.settled else WAITING
        return item

    def resume(self, item: Item, delivery_id: int) -> None:
        """Go on with an item of an earlier link, under its new delivery-id."""
        item.delivery_id = delivery_id
        item.epoch = self.epoch
        if item.phase == WAITING:
            return
        self.open_items[delivery_id] = item
        if item.code:
            self.say(item)

    def hand(self, message):
        item: Item = message
        if self.marked:
            self.marked -= 1
        if item.phase != WAITING:
            return 0
        item.phase = HELD
        self.held += 1
        self.open_items[item.delivery_id] = item
        return 0

    # -- marks

    def permit(self, limit):
        if not self.marks_received or self.link is None:
            return limit
        if self.marked == 0 or self.marked < min(limit, self.count_waiting()):
            return self.mark(limit)
        return min(limit, self.marked) if self.have_marks_left() else WAIT

    def mark(self, limit):
        """Mark what is to be handed over next, and what `pace` says; return what `permit` does."""
        now_s: cython.double = clock_s()
        wire: Wire = self.link.session.wire
        count: cython.Py_ssize_t = limit
        self.core.now = now_s
        if self.is_in_question(wire, now_s):
            return WAIT
        if limit == 1:
            self.pace.finish(now_s, self.flusher.passes)
        if self.has_rested:
            self.has_rested = False
            self.looked_s = now_s
        elif now_s - self.looked_s > LOOK_S:
            self.looked_s = now_s
            return TURN_FIRST
        if limit == 1:
            count = min(self.pace.ahead, TURN_MESSAGES - self.handed_in_turn)
        self.write_marks(min(count, cython.cast(cython.Py_ssize_t, self.count_waiting())))
        if not self.have_marks_left():
            return WAIT
        if limit == 1:
            self.pace.begin(self.marked, now_s, self.flusher.passes)
            self.flusher.later()  # so that its passes are counted
        return min(limit, self.marked)

    def write_marks(self, count):
        """Mark the next items, so that `count` of them are, and have that sent."""
        item: Item
        index: cython.Py_ssize_t
        session: Session = self.link.session
        if count > len(self.ready) - self.at:
            self.ready = self.ready[self.at :] + self.arrivals
            self.arrivals = []
            self.at = 0
        for index in range(self.at + self.marked, self.at + count):
            item = self.ready[index]
            if item.phase == WAITING:
                self.marks.add(session, item.delivery_id)
        self.marks.write(session)
        self.marked = count
        self.marks_end = session.wire.written()
        self.flusher.now()
        return 0

    def have_marks_left(self):
        """Return whether all that are marked may be handed over; else `wake` is called when to look."""
        wire: Wire
        if self.marked == 0 or self.link is None:
            return False
        wire = self.link.session.wire
        if wire.has_sent(self.marks_end):
            return True
        self.pace.forget()
        if wire.departing is None:
            wire.departing = []
        wire.departing.append(self.wakeup)
        return False

    def is_in_question(self, wire, now_s):
        """Tell whether the owner may have given this consumer up, and ask it; its answer wakes."""
        if self.link.asking is not None:
            return True
        if self.is_asked:
            self.is_asked = False  # and answered
            self.has_rested = True
            return False
        if self.silence_max_s == 0.0 or now_s - wire.last_sent_s < self.silence_max_s:
            return False
        self.is_asked = True
        self.pace.forget()
        self.link.ask(self.wakeup)
        self.flusher.now()
        return True

    def rest(self):
        if self.pace.count:
            self.pace.finish(clock_s(), self.flusher.passes)
        self.has_rested = True
        return 0

    def drop_waiting(self):
        self.marked = 0
        return Inbox.drop_waiting(self)

    # -- settling

    def settle(self, item, code, state, claim):
        if item.phase >= STALE:
            self.report(item)
            return 0
        if item.phase != HELD:
            if item.phase == SETTLED and item.code == 0:
                item.code = code  # it came settled: there is nobody to tell
                return 0 if claim is None else claim.answer(item, False)
            raise LocalProtocolError(
                f"the item is {STAGES[item.phase]} already: an item can be settled only once"
            )
        if self.is_over:
            raise LocalProtocolError("the consumer that this item came by is closed")
        item.code = code
        item.state = state
        item.claim = claim
        item.phase = CLAIMED
        self.held -= 1
        self.claimed += 1
        if item.epoch == self.epoch and self.link is not None:
            self.say(item)
        return self.flusher.later()

    def say(self, item):
        """Tell the owner; all but an accept is settled with that."""
        self.reply(item.delivery_id, item.code, item.state)
        if item.code != ACCEPTED or not self.link.settles_second:
            del self.open_items[item.delivery_id]
            self.answer(item, SETTLED)
        self.top_up()
        return 0

    def answer(self, item, phase):
        """End an item, as the owner says."""
        is_late: cython.bint = phase >= STALE
        if item.phase == CLAIMED:
            self.claimed -= 1
        elif item.phase == HELD:
            self.held -= 1
        item.phase = phase
        if item.claim is not None:
            item.claim.answer(item, is_late)
            item.claim = None
        elif is_late and item.code == ACCEPTED:
            self.report(item)
        if self.claim_waiters and self.claimed == 0:
            waiters: list = self.claim_waiters
            self.claim_waiters = []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        return 0

    def report(self, item: Item) -> None:
        """Keep an item that was not confirmed and that nobody waits for, for `confirmed`."""
        if len(self.late) < LATE_KEPT:
            self.late.append(item)

    def confirm(self, first: int, last: int, state: bytes) -> None:
        """Take in what the owner settled.

        Args:
            first: The first delivery-id.
            last: The last one.
            state: The delivery state encoded; empty where there is none.
        """
        item: Item
        code: cython.int = (
            state_code(octets_of(state), cython.cast(uint32_t, PyBytes_GET_SIZE(state)))
            if state
            else 0
        )
        phase: cython.int = SETTLED
        at: uint32_t = first
        end: uint32_t = last
        if end - at > 0x7FFFFFFF:
            return
        settled: list = self.take_open(at, end)
        if settled and code != ACCEPTED:
            phase = STALE if STALE_ATTEMPT in state else IN_DOUBT
        for item in settled:
            if code == 0 and item.phase == CLAIMED:
                self.answer(item, SETTLED)
            else:
                self.answer(item, phase)
        if cython.cast(uint32_t, len(settled)) <= end - at and self.waiting:
            self.revoke_waiting(first, last)
        self.top_up()

    def take_open(self, first, last):
        """Take out the items of a range of delivery-ids; a wide range costs no more than they are."""
        span: uint32_t = last - first
        step: uint32_t
        delivery_id: uint32_t
        found: list = []
        if span < cython.cast(uint64_t, len(self.open_items)):
            for step in range(span + 1):
                delivery_id = first + step
                item = self.open_items.pop(delivery_id, None)
                if item is not None:
                    found.append(item)
            return found
        for key in list(self.open_items):
            delivery_id = key
            if delivery_id - first <= span:
                found.append(self.open_items.pop(key))
        return found

    def revoke_waiting(self, first, last):
        """Forget what the owner took back before it was handed over."""
        waiting: list = self.ready[self.at :] + self.arrivals
        marked: cython.Py_ssize_t = self.marked
        index: cython.Py_ssize_t
        item: Item
        self.ready = []
        self.arrivals = []
        self.at = 0
        for index in range(len(waiting)):
            item = waiting[index]
            if item.delivery_id - first > last - first:
                self.ready.append(item)
            elif index < marked:
                self.marked -= 1
        return 0

    def accept_all(self, items: list) -> Claim:
        """Claim items as processed; awaiting the result returns once all claims stand.

        Args:
            items: What a batch handed over.
        """
        item: Item
        claim: Claim = claim_for(self, len(items))
        for item in items:
            if item.phase >= STALE:
                claim.answer(item, True)
            else:
                self.settle(item, ACCEPTED, None, claim)
        return claim

    async def confirmed(self) -> None:
        """Wait until no accept is unconfirmed.

        Raises:
            StaleAttempt: Some of those that nobody awaited were too late.
            InDoubt: Of some of these it is not known whether they count.
            CogworkError: The link ended for good before all were confirmed.
        """
        while self.claimed and not self.is_over:
            waiter = self.create_future()
            self.claim_waiters.append(waiter)
            await waiter
        late, self.late = self.late, []
        if late:
            raise self.on_late(late)
        if self.claimed and self.failure is not None:
            raise self.failure

    def release_waiting(self) -> None:
        """Give back what was not handed over."""
        item: Item
        self.marked = 0
        while self.refill():
            item = self.ready[self.at]
            self.at += 1
            if self.link is not None and item.phase == WAITING:
                self.reply(item.delivery_id, RELEASED, None)

    # -- links come and go

    @property
    def has_earlier(self) -> bool:
        """Whether items of an earlier link are still open."""
        return bool(self.earlier)

    def unsettled_map(self, size_bytes_max: int) -> dict:
        """Return the tags that the next attach presents, with what was decided (§2.6.13).

        Args:
            size_bytes_max: What the map may take of the attach's frame; items that do not fit
                will not be resumed.
        """
        presented: dict = {}
        held = Received(section_number=0, section_offset=0)
        for tag, item in self.earlier.items():
            size_bytes_max -= len(tag) + ENTRY_BYTES
            if size_bytes_max < 0:
                break
            presented[tag] = Accepted() if cython.cast(Item, item).code == ACCEPTED else held
        return presented

    def start(self) -> None:
        """Give the link its first credit; what is resumed takes credit too."""
        item: Item
        used: uint32_t = self.held
        for item in self.earlier.values():
            if item.phase == WAITING:
                used += 1
        window: uint32_t = used if self.is_stopped else max(self.window, used)
        self.link.grant(window - used + len(self.earlier))
        self.wake()
        self.flusher.later()

    def answered(
        self, marks_received: bool, known: dict | None, silence_max_s: cython.double = 0.0
    ) -> None:
        """Learn what the owner says in its attach.

        Args:
            marks_received: Whether it wants marks.
            known: What it knows of the tags that were presented: None for what it is going to
                resume, accepted for what was confirmed, rejected for what somebody else has. What
                it leaves out it does not know. None where it says nothing.
            silence_max_s: After so long without a word from here it may give this consumer up; 0
                where it never does.
        """
        item: Item
        self.marks_received = marks_received
        self.silence_max_s = silence_max_s
        if known is None:
            return
        for tag in list(self.earlier):
            state = known.get(tag, IN_DOUBT)
            if state is None or type(state) is Received:
                continue
            item = self.earlier.pop(tag)
            if type(state) is Accepted and item.code == ACCEPTED:
                self.answer(item, SETTLED)
            else:
                self.answer(item, STALE if type(state) is Rejected else IN_DOUBT)

    def detach(self) -> None:
        """The link has ended: what was not marked is the owner's again."""
        item: Item
        index: cython.Py_ssize_t
        for item in self.open_items.values():
            self.earlier[item.delivery_tag] = item
        self.open_items.clear()
        for index in range(self.at, self.at + self.marked):
            item = self.ready[index]
            if item.phase == WAITING:
                self.earlier[item.delivery_tag] = item
        self.link = None
        self.is_asked = False
        self.drop_waiting()
        self.epoch += 1
        self.drained()
        self.wake()

    def expire(self) -> None:
        """Give up the items of earlier links that were not resumed: they are in doubt."""
        earlier: dict = self.earlier
        self.earlier = {}
        for item in earlier.values():
            self.answer(item, IN_DOUBT)
        self.top_up()
        self.flusher.later()

    def close(self, failure: object = None) -> None:
        """End the iteration; items that are held can no longer be settled.

        Claims that were not answered are in doubt.
        """
        item: Item
        for item in [*self.open_items.values(), *self.earlier.values()]:
            if item.claim is not None:
                # It stays counted among the claimed: `confirmed` raises the failure.
                item.phase = IN_DOUBT
                item.claim.failure = failure
                item.claim.answer(item, True)
                item.claim = None
        self.open_items.clear()
        self.earlier.clear()
        Inbox.close(self, failure)
        for waiter in self.claim_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.claim_waiters = []
