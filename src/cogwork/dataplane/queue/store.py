"""The store: messages kept for consumers, each confirmed by at most one attempt.

Theory of operation. A store is an outlet of an address, and the feeder of its consumers' links.
What comes is looked at once (`read_envelope`): whether it can be kept and written down, whether it is
known already (a dead letter that was sent again, a message-id of the last while), and whether there
is room. Then it is made an item, put in its place by priority or aside until it is due, written to
the journal where there is one, and offered to the consumers. In memory it is answered at once: taken
is accepted. The answer of one on disk is held until that is durable. Its `Dispatcher` gives the items
to consumers, its `Settlement` learns what becomes of them.

Whatever goes back, or sets others free, is only gathered while a batch is scanned; the store's wake-up
(a port of its own) comes at the batch's end and has it served in order, once. So an item that is
lost with a connection does not go to the next link of the same dying connection.

Python sees no message. What a queue's node has to know (the dead) it finds in `take_exceptions`
when `handler.on_batch(store)` is called.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.envelope import (
    WANTS_DEAD_LETTER_ID,
    WANTS_DELAY,
    WANTS_GROUP_ID,
    WANTS_MESSAGE_ID,
    read_any_envelope,
)
from cython.cimports.cogwork.dataplane.queue.commits import Commits
from cython.cimports.cogwork.dataplane.queue.dead_letter_dedup import (
    DeadLetterDedup,
    dead_letter_key,
    without_dead_letter_id,
)
from cython.cimports.cogwork.dataplane.queue.item_history import is_over, restore_history
from cython.cimports.cogwork.dataplane.queue.item_table import is_away
from cython.cimports.cogwork.dataplane.queue.recent import cogwork_hash
from cython.cimports.cogwork.dataplane.queue.state import (
    bounded_bytes,
    is_beyond,
    is_choked,
    is_full,
    is_shut,
)
from cython.cimports.cogwork.dataplane.queue.stored import AGES, PRIORITIES_MAX, number_of
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, SETTLE, UNKNOWN
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    REJECTED,
    RELEASED,
    fill_shipment,
    fill_verdict,
)
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE

from cogwork.dataplane.queue.death_cycles import is_automatic_cycle
from cogwork.dataplane.queue.refusals import (
    CHOKED_STATE,
    DISK_FAILED_STATE,
    DISK_FULL_STATE,
    FULL_STATE,
    MALFORMED_STATE,
    odd_state,
    odd_text,
    too_large,
)
from cogwork.dataplane.queue.settlement import ABANDONED, LEFT_IN_DOUBT, REJECTED_BY_CONSUMER
from cogwork.dataplane.queue.state import DROPPED, EXCEEDED, EXPIRED, OVERACQUIRED

__all__ = (
    "ABANDONED",
    "DROPPED",
    "EXCEEDED",
    "EXPIRED",
    "KEEP_CODE",
    "LEFT_IN_DOUBT",
    "NO_CEILING",
    "OVERACQUIRED",
    "REJECTED_BY_CONSUMER",
    "SETTLE_CODE",
    "SOURCE_HASH",
    "STALE_CODE",
    "UNKNOWN_CODE",
    "Store",
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

KEEP_CODE, SETTLE_CODE, STALE_CODE, UNKNOWN_CODE = KEEP, SETTLE, REFUSE, UNKNOWN
"""What `claim` and `resume` return, as Python names it."""

NO_CEILING = 0xFFFFFFFFFFFFFFFF
"""The `ceiling_bytes` of a store that has none."""

LARGE_BYTES = cython.declare(uint64_t, 1 << 20)
"""What a message is taken to have before any has come."""

INSTANT_S = cython.declare(cython.double, 1e-5)
"""A ttl below this one is none: messages tell milliseconds, and options no time at all."""

_POLICIES = ("block", "drop-oldest", "reject", "reject-dead-letter")


class Store(Settlement):
    """A queue's messages in memory, and their way to consumers.

    Attributes:
        shard: This store's number among those of its queue; the first part of every tag.
        inlet: The address whose held messages go on when there is room again.
        near_inlet: The same for what comes from other containers; None where that is no other.
        ceiling_bytes: Takes nothing once its items have so many, whatever its own bounds say.
    """

    def __init__(
        self,
        core,
        shard: int = 0,
        *,
        priorities: int = 10,
        delays: bool = True,
        is_ordered: bool = False,
        deduplication_window_s: float = 0.0,
        deduplication_count: int = 100_000,
    ):
        """Make an empty store.

        Args:
            core: The core it belongs to.
            shard: Its number among the stores of its queue.
            priorities: Levels told apart, 1 to 256.
            delays: Whether a message may ask to be delivered later.
            is_ordered: Whether each group-id goes to one consumer at a time.
            deduplication_window_s: How long a message-id is remembered; 0 remembers none.
            deduplication_count: How many message-ids are remembered.
        """
        self._set_up_enqueue(
            priorities, delays, is_ordered, deduplication_window_s, deduplication_count
        )
        Settlement.__init__(self, core)
        self.shard = shard
        self.items.ready.set_levels(priorities)
        self.dispatcher = Dispatcher(self, shard)

    def reopen(self) -> None:
        """Go on after there was no room on the disk."""
        for link in list(self.dispatcher.consumers):
            if link.credit:
                self.dispatcher.on_ready(link)
        self.schedule()

    def clear(self) -> None:
        """Forget its items, and all that it knows of earlier ones: another store has them now.

        Nothing of that is written down; consumers stay, and of their claims nothing is known.
        """
        self.drop_all()
        self.commits = Commits()
        self._forget_arrivals()

    def close(self) -> None:
        """Take the store out of use; what it held is gone with it."""
        for link in list(self.dispatcher.consumers):
            self.dispatcher.remove(link)
        Settlement.close(self)

    # -- enqueue

    def _set_up_enqueue(
        self,
        priorities: cython.int,
        delays: bool,
        is_ordered: bool,
        deduplication_window_s: cython.double,
        deduplication_count: int,
    ):
        """Set what is looked for in a message; the arguments are those of `Store`."""
        self.ceiling_bytes = NO_CEILING
        self._set_levels(priorities)
        self.dead_letter_dedup = DeadLetterDedup()
        self.wants = WANTS_DEAD_LETTER_ID | (WANTS_DELAY if delays else 0)
        if is_ordered:
            self.wants |= WANTS_GROUP_ID
        if deduplication_window_s > 0:
            self.wants |= WANTS_MESSAGE_ID
            self.recent_limits = (deduplication_window_s, deduplication_count)
            self.recent = RecentIds(deduplication_window_s, deduplication_count)

    def _forget_arrivals(self):
        """Forget which dead letters and message-ids have come."""
        self.dead_letter_dedup = DeadLetterDedup()
        self.forwards = None
        if self.recent is not None:
            self.recent = RecentIds(*self.recent_limits)

    def _set_levels(self, priorities: int):
        """Map priorities to levels, with the default in the middle (AMQP 1.0 §3.2.1)."""
        priority: cython.int
        lowest: cython.int = max(0, 5 - (priorities + 1) // 2)
        if not 1 <= priorities <= PRIORITIES_MAX:
            raise ValueError(f"{priorities} priorities; 1 to {PRIORITIES_MAX} are possible")
        for priority in range(256):
            self.levels[priority] = max(0, min(priority - lowest, priorities - 1))

    @property
    def policy(self) -> str:
        """What a full store does with one message more: one of `_POLICIES`."""
        if self.dead_letters_refused:
            return "reject-dead-letter"
        return _POLICIES[self.full_policy]

    @policy.setter
    def policy(self, name: str):
        if name not in _POLICIES:
            raise ValueError(f"no policy {name!r}; expected one of {', '.join(_POLICIES)}")
        self.dead_letters_refused = name == "reject-dead-letter"
        self.full_policy = FULL_REJECTS if self.dead_letters_refused else _POLICIES.index(name)
        self.counts_out = self.full_policy == FULL_BLOCKS
        self.drops_head = self.full_policy == FULL_DROPS_OLDEST

    def is_ready(self):
        is_kept_waiting: cython.bint = self.journal is not None and self.is_kept_waiting()
        if self.is_above_ceiling() and self.full_policy != FULL_REJECTS:
            is_kept_waiting = True
        if is_kept_waiting or (self.full_policy == FULL_BLOCKS and is_full(self)):
            self.has_refused = True
            return False
        return self.wakeup is not None

    def room(self) -> object:
        """Return how many messages it takes more, about; None where none is ever kept waiting.

        Of one that is bounded by size it is a guess, by the size of those that are here, or were.
        """
        items: ItemTable = self.items
        count: object = None
        if not self.is_ready():
            return 0
        if self.full_policy != FULL_BLOCKS:
            return None
        if self.maximum_length:
            count = max(self.maximum_length - items.depth, 0)
        if self.maximum_bytes:
            size: uint64_t = LARGE_BYTES
            left: uint64_t = 0
            if items.depth:
                size = max(items.size_bytes // items.depth, 1)
            elif self.inlet is not None and self.inlet.received:
                size = max(self.inlet.received_bytes // self.inlet.received, 1)
            if self.maximum_bytes > items.size_bytes:
                left = self.maximum_bytes - items.size_bytes
            by_size: object = (left + size - 1) // size
            count = by_size if count is None else min(count, by_size)
        self.has_refused = True  # so that room is told of as soon as there is more
        return count

    def is_kept_waiting(self):
        """Return whether a message has to wait for room on the disk, or for the dead to go."""
        journal: Journal = self.journal
        if journal.is_failed or self.full_policy == FULL_REJECTS:
            return False
        return not journal.is_open or journal.is_low or is_choked(self)

    def is_above_ceiling(self):
        return self.items.bytes_in_memory() >= self.ceiling_bytes

    def has_room(self, size):
        """Return whether a message of that size is taken without another's going, or its refusal.

        One that refuses takes no more octets than it may hold; others notice when they are full.
        """
        if is_full(self) or self.is_above_ceiling():
            return False
        if self.full_policy != FULL_REJECTS or self.maximum_bytes == 0:
            return True
        return size <= self.maximum_bytes - bounded_bytes(self)

    @property
    def is_held_up(self) -> bool:
        """Whether it takes nothing because those who made it have too much in memory."""
        return self.is_above_ceiling()

    def take(self, s):
        return self.reply(s, ACCEPTED, None) if self.receive(s) else 0

    def take_forwarded(self, s):
        """Take a message of another container, which sends it again until it has an answer."""
        if self.forwards is None:
            self.forwards = ForwardDedup()
        if self.forwards.knows(s.tag):
            self.duplicates += 1
            self.is_owed = self.journal is not None and not s.settled
            return self.reply(s, ACCEPTED, None)
        self.forward_tag = s.tag
        try:
            return self.take(s)
        finally:
            self.forward_tag = cython.NULL

    def note_forwarded(self):
        """Remember that the message of another container was taken which was written last."""
        self.forwards.remember(self.forward_tag)
        if self.journal is not None:
            self.journal.forwarded(self.forward_tag)
        self.forward_tag = cython.NULL
        return 0

    def take_run(self, s, pieces, count):
        """Take a run of messages, and answer for consecutive ones in one go."""
        index: uint32_t = 0
        first: uint64_t = 0
        accepted: uint32_t = 0
        while index < count and self.is_ready():
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            index += 1
            if accepted and s.token != first + accepted:
                self.answer_run(s, first, accepted)
                accepted = 0
            if self.receive(s):
                if accepted == 0:
                    first = s.token
                accepted += 1
            elif accepted:
                self.answer_run(s, first, accepted)
                accepted = 0
        if accepted:
            self.answer_run(s, first, accepted)
        return index

    def answer_run(self, s, token, count):
        """Return accepted for messages with consecutive tokens."""
        verdict: Verdict
        source: Terminus
        if s.settled:
            return 0
        source = self.core.resolve(s.source_index, s.source_generation)
        if source is None:
            return 0
        if self.is_owed:
            self.hold_answer(source)
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        return source.resolve_run(token, count, cython.address(verdict))

    def hold_answer(self, source):
        """Hold what is said to a sender until what it sent is durable."""
        self.is_owed = False
        return 0 if self.journal is None else self.journal.hold_for(source)

    def note_durable(self):
        """Count a durable message that is kept in memory; tell of the first one."""
        self.durable_in_memory += 1
        if self.on_durable is not None:
            told, self.on_durable = self.on_durable, None
            told()
        return 0

    def receive(self, s):
        """Take a message in; return 1 where it is accepted, 0 where it was rejected."""
        e: Envelope
        state: bytes
        is_known: cython.bint = False
        if self.journal is not None and self.cannot_write(s):
            return 0
        # In a foreign format nothing says how to keep it: as well as can be.
        is_foreign: cython.bint = s.format != 0 and s.format != BASIC_FORMAT
        if read_any_envelope(s.data, s.size, s.format, self.wants, cython.address(e)) < 0 or e.odd:
            self.malformed += 1
            state = odd_state(e.odd, e.odd_code) if e.odd else MALFORMED_STATE
            return self.reply(s, REJECTED, state)
        if self.journal is not None:
            if not s.settled and (self.waits_for_all or e.header.durable or is_foreign):
                self.is_owed = True
        elif e.header.durable:
            self.note_durable()
        if e.dead_letter_id != cython.NULL and self.dead_letter_dedup.knows(
            dead_letter_key(s, cython.address(e))
        ):
            self.duplicates += 1
            return 1
        if e.is_dead_letter and self.goes_in_circles(s):
            self.dropped += 1
            return 1
        if e.message_id != cython.NULL:
            is_known = self.recent.saw(e.message_id, e.message_id_size, self.now())
            if is_known and not e.is_moved:
                self.duplicates += 1
                return 1
        if self.full_policy != FULL_BLOCKS and not self.has_room(s.size):
            if self.full_policy == FULL_REJECTS:
                self.refused += 1
                if self.dead_letters_refused:
                    self.do_without(s.data, s.size, s.format)
                    if e.is_dead_letter:  # its queue would send it again
                        return 1
                return self.reply(s, REJECTED, FULL_STATE)
            if not self.make_room():
                self.do_without(s.data, s.size, s.format)
                return 1
        if e.message_id != cython.NULL and not is_known:
            self.recent.remember(self.now())
            if self.journal is not None:
                self.journal.note_seen(e.message_id, e.message_id_size, self.now())
        self.admit(s, cython.address(e))
        return 1

    def goes_in_circles(self, s):
        """Return whether a dead letter of AMQP 0-9-1 has come back here without anybody's doing."""
        if s.format != 0 or self.inlet is None:
            return False
        return is_automatic_cycle(bytes_from(s.data, s.size), self.inlet.name)

    def cannot_write(self, s):
        """Reject a message that cannot be written down; return whether it is one."""
        state: bytes = None
        if self.journal.is_failed:
            state = self.journal.failed_state or DISK_FAILED_STATE
        elif is_shut(self) or self.journal.is_low:
            state = DISK_FULL_STATE
        elif is_choked(self) and not self.makes_way(s):
            state = CHOKED_STATE
        elif s.size > self.journal.message_bytes_max:
            state = too_large(self.journal.message_bytes_max)
        if state is None:
            return 0
        self.refused += 1
        self.reply(s, REJECTED, state)
        return 1

    def reply(self, s, code, state):
        """Answer for one message, and returns 0."""
        verdict: Verdict
        source: Terminus
        if s.settled:
            return 0
        if self.is_owed and code == ACCEPTED:
            source = self.core.resolve(s.source_index, s.source_generation)
            self.hold_answer(source)
        fill_verdict(cython.address(verdict), code, state)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def admit(self, s, e):
        """Make an item of a message, and offer it to the consumers."""
        key: bytes
        item: cython.pointer(Item) = self.make(s, e)
        item.format = s.format
        item.origin = s.origin
        item.priority = self.level_of(e.header.priority, s.format)
        item.stored_s = self.now()
        if self.history is not None:
            restore_history(item, self.history, item.stored_s)
        if e.group_id_size:
            item.group_key = cogwork_hash(e.group_id, e.group_id_size) | 1
        if e.header.has_ttl:
            item.flags |= AGES
        self.stored += 1
        self.place(item, e)
        if self.journal is not None:
            self.journal.put(item)
            if e.dead_letter_id != cython.NULL:
                key = dead_letter_key(s, e)
                self.journal.dead_letter_taken(octets_of(key))
        if self.forward_tag != cython.NULL:
            self.note_forwarded()
        if self.audit_events is not None:
            self.audit_events.accepted(item)
        if self.history is not None and is_over(self, item):
            return 0
        if item.expires_s != 0.0 and item.expires_s <= item.stored_s:
            return self.offer_once(item)
        return self.dispatcher.offer(item)

    def offer_once(self, item):
        """Offer an item that has no time to wait: it is dead unless a consumer takes it now."""
        number: uint64_t = number_of(item)
        self.items.restore()
        self.dispatcher.offer(item)
        item = self.items.slots.find(number)  # a consumer may have settled it already
        if item == cython.NULL or is_away(item):
            return 0
        return self.expire_one(item)

    def make(self, s, e):
        """Make an item of a message, and remember which dead letter it is."""
        kept: bytes
        if e.dead_letter_id == cython.NULL:
            return self.items.make(s.data, s.size)
        self.dead_letter_dedup.remember(dead_letter_key(s, e))
        kept = without_dead_letter_id(s, e)
        return self.items.make(octets_of(kept), cython.cast(uint32_t, len(kept)))

    def place(self, item, e):
        """Put a new item in its place, or aside until its time comes."""
        now_s: cython.double = item.stored_s
        ttl_s: cython.double = self.ttl_s
        due_s: cython.double = item.due_s
        if e.header.has_ttl and (ttl_s == 0.0 or e.header.ttl_ms * 0.001 < ttl_s):
            ttl_s = e.header.ttl_ms * 0.001
        if e.header.has_ttl or ttl_s > 0.0:
            self.items.expire_at(item, now_s if ttl_s < INSTANT_S else now_s + ttl_s)
            self.core.wake_at(item.expires_s)
        if e.delay_ms > 0:
            due_s = now_s + e.delay_ms * 0.001
        elif e.delivery_time_ms > 0:
            due_s = e.delivery_time_ms * 0.001 - self.wall_offset()
        if due_s > now_s:
            self.core.wake_at(due_s)
            return self.items.delay(item, due_s)
        return self.items.enter(item)

    def flaw_of(self, message: bytes, message_format: int) -> str:
        """Return why a message can never be put here; None where it can, now or later."""
        e: Envelope
        size: uint32_t = cython.cast(uint32_t, PyBytes_GET_SIZE(message))
        if self.journal is not None and size > self.journal.message_bytes_max:
            return f"it has {size} octets, and {self.journal.message_bytes_max} fit a record"
        fits = (
            read_any_envelope(
                octets_of(message),
                size,
                cython.cast(uint32_t, message_format),
                self.wants,
                cython.address(e),
            )
            >= 0
        )
        if fits:
            return None
        return odd_text(e.odd, e.odd_code) if e.odd else "its sections are malformed"

    def put(self, message: bytes, message_format: int = 0, history: tuple = None) -> bool:
        """Put in what was taken out, whatever its id and delay; say whether it is taken now.

        With a `history` it goes on from there; else it is new.
        """
        s: Shipment
        wants: cython.int = self.wants
        if not self.is_ready() or is_shut(self):
            return False
        if self.journal is not None:
            self.core.hold_output()
        fill_shipment(
            cython.address(s), octets_of(message), cython.cast(uint32_t, PyBytes_GET_SIZE(message))
        )
        s.format = cython.cast(uint32_t, message_format)
        s.settled = True
        self.wants &= WANTS_GROUP_ID
        self.history = history
        try:
            return self.receive(cython.address(s)) == 1
        finally:
            self.wants = wants
            self.history = None

    # -- consumers

    def hold_consumer(self, item):
        return self.dispatcher.hold(item.consumer)

    def add_consumer(
        self,
        link,
        marks_received: bool = False,
        is_browser: bool = False,
        is_far: bool = False,
    ) -> None:
        """Feed a link from now on.

        Args:
            link: With its selector set, where it has one.
            marks_received: Whether its client says `received` for what its application has.
            is_browser: Whether it gets copies and leaves the items where they are.
            is_far: Whether it is another container's, and gets what none of this one's can take.
        """
        self.dispatcher.add(link, marks_received, is_browser, is_far)

    def feed_alike(self) -> None:
        """Give consumers of other containers their turns among this one's, by priority."""
        self.dispatcher.far = self.dispatcher.round

    def remove_consumer(self, link, is_over: bool = True) -> None:
        """Feed a link no more; what is out at it stays so until it is settled or detached.

        Args:
            link: One that was added.
            is_over: Whether its consumer has gone; False where another container's may still be
                there, and only the way to it is broken.
        """
        if is_over:
            self.dispatcher.drop_leases(link)
        self.dispatcher.remove(link)

    def end_consumer(self, link, code: int = 0, state: bytes = None) -> None:
        """Feed a link no more that its consumer ended in order.

        What is out at it gets its source's default outcome at once.

        Args:
            link: One that was added; it is detached next.
            code: The descriptor code of the outcome that the source names; 0 where it names none,
                and what is out goes back uncounted.
            state: The outcome encoded, where it says more than its code.
        """
        verdict: Verdict
        fill_verdict(cython.address(verdict), code if code else RELEASED, state)
        self.dispatcher.end(link, cython.address(verdict), code != 0)

    def keep_consumer(self, link) -> int:
        """Feed a link no more that its consumer may resume; what is out at it stays so.

        Args:
            link: One that was added; `OutgoingLink.leave` comes next.

        Returns:
            What `end_kept` or `lose_kept` has to be called with; 0 where nothing is out at it.
        """
        return self.dispatcher.keep(link)

    def end_kept(self, serial: int, code: int = 0, state: bytes = None) -> None:
        """Give a kept link up as `end_consumer` does; what has been resumed stays where it is."""
        verdict: Verdict
        fill_verdict(cython.address(verdict), code if code else RELEASED, state)
        self.dispatcher.end_kept(serial, cython.address(verdict), code != 0)

    def lose_kept(self, serial: int) -> None:
        """Give a kept link up whose connection was lost: what is out at it may be in doubt."""
        self.dispatcher.end_kept(serial, cython.NULL, False)

    def serial_of(self, link) -> int:
        """Return what a consumer is known by to `take_back`; 0 where it is none."""
        return self.dispatcher.serial_of(link)

    def holders(self) -> list:
        """List the consumers: link, whether another container's, whether items are out at it."""
        return self.dispatcher.holders()

    def take_back(self, serial: int) -> None:
        """Give back what a consumer of another container has not got before its link broke.

        Args:
            serial: Its number; what it has by its own account has been resumed by its next link.
        """
        self.dispatcher.take_back(serial)

    def leased_to(self) -> set:
        """Return the numbers of the consumers for which `take_back` may find something."""
        return self.dispatcher.leased_to()

    def on_ready(self, link):
        return self.dispatcher.on_ready(link)

    def resume(self, link, tags: list, handed=(), is_there: bool = False) -> list:
        """Give a consumer that came back the attempts that it still has.

        They are sent again on its link, under the same tags, as soon as it gives credit.

        Args:
            link: One of this store's consumers.
            tags: Delivery-tags that its client holds unsettled.
            handed: Those of them that its application certainly has, where the consumer is another
                container's; else all are.
            is_there: Whether the link has the items already, from another container's store. They
                are not sent again, and what is said of them comes by `claim`.

        Returns:
            For each tag KEEP_CODE where that attempt goes on, SETTLE_CODE where its claim was
            confirmed, STALE_CODE where there is a later one or another was confirmed, UNKNOWN_CODE
            where nothing is known of it.
        """
        answers: list = []
        for tag in tags:
            if len(tag) != 16 or int.from_bytes(tag[:4], "big") != self.shard:
                answers.append(UNKNOWN)
                continue
            number = int.from_bytes(tag[4:12], "big")
            attempt = int.from_bytes(tag[12:], "big")
            answers.append(self.dispatcher.resume(link, number, attempt, tag in handed, is_there))
        return answers

    # -- what lies on disk

    def page_in(self, page: Page, data: bytes) -> None:
        """Put items back into memory that lay on disk, and serve them.

        Args:
            page: One that was wanted.
            data: The block that has them.

        Raises:
            ValueError: It has not.
        """
        self.items.pages.page_in(page, data)
        self.schedule()

    # -- time and the end of a batch

    def tick(self, now_s: float) -> None:
        """Let time pass: expires, delivers what was delayed, decides over what is in doubt.

        Args:
            now_s: The monotonic clock. What is to be sent goes out with the next flush.
        """
        due_s: cython.double
        self.ticked_s = now_s
        self.items.restore()
        self.expire(now_s)
        self.pass_time(now_s)
        if self.items.ripen(now_s) or self.dispatcher.is_unfinished or self.dispatcher.departed:
            self.dispatcher.is_unfinished = False
            self.schedule()
        if self.has_refused and is_choked(self):
            self.inlet.serve_dead_letters()
            if self.near_inlet is not None:
                self.near_inlet.serve_dead_letters()
        due_s = self.items.next_due(now_s)
        if due_s != 0.0:
            self.core.wake_at(due_s)

    @property
    def is_idle(self) -> bool:
        """Says whether `tick` would do nothing, whenever it came."""
        return self.is_still()

    def is_still(self):
        dispatcher: Dispatcher = self.dispatcher
        return self.is_at_rest() and not (dispatcher.is_unfinished or dispatcher.departed)

    def on_batch(self, port) -> None:
        """Serve what was gathered in a batch; called by the core at the wake-up."""
        self.dispatcher.sweep_departed()
        if self.drops_head and is_beyond(self):
            self.drop_beyond()
        self.dispatcher.serve()
        if self.has_refused and self.is_ready():
            self.has_refused = False
            if self.inlet is not None:
                self.inlet.serve_held()
                self.inlet.renew_credit()
            if self.near_inlet is not None:
                self.near_inlet.serve_held()
                self.near_inlet.renew_credit()
        if (self.exceptions or self.unsent) and self.handler is not None:
            self.handler.on_batch(self)

    @property
    def consumer_count(self) -> int:
        """Counts the consumers, those of other containers included."""
        return len(self.dispatcher.consumers)

    def counts(self) -> dict:
        """Count the items by where they stand, and what has happened so far."""
        return {
            **Settlement.counts(self),
            "consumers": len(self.dispatcher.consumers),
            "in": self.stored,
            "out": self.dispatcher.sent,
            "redelivered": self.dispatcher.redelivered,
            "refused": self.refused,
            "malformed": self.malformed,
            "duplicates": self.duplicates,
            "durable-in-memory": self.durable_in_memory,
        }


def awake(queues: list) -> list:
    """Return those queues of (key, node, store) at which something changes with time.

    There may be thousands of them, ten times a second: no method of a node is called.
    """
    found: list = []
    for entry in queues:
        store: Store = entry[2]
        if entry[1].wants_ticks or not store.is_still():
            found.append(entry)
    return found
