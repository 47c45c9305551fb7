"""The store: messages kept for consumers, each confirmed by at most one attempt.

Theory of operation. A store is an outlet of an address, and the feeder of its consumers' links.
What it takes becomes an item in its `Stock` and is answered at once: for memory, taken is accepted.
Its `Dispatcher` gives the items to consumers, its `Ledger` learns what becomes of them.

Whatever goes back, or sets others free, is only gathered while a batch is scanned; the store's bell
(a port of its own) rings at the batch's end and has it served in order, once. So an item that is
lost with a connection does not go to the next link of the same dying connection.

Python sees no message. What a queue's node has to know (the dead) it finds in `take_exceptions`
when `handler.on_batch(store)` is called.
"""

import cython
from cython.cimports.cogwork.dataplane.commits import Commits
from cython.cimports.cogwork.dataplane.envelope import (
    WANTS_DELAY,
    WANTS_GROUP_ID,
    WANTS_LETTER_ID,
    WANTS_MESSAGE_ID,
    clear_envelope,
    read_envelope,
)
from cython.cimports.cogwork.dataplane.letters import Letters, letter_of, opened
from cython.cimports.cogwork.dataplane.octets import octets_of
from cython.cimports.cogwork.dataplane.past import is_over, recall
from cython.cimports.cogwork.dataplane.recent import cogwork_hash
from cython.cimports.cogwork.dataplane.shipment import (
    ACCEPTED,
    REJECTED,
    fill_shipment,
    fill_verdict,
)
from cython.cimports.cogwork.dataplane.stock import is_choked, is_full, is_shut
from cython.cimports.cogwork.dataplane.stored import AGES
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, SETTLE
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE

from cogwork.dataplane.ledger import IN_DOUBT, REJECTED_BY_CONSUMER
from cogwork.dataplane.refusals import (
    CHOKED_STATE,
    DISK_FAILED_STATE,
    DISK_FULL_STATE,
    FULL_STATE,
    MALFORMED_STATE,
    too_large,
)
from cogwork.dataplane.stock import DROPPED, EXCEEDED, EXPIRED

__all__ = (
    "DROPPED",
    "EXCEEDED",
    "EXPIRED",
    "IN_DOUBT",
    "KEEP_CODE",
    "REJECTED_BY_CONSUMER",
    "SETTLE_CODE",
    "SOURCE_HASH",
    "STALE_CODE",
    "Store",
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

KEEP_CODE, SETTLE_CODE, STALE_CODE = KEEP, SETTLE, REFUSE
"""What `claim` and `resume` return, as Python names it."""

_POLICIES = ("block", "drop-oldest", "reject")


class Store(Ledger):
    """A queue's messages in memory, and their way to consumers.

    Attributes:
        shard: This store's number among those of its queue; the first part of every tag.
        inlet: The address whose held messages go on when there is room again.
        near_inlet: The same for what comes from other containers; None where that is no other.
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
        """Makes an empty store.

        Args:
            core: The core it belongs to.
            shard: Its number among the stores of its queue.
            priorities: Levels told apart, 1 to 10.
            delays: Whether a message may ask to be delivered later.
            is_ordered: Whether each group-id goes to one consumer at a time.
            deduplication_window_s: How long a message-id is remembered; 0 remembers none.
            deduplication_count: How many message-ids are remembered.
        """
        self._set_levels(priorities)
        Ledger.__init__(self, core)
        self.shard = shard
        self.dispatcher = Dispatcher(self, shard)
        self.letters = Letters()
        self.wants = WANTS_LETTER_ID | (WANTS_DELAY if delays else 0)
        if is_ordered:
            self.wants |= WANTS_GROUP_ID
        if deduplication_window_s > 0:
            self.wants |= WANTS_MESSAGE_ID
            self.recent_limits = (deduplication_window_s, deduplication_count)
            self.recent = RecentIds(deduplication_window_s, deduplication_count)

    def _set_levels(self, priorities: int):
        """Maps priorities to levels, with the default in the middle (AMQP 1.0 §3.2.1)."""
        priority: cython.int
        lowest: cython.int = 5 - (priorities + 1) // 2
        if not 1 <= priorities <= 10:
            raise ValueError(f"{priorities} priorities; 1 to 10 are possible")
        for priority in range(256):
            self.levels[priority] = max(0, min(priority - lowest, priorities - 1))

    @property
    def policy(self) -> str:
        """What a full store does with one message more: block, drop-oldest or reject."""
        return _POLICIES[self.full_policy]

    @policy.setter
    def policy(self, name: str):
        if name not in _POLICIES:
            raise ValueError(f"no policy {name!r}; expected one of {', '.join(_POLICIES)}")
        self.full_policy = _POLICIES.index(name)

    def reopen(self) -> None:
        """Goes on after there was no room on the disk."""
        for link in list(self.dispatcher.consumers):
            if link.credit:
                self.dispatcher.on_ready(link)
        self.ring()

    def clear(self) -> None:
        """Forgets its items, and all that it knows of earlier ones: another store has them now.

        Nothing of that is written down; consumers stay, and their claims are stale.
        """
        self.drop_all()
        self.commits = Commits()
        self.letters = Letters()
        if self.recent is not None:
            self.recent = RecentIds(*self.recent_limits)

    def close(self) -> None:
        """Takes the store out of use; what it held is gone with it."""
        for link in list(self.dispatcher.consumers):
            self.dispatcher.remove(link)
        Ledger.close(self)

    # -- taking messages in

    def is_ready(self):
        is_kept_waiting: cython.bint = self.journal is not None and self.is_kept_waiting()
        if is_kept_waiting or (self.full_policy == FULL_BLOCKS and is_full(self)):
            self.has_refused = True
            return False
        return self.bell is not None

    def is_kept_waiting(self):
        """Says whether a message has to wait for room on the disk, or for the dead to go."""
        journal: Journal = self.journal
        if journal.is_failed or self.full_policy == FULL_REJECTS:
            return False
        return not journal.is_open or journal.is_low or is_choked(self)

    def take(self, s):
        return self.reply(s, ACCEPTED, None) if self.receive(s) else 0

    def take_run(self, s, pieces, count):
        """Takes a run of messages, and answers for consecutive ones in one go."""
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
        """Says accepted for messages with consecutive tokens."""
        verdict: Verdict
        source: Terminus
        if s.settled:
            return 0
        source = self.core.resolve(s.source_index, s.source_generation)
        if source is None:
            return 0
        if self.journal is not None:
            self.journal.hold_for(source)
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        return source.resolve_run(token, count, cython.address(verdict))

    def receive(self, s):
        """Takes a message in; returns 1 where it is accepted, 0 where it was rejected."""
        e: Envelope
        is_known: cython.bint = False
        if self.journal is not None and self.cannot_write(s):
            return 0
        if s.format != 0:
            # Not a message of AMQP 1.0 §3.2: nothing in it says how to keep it.
            clear_envelope(cython.address(e))
        elif read_envelope(s.data, s.size, self.wants, cython.address(e)) < 0:
            self.malformed += 1
            return self.reply(s, REJECTED, MALFORMED_STATE)
        if e.letter_id != cython.NULL and self.letters.knows(letter_of(cython.address(e))):
            self.duplicates += 1
            return 1
        if e.message_id != cython.NULL:
            is_known = self.recent.saw(e.message_id, e.message_id_size, self.now())
            if is_known and not e.is_moved:
                self.duplicates += 1
                return 1
        if self.full_policy != FULL_BLOCKS and is_full(self):
            if self.full_policy == FULL_REJECTS:
                self.refused += 1
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

    def cannot_write(self, s):
        """Rejects a message that cannot be written down; returns whether it is one."""
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
        """Answers for one message, and returns 0."""
        verdict: Verdict
        source: Terminus
        if s.settled:
            return 0
        if self.journal is not None and code == ACCEPTED:
            source = self.core.resolve(s.source_index, s.source_generation)
            self.journal.hold_for(source)
        fill_verdict(cython.address(verdict), code, state)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def admit(self, s, e):
        """Makes an item of a message, and offers it to the consumers."""
        item: cython.pointer(Item) = self.make(s, e)
        item.format = s.format
        item.origin = s.origin
        item.priority = self.levels[e.header.priority]
        item.stored_s = self.now()
        if self.past is not None:
            recall(item, self.past, item.stored_s)
        if e.group_id_size:
            item.group_key = cogwork_hash(e.group_id, e.group_id_size) | 1
        if e.header.has_ttl:
            item.flags |= AGES
        self.stored += 1
        self.place(item, e)
        if self.journal is not None:
            self.journal.put(item)
            if e.letter_id != cython.NULL:
                self.journal.letter(e.letter_id)
        if self.trail is not None:
            self.trail.accepted(item)
        if self.past is not None and is_over(self, item):
            return 0
        return self.dispatcher.offer(item)

    def make(self, s, e):
        """Makes an item of a message, and remembers which dead letter it is."""
        kept: bytes
        if e.letter_id == cython.NULL:
            return self.shelf.make(s.data, s.size)
        self.letters.remember(letter_of(e))
        kept = opened(s, e)
        return self.shelf.make(octets_of(kept), cython.cast(uint32_t, len(kept)))

    def hold_consumer(self, item):
        return self.dispatcher.hold(item.consumer)

    def place(self, item, e):
        """Puts a new item in its place, or aside until its time comes."""
        now_s: cython.double = item.stored_s
        ttl_s: cython.double = self.ttl_s
        due_s: cython.double = item.due_s
        if e.header.has_ttl and (ttl_s == 0.0 or e.header.ttl_ms * 0.001 < ttl_s):
            ttl_s = e.header.ttl_ms * 0.001
        if e.header.has_ttl or ttl_s > 0.0:
            self.shelf.expire_at(item, now_s + ttl_s)
        if e.delay_ms > 0:
            due_s = now_s + e.delay_ms * 0.001
        elif e.delivery_time_ms > 0:
            due_s = now_s + e.delivery_time_ms * 0.001 - cogwork_wall_s()
        if due_s > now_s:
            return self.shelf.delay(item, due_s)
        return self.shelf.enter(item)

    def flaw_of(self, message: bytes, message_format: int) -> str:
        """Says why a message can never be put here; None where it can, now or later."""
        e: Envelope
        size: uint32_t = cython.cast(uint32_t, PyBytes_GET_SIZE(message))
        if self.journal is not None and size > self.journal.message_bytes_max:
            return f"it has {size} octets, and {self.journal.message_bytes_max} fit a record"
        if message_format:
            return None
        fits = read_envelope(octets_of(message), size, self.wants, cython.address(e)) >= 0
        return None if fits else "its sections are malformed"

    def put(self, message: bytes, message_format: int = 0, past: tuple = None) -> bool:
        """Puts in what was taken out, whatever its id and delay; says whether it is taken now.

        With a `past` it goes on from there; else it is new.
        """
        s: Shipment
        wants: cython.int = self.wants
        if not self.is_ready() or is_shut(self):
            return False
        if self.journal is not None:
            self.core.hold_all()
        fill_shipment(
            cython.address(s), octets_of(message), cython.cast(uint32_t, PyBytes_GET_SIZE(message))
        )
        s.format = cython.cast(uint32_t, message_format)
        s.settled = True
        self.wants &= WANTS_GROUP_ID
        self.past = past
        try:
            return self.receive(cython.address(s)) == 1
        finally:
            self.wants = wants
            self.past = None

    # -- consumers

    def add_consumer(
        self,
        link,
        marks_received: bool = False,
        is_browser: bool = False,
        is_far: bool = False,
    ) -> None:
        """Feeds a link from now on.

        Args:
            link: With its selector set, where it has one.
            marks_received: Whether its client says `received` for what its application has.
            is_browser: Whether it gets copies and leaves the items where they are.
            is_far: Whether it is another container's, and gets what none of this one's can take.
        """
        self.dispatcher.add(link, marks_received, is_browser, is_far)

    def remove_consumer(self, link, is_over: bool = True) -> None:
        """Feeds a link no more; what is out at it stays so until it is settled or detached.

        Args:
            link: One that was added.
            is_over: Whether its consumer has gone; False where another container's may still be
                there, and only the way to it is broken.
        """
        if is_over:
            self.dispatcher.unlend(link)
        self.dispatcher.remove(link)

    def serial_of(self, link) -> int:
        """Returns what a consumer is known by to `take_back`; 0 where it is none."""
        return self.dispatcher.serial_of(link)

    def holders(self) -> list:
        """Lists the consumers: link, whether another container's, whether items are out at it."""
        return self.dispatcher.holders()

    def take_back(self, serial: int) -> None:
        """Gives back what a consumer of another container has not got before its link broke.

        Args:
            serial: Its number; what it has by its own account has been resumed by its next link.
        """
        self.dispatcher.take_back(serial)

    def lent_to(self) -> set:
        """Returns the numbers of the consumers for which `take_back` may find something."""
        return self.dispatcher.lent_to()

    def on_ready(self, link):
        return self.dispatcher.on_ready(link)

    def resume(self, link, tags: list, handed=(), is_there: bool = False) -> list:
        """Gives a consumer that came back the attempts that it still has.

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
            confirmed, STALE_CODE where it has been overtaken or never was.
        """
        answers: list = []
        for tag in tags:
            if len(tag) != 16 or int.from_bytes(tag[:4], "big") != self.shard:
                answers.append(REFUSE)
                continue
            number = int.from_bytes(tag[4:12], "big")
            attempt = int.from_bytes(tag[12:], "big")
            answers.append(self.dispatcher.resume(link, number, attempt, tag in handed, is_there))
        return answers

    # -- time and the end of a batch

    def tick(self, now_s: float) -> None:
        """Lets time pass: expires, delivers what was delayed, decides over what is in doubt.

        Args:
            now_s: The monotonic clock. What is to be sent goes out with the next flush.
        """
        self.ticked_s = now_s
        self.shelf.restore()
        self.expire(now_s)
        self.pass_time(now_s)
        if self.shelf.ripen(now_s) or self.dispatcher.is_unfinished or self.dispatcher.departed:
            self.dispatcher.is_unfinished = False
            self.ring()
        if self.has_refused and is_choked(self):
            self.inlet.serve_letters()
            if self.near_inlet is not None:
                self.near_inlet.serve_letters()

    @property
    def is_idle(self) -> bool:
        """Says whether `tick` would do nothing, whenever it came."""
        return self.is_at_rest() and not (self.dispatcher.is_unfinished or self.dispatcher.departed)

    def on_batch(self, port) -> None:
        """Serves what was gathered in a batch; called by the core when the bell has rung."""
        self.dispatcher.sweep_departed()
        self.dispatcher.serve()
        if self.has_refused and self.is_ready():
            self.has_refused = False
            if self.inlet is not None:
                self.inlet.serve_held()
            if self.near_inlet is not None:
                self.near_inlet.serve_held()
        if (self.exceptions or self.unsent) and self.handler is not None:
            self.handler.on_batch(self)

    def counts(self) -> dict:
        """Counts the items by where they stand, and what has happened so far."""
        return {
            **Ledger.counts(self),
            "consumers": len(self.dispatcher.consumers),
            "in": self.stored,
            "out": self.dispatcher.sent,
            "redelivered": self.dispatcher.redelivered,
            "refused": self.refused,
            "malformed": self.malformed,
            "duplicates": self.duplicates,
        }
