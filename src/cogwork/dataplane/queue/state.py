"""What a queue holds, and how items leave it that were not delivered.

Theory of operation. A queue's state is its item table with limits: of age, of number, of failed attempts. An item
that goes beyond one is dead; it is counted, and kept for the handler where that wants it. Whatever
goes back, or sets others free, only schedules a wake-up: what follows from that is done once, at the end
of the batch.

An item whose message is handed on is put aside until whoever gets it has accepted it: `moved` gives
it up, `enter_again` has it back. A queue with a journal treats its dead like that, so that none is
lost with its dead letter on the way; of those it puts aside as many as it may hold, and no more.

Python sees no message, but what the handler finds in `take_exceptions` and `take_dead`, and what
people ask for.
"""

import cython
from cython.cimports.cogwork.dataplane.message.envelope import WANTS_DELAY, Envelope, read_envelope
from cython.cimports.cogwork.dataplane.message.translation import as_amqp, as_amqp_whole
from cython.cimports.cogwork.dataplane.queue.audit_events import OUTCOME_REMOVED
from cython.cimports.cogwork.dataplane.queue.item_table import is_away
from cython.cimports.cogwork.dataplane.queue.state import (
    bounded_bytes,
    bounded_count,
    can_write,
    is_beyond,
    is_choked,
    is_crammed,
    is_full,
    is_shut,
)
from cython.cimports.cogwork.dataplane.queue.stored import (
    ASIDE,
    EXCLUDED,
    HANDED,
    PAGED,
    READY,
    number_of,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

EXPIRED, EXCEEDED, DROPPED = "expired", "delivery-count-exceeded", "maximum-length"
"""Why an item is dead, of itself."""

OVERACQUIRED = "acquisitions-exceeded"
"""Why it is dead where its consumers have given it back uncounted, again and again."""

EXPIRE_MAX = cython.declare(uint32_t, 8192)
"""Items that expire in one tick: what is dead is handed to Python, which must not stall."""

SHED_MAX = cython.declare(uint32_t, 8192)
"""Items that go at once where more came back than there is room for; the others go in a later turn."""

_STATES = ("ready", "waiting-for-group", "delayed", "returned", "out", "in-doubt", "leaving")


class QueueState(Terminus):
    """A queue's items.

    Attributes:
        items: Where the items stand.
        journal: Where changes are written down; None where a queue is kept in memory alone.
        audit_events: What an audit hears of; None where there is none.
        handler: Its `on_batch(store)` is called after a batch in which items died.
        ttl_s: The longest an item lives; 0 leaves it to the message.
        maximum_length: Items held at most; 0 for no bound.
        maximum_bytes: Bytes held at most; 0 for no bound.
        maximum_delivery_count: Failed attempts after which an item is dead; 0 tries for ever.
        maximum_acquisitions: Attempts that gave it back uncounted after which an item is dead; 0
            tries for ever.
        keeps_dead: Whether the dead are handed to the handler; else they are only counted.
        waits_for_all: Whether each message waits for the journal, or only one marked durable.
        delivers_ahead: Whether an item goes out before it is durable that it has: what is in doubt
            is delivered again, so that nothing depends on it.
        attempt_base: Below all attempts of this life; no earlier one has such a number.
    """

    def __init__(self, core):
        """Start with nothing.

        Args:
            core: The core it belongs to.
        """
        self.core = core
        self.items = ItemTable()
        self.packer = Packer()
        self.exceptions = []
        self.unsent = {}
        self.pending_dead_letters = {}
        self.exclusions = {}
        self.unproven = set()
        self.waits_for_all = True
        self.counts_out = True
        self.core.register(self)
        self.wakeup = Port(core, self)

    def close(self) -> None:
        """Take it out of use; what it held is gone with it."""
        self.wakeup.close()
        self.wakeup = None
        self.core.unregister(self)

    def schedule(self):
        if self.wakeup is not None:
            self.wakeup.mark_dirty()
        return 0

    def now(self):
        return max(self.core.now, self.ticked_s)

    # -- limits

    def outstanding(self):
        return self.items.depth

    def makes_way(self, s):
        """Let a dead letter in where others have to wait for this queue's own dead to go.

        Queues that are each other's dead-letter address would wait for each other for good. What
        is new comes in while fewer are alive, and fewer dead, than the queue may hold: so at most
        twice that is here then, and there is room left for what goes round. A ring of buffers into
        which nothing new goes but where it leaves one free is never full, and goes on turning.
        """
        if not is_choked(self) or self.journal is None or not can_write(self.journal):
            return False
        return not (is_full(self) or is_crammed(self)) and is_dead_letter(s)

    def make_room(self):
        """Drop the oldest ready items of the lowest priority until one more fits.

        What is out at consumers does not count: that is bounded by their credit. Returns 0 where
        items that wait for something else fill the store.
        """
        item: cython.pointer(Item)
        while is_full(self):
            self.items.restore()
            item = self.items.ready.oldest()
            if item == cython.NULL:
                return 0
            if item.state == PAGED:
                item = self.items.pages.fetch(item)
            self.drop_one(item)
        return 1

    def drop_one(self, item):
        """Give up an item for want of room; for good where it is here for want of room elsewhere.

        Two full queues would have their dead for each other, and no end of it.
        """
        self.dropped += 1
        if not is_overflow(item.data, item.size, item.format):
            return self.dead_letter(item, DROPPED, None)
        if self.audit_events is not None:
            self.audit_events.dead_lettered(item, DROPPED)
        return self.forget(item)

    def drop_beyond(self):
        """Drop the head for what came back from consumers, before others may get it."""
        if not is_shut(self) and self.shed(SHED_MAX):
            self.core.postpone(self.wakeup)
        return 0

    def shed(self, count_max: int) -> bool:
        """Drop the oldest ready items that there is no room for any more.

        Args:
            count_max: How many at most, so that others get their turn.

        Returns:
            Whether there may be more of them.
        """
        left: uint64_t = count_max
        item: cython.pointer(Item)
        while is_beyond(self):
            self.items.restore()
            item = self.items.ready.oldest()
            if item == cython.NULL:
                return False
            if left == 0:
                return True
            left -= 1
            self.drop_one(item)
        return False

    def do_without(self, data, size, format):
        """Give up a message for which no room can be made, as if it had been kept and dropped."""
        item: cython.pointer(Item)
        self.dropped += 1
        if is_overflow(data, size, format):
            return 0
        if self.journal is None or not self.keeps_dead:
            return self.add_exception(DROPPED, data, size, format, None, 0)
        item = self.items.make(data, size)
        item.format = format
        item.stored_s = self.now()
        self.items.enter(item)
        self.journal.put(item)
        if self.audit_events is not None:
            self.audit_events.accepted(item)
        return self.dead_letter(item, DROPPED, None)

    def expire(self, now_s):
        left: uint32_t = EXPIRE_MAX
        item: cython.pointer(Item)
        self.items.pages.want_expired(now_s)
        while left > 0:
            item = self.items.pop_expired(now_s)
            if item == cython.NULL:
                return 0
            left -= 1
            self.expire_one(item)
        return 0

    def expire_one(self, item):
        self.expired += 1
        return self.dead_letter(item, EXPIRED, None)

    # -- going back, or away

    def fail(self, item):
        """Count a failed attempt, and try again unless it was the last."""
        item.failures += 1
        if self.maximum_delivery_count and item.failures >= self.maximum_delivery_count:
            self.exceeded += 1
            return self.dead_letter(item, EXCEEDED, None)
        return self.give_back(item)

    def release(self, item):
        """Give an item back uncounted that a consumer may have seen, unless it was the last time."""
        item.acquisitions += 1
        if self.maximum_acquisitions and item.acquisitions >= self.maximum_acquisitions:
            self.overacquired += 1
            return self.dead_letter(item, OVERACQUIRED, None)
        if self.journal is not None and self.maximum_acquisitions:
            self.journal.acquired(item)
        return self.give_back(item)

    def give_back(self, item):
        """Put an item that is out or in doubt back in its old place, unless it is too old."""
        if item.expires_s != 0.0 and item.expires_s <= self.now():
            return self.expire_one(item)
        self.items.give_back(item)
        if self.journal is not None:
            self.journal.back(item)
        return self.schedule()

    def exclude(self, item):
        """Keep an item from the consumer that had it last (AMQP 1.0 §3.4.5)."""
        item.flags |= EXCLUDED
        self.exclusions.setdefault(number_of(item), set()).add(item.consumer)
        return 0

    def dead_letter(self, item, reason, error):
        """Give up an item that will not be delivered, and keep it for the handler."""
        if self.audit_events is not None:
            self.audit_events.dead_lettered(item, reason)
        if self.journal is None or not self.keeps_dead:
            self.add_exception(reason, item.data, item.size, item.format, error, item.failures)
            return self.forget(item)
        died_ms: uint64_t = self.journal.wall_ms(self.now())
        self.journal.dead(item, cython.cast(str, reason).encode(), error, died_ms)
        self.items.put_aside(item)
        return self.add_pending(item, reason, error, died_ms)

    def add_pending(self, item, reason, error, died_ms):
        """Have the handler find an item that is dead and was put aside."""
        number: uint64_t = number_of(item)
        self.pending_dead_letters[number] = (reason, error, died_ms)
        self.unsent[number] = None
        return self.schedule()

    def add_exception(self, reason, data, size, format, error, failures):
        if self.keeps_dead:
            self.exceptions.append((reason, as_amqp_whole(data, size, format), error, failures))
            self.schedule()
        return 0

    def take_dead(self, count: int) -> list:
        """Hand over what died and was put aside, the oldest first; `moved` gives it up.

        Args:
            count: How many at most.

        Returns:
            For each item `(number, reason, message, error, failures, died_ms)`, as
            `take_exceptions`, with when it died in milliseconds since 1970.
        """
        taken: list = []
        item: cython.pointer(Item)
        while self.unsent and len(taken) < count:
            number = next(iter(self.unsent))
            del self.unsent[number]
            item = self.items.slots.find(number)
            if item != cython.NULL and number in self.pending_dead_letters:
                reason, error, died_ms = self.pending_dead_letters[number]
                message = as_amqp_whole(item.data, item.size, item.format)
                taken.append((number, reason, message, error, item.failures, died_ms))
        return taken

    def leave_dead(self, numbers: list) -> None:
        """Take back what `take_dead` handed over: nobody has accepted it.

        What has been forgotten meanwhile is none of it, nor is what was made again and waits.
        """
        for number in numbers:
            if number in self.pending_dead_letters:
                self.unsent[number] = None

    def remove(self, item):
        """Note that an item is taken out, for an audit."""
        return 0 if self.audit_events is None else self.audit_events.settled(item, OUTCOME_REMOVED)

    def forget(self, item):
        """Give an item up for good."""
        if self.journal is not None:
            self.journal.done(number_of(item))
        return self.discard(item)

    def discard(self, item):
        """Take an item out of memory, of which it is written down elsewhere that it is no more."""
        if self.unproven:
            self.unproven.discard(number_of(item))
        if item.flags & EXCLUDED:
            del self.exclusions[number_of(item)]
        self.items.drop(item)
        if self.has_refused or self.items.is_stirred():
            self.schedule()
        return 0

    def drop_all(self):
        """Take all items out of memory, and write nothing down any more."""
        slot: uint32_t = 0
        item: cython.pointer(Item)
        self.journal = None
        if self.audit_events is not None:
            self.audit_events.clear()
        self.items.restore()
        while self.items.pages.count:
            self.items.forget_page([])
        self.items.pages.clear()
        while True:
            item = self.items.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                break
            self.discard(item)
        self.items.forget_times()
        self.exceptions = []
        self.unsent.clear()
        self.pending_dead_letters.clear()
        return 0

    def take_exceptions(self) -> list:
        """Hand over what died since the last call.

        Returns:
            For each item `(reason, message, error, failures)`: why, the message as it was stored,
            the outcome of who rejected it, and how often an attempt had failed.
        """
        taken: list = self.exceptions
        self.exceptions = []
        return taken

    # -- for people and for management

    @property
    def bounded(self) -> tuple:
        """The items that the queue's bounds count, and their octets."""
        return bounded_count(self), bounded_bytes(self)

    @property
    def depth(self) -> int:
        """Counts all items."""
        return self.items.depth

    def peek(self, count: int, offset: int = 0) -> list:
        """Show items without touching them: the ready ones in order, then all others.

        Args:
            count: How many at most.
            offset: How many to leave out first.

        Returns:
            For each item its message and a dict of facts.
        """
        shown: list = []
        skipped: uint64_t = 0
        slot: uint32_t = 0
        item: cython.pointer(Item)
        self.items.restore()
        item = self.items.ready.front()
        while item != cython.NULL and len(shown) < count:
            if item.state == PAGED:
                if skipped + self.items.pages.count_of(item) <= offset:
                    skipped += self.items.pages.count_of(item)
                    item = self.items.ready.after(item)
                    continue
                item = self.items.pages.fetch(item)
            if skipped < offset:
                skipped += 1
            else:
                shown.append((self.message_of(item), self._facts(item)))
            item = self.items.ready.after(item)
        while (
            len(shown) < count
            and self.items.ready.count < self.items.depth + self.items.aside_count
        ):
            item = self.items.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                break
            if item.state == READY:
                continue
            if skipped < offset:
                skipped += 1
            else:
                shown.append((self.message_of(item), self._facts(item)))
        return shown

    def message_of(self, item):
        s: Shipment
        pack(self, item, cython.address(s))
        return as_amqp(s.data, s.size, s.format)

    def _facts(self, item):
        now_s: cython.double = self.now()
        return {
            "item": number_of(item),
            "state": _STATES[item.state],
            "priority": item.priority,
            "attempts": item.attempt,
            "failures": item.failures,
            "age_s": now_s - item.stored_s,
            "expires_in_s": item.expires_s - now_s if item.expires_s else None,
        }

    @property
    def waiting(self) -> int:
        """Counts the items that any consumer could have now."""
        return self.items.ready.count + self.items.returned_count

    def count_kept(self) -> int:
        """Count them once the head is dropped for what came back beyond the bounds."""
        self.items.restore()
        if self.drops_head and is_beyond(self):
            self.drop_beyond()
        return self.waiting

    def take_ready(self, count: int, numbers: list) -> list:
        """Put ready items aside, to be moved elsewhere; return their messages in order.

        Args:
            count: How many at most.
            numbers: Gets the numbers of what is put aside, by which `moved` says that it has
                arrived, or `enter_again` that it has not.
        """
        taken: list = []
        item: cython.pointer(Item)
        self.items.restore()
        while len(taken) < count:
            item = self.next_ready()
            if item == cython.NULL:
                break
            taken.append(self.message_of(item))
            numbers.append(number_of(item))
            self.part_with(item)
        return taken

    def next_ready(self):
        """Find the first item that is ready; NULL where none is."""
        item: cython.pointer(Item) = self.items.ready.front()
        while item == cython.NULL and self.items.is_stirred():
            self.items.restore()
            item = self.items.ready.front()
        if item != cython.NULL and item.state == PAGED:
            item = self.items.pages.fetch(item)
        return item

    def part_with(self, item):
        """Put an item aside that is to be moved elsewhere."""
        self.removed += 1
        self.items.put_aside(item)
        if self.has_refused or self.items.is_stirred():
            self.schedule()
        return 0

    def moved(self, numbers: list) -> None:
        """Give up for good what was put aside and has arrived elsewhere, for certain."""
        item: cython.pointer(Item)
        for number in numbers:
            item = self.put_aside_as(number)
            if item != cython.NULL:
                if self.journal is not None:
                    self.journal.done(number)
                if self.pending_dead_letters.pop(number, None) is None:
                    self.remove(item)
                self.discard(item)

    def tombstone(self, numbers: list) -> None:
        """Make what was put aside somebody else's, as far as is known here.

        After a crash it is in doubt, not ready; no output leaves before that is written down.
        """
        item: cython.pointer(Item)
        for number in numbers:
            item = self.put_aside_as(number)
            if item != cython.NULL:
                item.attempt = max(item.attempt, self.attempt_base) + 1
                self.unproven.add(number)
                item.flags |= HANDED
                if self.journal is not None:
                    self.journal.out(item)
        if self.journal is not None:
            self.core.hold_output()

    def enter_again(self, numbers: list) -> None:
        """Have what was put aside back, behind all others: it has not arrived elsewhere.

        What is not due yet is delayed again. What has become too old meanwhile expires: its timer
        was passed over while it was away.
        """
        item: cython.pointer(Item)
        for number in numbers:
            item = self.put_aside_as(number)
            if item != cython.NULL:
                item.flags &= ~HANDED
                self.removed -= 1
                if item.due_s > self.now():
                    item.attempt = 0  # nobody can have got it
                else:
                    item.due_s = 0.0
                self.items.enter_again(item)
                if self.journal is not None:
                    self.journal.put(item)
                    if item.attempt:
                        self.journal.back(item)
                if item.expires_s != 0.0 and item.expires_s <= self.now():
                    self.expire_one(item)
        self.schedule()

    def put_aside_as(self, number):
        """Find an item that is put aside; NULL where none of that number is."""
        item: cython.pointer(Item) = self.items.slots.find(number)
        return item if item != cython.NULL and item.state == ASIDE else cython.NULL

    def purge(self, count_max: int = 0xFFFFFFFF) -> int:
        """Forget items that are not out at a consumer; return how many.

        Args:
            count_max: How many at most, so that others get their turn.
        """
        count: uint64_t = 0
        most: uint64_t = count_max
        slot: uint32_t = 0
        item: cython.pointer(Item)
        self.items.restore()
        numbers: list = []
        while count < most and self.items.pages.count:
            count += self.items.forget_page(numbers)
            while numbers and self.journal is not None:
                self.journal.done(numbers.pop())
        while count < most and self.items.depth > self.items.out_count + self.items.in_doubt_count:
            item = self.items.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                break
            if not is_away(item):
                self.remove(item)
                self.forget(item)
                count += 1
        self.removed += count
        return count


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_dead_letter(s: cython.pointer(Shipment)) -> cython.bint:
    """Return whether a message is some queue's dead letter."""
    e: Envelope
    if s.format != 0:
        return False
    read_envelope(s.data, s.size, WANTS_DELAY, cython.address(e))
    return e.is_dead_letter


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_overflow(data: octets, size: uint32_t, format: uint32_t) -> cython.bint:
    """Return whether a message is a dead letter that another queue had no room for."""
    e: Envelope
    if format != 0:
        return False
    read_envelope(data, size, WANTS_DELAY, cython.address(e))
    return e.is_overflow
