"""The store: messages kept for consumers, each confirmed by at most one attempt.

Theory of operation. A store is an outlet of an address, and the feeder of its consumers' links.
What it takes becomes an item on its `Shelf` and is answered at once: for memory, taken is accepted.
As long as consumers have credit and nothing is in the way, an item goes out within the same call;
else it waits until a consumer's credit comes (`on_ready`).

Each time an item goes out is an attempt. The delivery-tag names it: shard, item and attempt, 16
octets. An accept is a claim: the first one of the newest attempt is committed and frees the item,
any other is stale and refused. Where a consumer vanishes, an item that its application has is in
doubt: it waits for that attempt's claim through another link, then the store's policy decides.

Whatever goes back, or sets others free, is only gathered while a batch is scanned; the store's bell
(a port of its own) rings at the batch's end and has it served in order, once. So an item that is
lost with a connection does not go to the next link of the same dying connection.

Python sees no message. What a queue's node has to know (the dead) it finds in `take_exceptions`
when `handler.on_batch(store)` is called.
"""

import cython
from cython.cimports.cogwork.dataplane.chain import clear, is_empty
from cython.cimports.cogwork.dataplane.core import (
    ACCEPTED,
    KEEP,
    LOST,
    MODIFIED,
    RECEIVED,
    REFUSE,
    REJECTED,
    SETTLE,
)
from cython.cimports.cogwork.dataplane.envelope import (
    WANTS_DELAY,
    WANTS_GROUP_ID,
    WANTS_MESSAGE_ID,
    clear_envelope,
    read_envelope,
)
from cython.cimports.cogwork.dataplane.header import HEADER_SIZE_MAX, write_header
from cython.cimports.cogwork.dataplane.octets import store_u32
from cython.cimports.cogwork.dataplane.recent import cogwork_hash
from cython.cimports.cogwork.dataplane.scan import read_modified
from cython.cimports.cogwork.dataplane.stored import (
    ACQUIRED,
    AGES,
    DOUBT,
    EXCLUDED,
    HANDED,
    MARKS,
    OUT,
    PARKED,
    PRESETTLED,
    READY,
    number_of,
)
from cython.cimports.cpython.bytes import (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cython.cimports.libc.stdlib import calloc, free, realloc
from cython.cimports.libc.string import memcpy, memset

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.outcomes import Rejected

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

KEEP_CODE, SETTLE_CODE, STALE_CODE = KEEP, SETTLE, REFUSE
"""What `claim` and `resume` return, as Python names it."""

EXPIRED, REJECTED_BY_CONSUMER, EXCEEDED, IN_DOUBT, DROPPED = (
    "expired",
    "rejected",
    "delivery-count-exceeded",
    "in-doubt",
    "maximum-length",
)
"""Why an item is dead."""

NOWHERE = cython.declare(uint32_t, 0xFFFFFFFF)
SCAN_MAX = cython.declare(uint32_t, 2048)
"""Items that one selective consumer looks at in one go; it goes on with the next tick."""

EXPIRE_MAX = cython.declare(uint32_t, 8192)
"""Items that expire in one tick: what is dead is handed to Python, which must not stall."""

COMMITS = cython.declare(uint32_t, 65536)
"""Remembered commits: about what a queue's clients can have on their way at once."""

_POLICIES = ("block", "drop-oldest", "reject")
_STATES = ("ready", "waiting-for-group", "delayed", "returned", "out", "in-doubt")


def _rejection(condition, description):
    error = AmqpError(condition=condition, description=description)
    return codec.encode(Rejected(error=error).to_described())


FULL_STATE = cython.declare(
    bytes, _rejection(Condition.RESOURCE_LIMIT_EXCEEDED, "the queue is full")
)
MALFORMED_STATE = cython.declare(
    bytes, _rejection(Condition.DECODE_ERROR, "the message's sections are malformed")
)


class Consumer:
    """One link that a store feeds, and what is out at it."""

    def __cinit__(self):
        clear(cython.address(self.hands.out))
        clear(cython.address(self.hands.held))
        clear(cython.address(self.hands.wanting))
        self.hands.owner = cython.cast(cython.p_void, self)
        self.resumed = []


class Store(Terminus):
    """A queue's messages in memory, and their way to consumers.

    Attributes:
        shelf: Where the items stand.
        shard: This store's number among those of its queue; the first part of every tag.
        handler: Its `on_batch(store)` is called after a batch in which items died.
        inlet: The address whose held messages go on when there is room again.
        ttl_s: The longest an item lives; 0 leaves it to the message.
        maximum_length: Items held at most; 0 for no bound.
        maximum_bytes: Bytes held at most; 0 for no bound.
        maximum_delivery_count: Failed attempts after which an item is dead; 0 tries for ever.
        in_doubt_timeout_s: How long an item in doubt waits for its claim.
        redelivers_doubtful: Whether it is then delivered again, marked; else it is parked.
        keeps_dead: Whether the dead are handed to the handler, and what is parked with them; else
            the dead are only counted, and what is parked stays in doubt.
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
        self.core = core
        self.shard = shard
        self.shelf = Shelf()
        self.deadlines = TimerHeap()
        self.consumers = {}
        self.browsers = []
        self.departed = []
        self.exceptions = []
        self.exclusions = {}
        self.in_doubt_timeout_s = 30.0
        self.wants = 0
        if delays:
            self.wants |= WANTS_DELAY
        if is_ordered:
            self.wants |= WANTS_GROUP_ID
        if deduplication_window_s > 0:
            self.wants |= WANTS_MESSAGE_ID
            self.recent = RecentIds(deduplication_window_s, deduplication_count)
        self._set_levels(priorities)
        self.core.register(self)
        self.bell = Port(core, self)

    def __dealloc__(self):
        free(self.scratch)
        free(self.commits)

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

    def close(self) -> None:
        """Takes the store out of use; what it held is gone with it."""
        for link in list(self.consumers):
            self.remove_consumer(link)
        self.bell.close()
        self.bell = None
        self.core.unregister(self)

    def ring(self):
        if self.bell is not None:
            self.bell.mark_dirty()
        return 0

    def now(self):
        return max(self.core.now, self.ticked_s)

    # -- taking messages in

    def is_full(self):
        if self.maximum_length and self.shelf.depth >= self.maximum_length:
            return True
        return self.maximum_bytes != 0 and self.shelf.size_bytes >= self.maximum_bytes

    def is_ready(self):
        if self.full_policy == FULL_BLOCKS and self.is_full():
            self.has_refused = True
            return False
        return self.bell is not None

    def outstanding(self):
        return self.shelf.depth

    def take(self, s):
        if self.receive(s):
            return self.reply(s, ACCEPTED, None)
        return 0

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
        verdict.code = ACCEPTED
        verdict.state = cython.NULL
        verdict.state_size = 0
        verdict.settled = True
        return source.resolve_run(token, count, cython.address(verdict))

    def receive(self, s):
        """Takes a message in; returns 1 where it is accepted, 0 where it was rejected."""
        e: Envelope
        if s.format != 0:
            # Not a message of AMQP 1.0 §3.2: nothing in it says how to keep it.
            clear_envelope(cython.address(e))
        elif read_envelope(s.data, s.size, self.wants, cython.address(e)) < 0:
            self.malformed += 1
            return self.reply(s, REJECTED, MALFORMED_STATE)
        if e.message_id != cython.NULL and self.recent.saw(
            e.message_id, e.message_id_size, self.now()
        ):
            self.duplicates += 1
            return 1
        if self.full_policy != FULL_BLOCKS and self.is_full():
            if self.full_policy == FULL_REJECTS:
                self.refused += 1
                return self.reply(s, REJECTED, FULL_STATE)
            if not self.make_room():
                self.dropped += 1
                self.mourn(DROPPED, s.data, s.size, None, 0)
                return 1
        if e.message_id != cython.NULL:
            self.recent.remember(self.now())
        self.admit(s, cython.address(e))
        return 1

    def reply(self, s, code, state):
        verdict: Verdict
        if s.settled:
            return 0
        verdict.code = code
        verdict.state = cython.NULL
        verdict.state_size = 0
        verdict.settled = True
        if state is not None:
            verdict.state = cython.cast(octets, PyBytes_AS_STRING(state))
            verdict.state_size = cython.cast(uint32_t, PyBytes_GET_SIZE(state))
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def admit(self, s, e):
        """Makes an item of a message, and offers it to the consumers."""
        item: cython.pointer(Item) = self.shelf.make(s.data, s.size)
        item.format = s.format
        item.origin = s.origin
        item.priority = self.levels[e.header.priority]
        item.stored_s = self.now()
        if e.group_id_size:
            item.group_key = cogwork_hash(e.group_id, e.group_id_size) | 1
        if e.header.has_ttl:
            item.flags |= AGES
        self.stored += 1
        self.place(item, e)
        if self.active or self.browsers:
            self.offer(item)
        return 0

    def place(self, item, e):
        """Puts a new item in its place, or aside until its time comes."""
        now_s: cython.double = item.stored_s
        ttl_s: cython.double = self.ttl_s
        due_s: cython.double = 0.0
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

    def make_room(self):
        """Drops the oldest ready items of the lowest priority until one more fits.

        Returns 1 where it does, or where only consumers keep it from that: what is out at them is
        bounded by their credit. Returns 0 where items that wait for something else fill the store.
        """
        item: cython.pointer(Item)
        while self.is_full():
            self.shelf.restore()
            item = self.shelf.ready.oldest()
            if item == cython.NULL:
                return self.shelf.depth == self.shelf.out_count
            self.dropped += 1
            self.bury(item, DROPPED, None)
        return 1

    def put(self, message: bytes) -> bool:
        """Puts a message back that was taken out; False where the store is full and blocks.

        It is no duplicate, whatever is remembered of its message-id.
        """
        s: Shipment
        wants: cython.int = self.wants
        memset(cython.address(s), 0, cython.sizeof(Shipment))
        if not self.is_ready():
            return False
        s.data = cython.cast(octets, PyBytes_AS_STRING(message))
        s.size = cython.cast(uint32_t, PyBytes_GET_SIZE(message))
        s.settled = True
        s.source_index = s.via_index = NOWHERE
        self.wants &= ~WANTS_MESSAGE_ID
        try:
            self.take(cython.address(s))
        finally:
            self.wants = wants
        return True

    # -- consumers

    def add_consumer(self, link, marks_received: bool = False, is_browser: bool = False) -> None:
        """Feeds a link from now on.

        Args:
            link: With its selector set, where it has one.
            marks_received: Whether its client says `received` for what its application has.
            is_browser: Whether it gets copies and leaves the items where they are.
        """
        consumer: Consumer = Consumer()
        consumer.link = link
        consumer.marks_received = marks_received
        consumer.is_browser = is_browser
        consumer.is_selective = consumer.link.selector is not None or consumer.link.no_local
        self.next_serial += 1
        consumer.serial = self.next_serial
        consumer.cursor.rewinds = not is_browser
        if is_browser or consumer.is_selective:
            self.shelf.ready.add_cursor(cython.address(consumer.cursor))
        if is_browser:
            self.browsers.append(consumer)
        self.consumers[link] = consumer
        consumer.link.feeder = self
        if consumer.link.credit:
            self.on_ready(consumer.link)

    def remove_consumer(self, link) -> None:
        """Feeds a link no more; what is out at it stays so until it is settled or detached."""
        consumer: Consumer = self.consumers.pop(link, None)
        if consumer is None:
            return
        if consumer.link.feeder is self:
            consumer.link.feeder = None
        self.rest(consumer)
        self.shelf.groups.abandon(cython.address(consumer.hands))
        self.shelf.ready.remove_cursor(cython.address(consumer.cursor))
        if consumer.is_browser:
            self.browsers.remove(consumer)
        # While an item is out its node is linked with the consumer's: keep that in memory.
        self.departed.append(consumer)
        self.ring()

    def consumer_of(self, link):
        return self.consumers.get(link)

    def activate(self, consumer):
        """Gives a consumer the last place in the round."""
        if consumer.is_active:
            return 0
        consumer.is_active = True
        self.active += 1
        if self.turn is None:
            consumer.next = consumer.prev = self.turn = consumer
            return 0
        consumer.next = self.turn
        consumer.prev = self.turn.prev
        consumer.prev.next = consumer
        self.turn.prev = consumer
        return 0

    def rest(self, consumer):
        """Takes a consumer out of the round until it is ready again."""
        if not consumer.is_active:
            return 0
        consumer.is_active = False
        self.active -= 1
        if self.turn is consumer:
            self.turn = consumer.next if self.active else None
        consumer.prev.next = consumer.next
        consumer.next.prev = consumer.prev
        consumer.next = consumer.prev = None
        return 0

    def on_ready(self, link):
        consumer: Consumer = self.consumer_of(link)
        if consumer is None:
            return 0
        self.shelf.restore()
        if consumer.is_browser:
            return self.browse(consumer)
        if consumer.resumed:
            self.resend(consumer)
        if link.is_ready():
            self.activate(consumer)
            return self.serve_one(consumer)
        return 0

    # -- choosing who gets what

    def offer(self, item):
        """Gives a new item to the next consumer in the round that takes it."""
        consumer: Consumer
        tried: uint32_t = 0
        if self.browsers:
            for consumer in list(self.browsers):
                self.browse(consumer)
        if self.shelf.is_stirred():
            return self.ring()
        if item.state == PARKED:
            if item.group.holder != cython.NULL:
                self.serve_one(cython.cast(Consumer, item.group.holder.owner))
            return 0
        if item.state != READY:
            return 0
        while tried < self.active:
            consumer = self.turn
            if not consumer.link.is_ready():
                self.rest(consumer)
                continue
            self.turn = consumer.next
            if self.suits(item, consumer):
                return self.deliver(item, consumer)
            if self.shelf.ready.next_unseen(cython.address(consumer.cursor)) == item:
                self.shelf.ready.saw(cython.address(consumer.cursor), item)
            tried += 1
        return 0

    def serve(self):
        """Gives what is ready to the consumers in turn, until none of them can take any."""
        consumer: Consumer
        item: cython.pointer(Item)
        idle: uint32_t = 0
        self.shelf.restore()
        for consumer in list(self.browsers):
            self.browse(consumer)
        while idle < self.active:
            consumer = self.turn
            if not consumer.link.is_ready():
                self.rest(consumer)
                continue
            self.turn = consumer.next
            item = self.next_for(consumer)
            if item == cython.NULL:
                idle += 1
                continue
            idle = 0
            self.deliver(item, consumer)
        return 0

    def serve_one(self, consumer):
        """Gives one consumer what it can take."""
        item: cython.pointer(Item)
        while consumer.is_active and consumer.link.is_ready():
            item = self.next_for(consumer)
            if item == cython.NULL:
                break
            self.deliver(item, consumer)
        return 0

    def next_for(self, consumer):
        """Finds the item that a consumer is to get next; NULL where there is none for it."""
        item: cython.pointer(Item) = cython.NULL
        while True:
            if not is_empty(cython.address(consumer.hands.wanting)):
                item = self.next_parked(consumer)
            if item == cython.NULL and consumer.is_selective:
                item = self.next_by_cursor(consumer)
            elif item == cython.NULL:
                item = self.shelf.ready.front()
                while item != cython.NULL and not self.suits(item, consumer):
                    item = self.shelf.ready.after(item)
            if item == cython.NULL or item.expires_s == 0.0 or item.expires_s > self.now():
                return item
            self.expired += 1
            self.bury(item, EXPIRED, None)
            item = cython.NULL

    def next_parked(self, consumer):
        """Finds the next item of a group that only this consumer may get now."""
        node: cython.pointer(Node) = consumer.hands.wanting.next
        item: cython.pointer(Item)
        while node != cython.address(consumer.hands.wanting):
            item = cython.cast(
                cython.pointer(Item), cython.cast(cython.pointer(Group), node).parked.next
            )
            if self.suits(item, consumer):
                return item
            node = node.next
        return cython.NULL

    def next_by_cursor(self, consumer):
        left: uint32_t = SCAN_MAX
        item: cython.pointer(Item) = self.shelf.ready.next_unseen(cython.address(consumer.cursor))
        while item != cython.NULL:
            if self.suits(item, consumer):
                return item
            self.shelf.ready.saw(cython.address(consumer.cursor), item)
            left -= 1
            if left == 0:
                self.is_unfinished = True
                return cython.NULL
            item = self.shelf.ready.next_unseen(cython.address(consumer.cursor))
        return cython.NULL

    def suits(self, item, consumer):
        """Says whether a consumer may have an item, and wants it."""
        s: Shipment
        if item.flags & EXCLUDED and consumer.serial in self.exclusions[number_of(item)]:
            return False
        if not consumer.is_selective:
            return True
        self.describe(item, cython.address(s))
        return not consumer.link.refuses(cython.address(s))

    def exclude(self, item):
        """Keeps an item from the consumer that it comes from (AMQP 1.0 §3.4.5)."""
        item.flags |= EXCLUDED
        self.exclusions.setdefault(number_of(item), set()).add(item.consumer)
        return 0

    # -- sending

    def describe(self, item, s):
        s.data = item.data
        s.size = item.size
        s.format = item.format
        s.settled = False
        s.source_index = NOWHERE
        s.source_generation = 0
        s.token = 0
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = item.origin
        s.via_index = NOWHERE
        s.via_generation = 0

    def deliver(self, item, consumer):
        """Sends an item as a new attempt. The item may be gone when this returns."""
        s: Shipment
        self.shelf.hand_out(item, cython.address(consumer.hands))
        item.attempt += 1
        item.consumer = consumer.serial
        self.describe(item, cython.address(s))
        if item.flags & (ACQUIRED | AGES):
            self.refresh(item, cython.address(s))
        if item.attempt > 1:
            self.redelivered += 1
        item.flags &= ~(HANDED | MARKS | PRESETTLED)
        item.flags |= ACQUIRED
        if consumer.marks_received:
            item.flags |= MARKS
        if consumer.link.presettles:
            item.flags |= PRESETTLED
        return self.ship(item, consumer, cython.address(s))

    def ship(self, item, consumer, s):
        """Sends an item's newest attempt, under its tag."""
        tag: uint8_t[16]
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = self.shelf.slots.stamp(item)
        s.tag = tag
        s.tag_size = 16
        store_u32(tag, self.shard)
        store_u32(tag + 4, item.birth)
        store_u32(tag + 8, item.slot)
        store_u32(tag + 12, item.attempt)
        self.sent += 1
        return consumer.link.take(s)

    def resend(self, consumer):
        """Sends attempts that a consumer has from an earlier link, so that it can settle them."""
        s: Shipment
        item: cython.pointer(Item)
        while consumer.resumed and consumer.link.is_ready():
            item = self.shelf.slots.find(consumer.resumed.pop(0))
            if item == cython.NULL or item.state != OUT or item.consumer != consumer.serial:
                continue
            self.describe(item, cython.address(s))
            self.refresh(item, cython.address(s))
            self.ship(item, consumer, cython.address(s))
        return 0

    def browse(self, browser):
        """Sends copies of what a browser has not seen."""
        s: Shipment
        left: uint32_t = SCAN_MAX
        item: cython.pointer(Item)
        while browser.link.is_ready():
            item = self.shelf.ready.next_unseen(cython.address(browser.cursor))
            if item == cython.NULL:
                return 0
            if left == 0:
                self.is_unfinished = True
                return 0
            self.shelf.ready.saw(cython.address(browser.cursor), item)
            left -= 1
            if not self.suits(item, browser):
                continue
            self.describe(item, cython.address(s))
            if item.flags & (ACQUIRED | AGES):
                self.refresh(item, cython.address(s))
            browser.link.take(cython.address(s))
        return 0

    def refresh(self, item, s):
        """Gives a message the header that it has by now: attempts counted, ttl shortened."""
        e: Envelope
        grown: cython.pointer(uint8_t)
        header_size: uint32_t
        age_ms: cython.double = (self.now() - item.stored_s) * 1000.0
        if item.format != 0 or (not item.flags & ACQUIRED and age_ms < 1.0):
            return 0
        if self.scratch_size < item.size + HEADER_SIZE_MAX:
            grown = cython.cast(
                cython.pointer(uint8_t), realloc(self.scratch, item.size + HEADER_SIZE_MAX)
            )
            if grown == cython.NULL:
                raise MemoryError("no room for a message with a new header")
            self.scratch = grown
            self.scratch_size = item.size + HEADER_SIZE_MAX
        read_envelope(item.data, item.size, 0, cython.address(e))
        e.header.delivery_count += item.failures
        e.header.first_acquirer = item.flags & ACQUIRED == 0
        if e.header.has_ttl:
            if age_ms < e.header.ttl_ms:
                e.header.ttl_ms -= cython.cast(uint32_t, age_ms)
            else:
                e.header.ttl_ms = 0
        header_size = write_header(self.scratch, cython.address(e.header))
        memcpy(
            self.scratch + header_size,
            item.data + e.header.size_bytes,
            item.size - e.header.size_bytes,
        )
        s.data = self.scratch
        s.size = header_size + item.size - e.header.size_bytes
        return 0

    # -- what consumers say

    def resolve_outcome(self, token, verdict):
        item: cython.pointer(Item) = self.shelf.slots.current(token)
        if item == cython.NULL:
            return self.stale(verdict)
        return self.conclude(item, verdict)

    def stale(self, verdict):
        if verdict.code != ACCEPTED:
            return SETTLE
        self.stale_claims += 1
        return REFUSE

    def conclude(self, item, verdict):
        """Applies what was said of an item's newest attempt (AMQP 1.0 §3.4)."""
        if verdict.code == ACCEPTED:
            return self.commit(item)
        if verdict.code == RECEIVED and not verdict.settled:
            item.flags |= HANDED
            return KEEP
        if verdict.code == MODIFIED:
            self.modify(item, verdict)
        elif verdict.code == REJECTED:
            self.rejected += 1
            error: bytes = None
            if verdict.state != cython.NULL:
                error = PyBytes_FromStringAndSize(
                    cython.cast(cython.p_char, verdict.state), verdict.state_size
                )
            self.bury(item, REJECTED_BY_CONSUMER, error)
        elif verdict.code == LOST:
            self.lose(item)
        else:
            self.released += 1
            self.give_back(item)
        return SETTLE

    def commit(self, item):
        """Confirms a claim: the item is done with."""
        self.accepted += 1
        if item.flags & (HANDED | MARKS):
            if self.commits == cython.NULL:
                self.commits = cython.cast(
                    cython.pointer(Commit), calloc(COMMITS, cython.sizeof(Commit))
                )
                if self.commits == cython.NULL:
                    raise MemoryError("no room to remember commits")
            self.commits[self.commit_at].number = number_of(item)
            self.commits[self.commit_at].attempt = item.attempt
            self.commit_at = (self.commit_at + 1) & (COMMITS - 1)
        self.forget(item)
        return SETTLE

    def was_committed(self, number, attempt):
        at: uint32_t = self.commit_at
        left: uint32_t = COMMITS if self.commits != cython.NULL and attempt else 0
        while left > 0:
            left -= 1
            at = (at - 1) & (COMMITS - 1)
            if self.commits[at].number == number and self.commits[at].attempt == attempt:
                return True
        return False

    def modify(self, item, verdict):
        failed: cython.bint = False
        undeliverable: cython.bint = False
        self.modified += 1
        read_modified(
            verdict.state,
            verdict.state_size,
            cython.address(failed),
            cython.address(undeliverable),
        )
        if undeliverable:
            self.exclude(item)
        return self.fail(item) if failed else self.give_back(item)

    def fail(self, item):
        """Counts a failed attempt, and tries again unless it was the last."""
        item.failures += 1
        if self.maximum_delivery_count and item.failures >= self.maximum_delivery_count:
            self.exceeded += 1
            return self.bury(item, EXCEEDED, None)
        return self.give_back(item)

    def give_back(self, item):
        """Puts an item that is out or in doubt back in its old place, unless it is too old."""
        if item.expires_s != 0.0 and item.expires_s <= self.now():
            self.expired += 1
            return self.bury(item, EXPIRED, None)
        self.shelf.give_back(item)
        return self.ring()

    def bury(self, item, reason, error):
        """Forgets an item that will not be delivered, and keeps it for the handler."""
        self.mourn(reason, item.data, item.size, error, item.failures)
        return self.forget(item)

    def mourn(self, reason, data, size, error, failures):
        if self.keeps_dead:
            message = PyBytes_FromStringAndSize(cython.cast(cython.p_char, data), size)
            self.exceptions.append((reason, message, error, failures))
            self.ring()
        return 0

    def forget(self, item):
        if item.flags & EXCLUDED:
            del self.exclusions[number_of(item)]
        self.shelf.drop(item)
        if self.has_refused or self.shelf.is_stirred():
            self.ring()
        return 0

    # -- consumers that vanished

    def lose(self, item):
        """Sets aside an item that its consumer's application may have; gives back any other."""
        if item.flags & (MARKS | PRESETTLED) and not item.flags & HANDED:
            return self.give_back(item)
        self.doubted += 1
        self.shelf.doubt(item)
        item.due_s = self.now() + self.in_doubt_timeout_s
        if self.in_doubt_timeout_s <= 0.0:
            return self.end_doubt(item)
        self.deadlines.push(item.due_s, number_of(item))
        return 0

    def end_doubt(self, item):
        """Decides over an item for which no claim has come."""
        if self.redelivers_doubtful:
            return self.fail(item)
        self.parked += 1
        # With nowhere to park it the item stays in doubt: it may be claimed yet, and is not lost.
        return self.bury(item, IN_DOUBT, None) if self.keeps_dead else 0

    def redeliver_doubtful(self) -> int:
        """Delivers everything in doubt again, marked, whatever the policy; returns how many."""
        count: uint32_t = self.shelf.doubt_count
        slot: uint32_t = 0
        item: cython.pointer(Item)
        while True:
            item = self.shelf.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                return count
            if item.state == DOUBT:
                self.fail(item)

    def sweep_departed(self):
        """Loses what is still out at links that have gone, and was not answered for by them."""
        departed: list = self.departed
        consumer: Consumer
        node: cython.pointer(Node)
        if not departed:
            return 0
        self.departed = []
        for consumer in departed:
            node = consumer.hands.out.next
            while consumer.link.detached and node != cython.address(consumer.hands.out):
                self.lose(cython.cast(cython.pointer(Item), node))
                node = consumer.hands.out.next
            if not is_empty(cython.address(consumer.hands.out)):
                self.departed.append(consumer)
        return 0

    def resume(self, link, tags: list) -> list:
        """Gives a consumer that came back the attempts that it still has.

        They are sent again on its link, under the same tags, as soon as it gives credit.

        Args:
            link: One of this store's consumers.
            tags: Delivery-tags that its client holds unsettled.

        Returns:
            For each tag KEEP_CODE where that attempt goes on, SETTLE_CODE where its claim was
            confirmed, STALE_CODE where it has been overtaken or never was.
        """
        consumer: Consumer = self.consumers[link]
        answers: list = []
        for tag in tags:
            if len(tag) != 16 or int.from_bytes(tag[:4], "big") != self.shard:
                answers.append(REFUSE)
                continue
            answers.append(
                self.resume_one(
                    consumer, int.from_bytes(tag[4:12], "big"), int.from_bytes(tag[12:], "big")
                )
            )
        return answers

    def resume_one(self, consumer, number, attempt):
        item: cython.pointer(Item) = self.shelf.slots.find(number)
        if (
            item == cython.NULL
            or (item.state != DOUBT and item.state != OUT)
            or item.attempt != attempt
        ):
            return SETTLE if self.was_committed(number, attempt) else REFUSE
        # A new stamp: what the old link may still say of this item finds nothing.
        self.shelf.slots.stamp(item)
        self.shelf.rebind(item, cython.address(consumer.hands))
        item.consumer = consumer.serial
        item.flags |= HANDED
        consumer.resumed.append(number)
        return KEEP

    def claim(self, item: int, attempt: int, code: int = 0x24, state: bytes = None) -> int:
        """Applies an outcome that came by an item's tag instead of over its link.

        Args:
            item: The tag's second part.
            attempt: The tag's third part.
            code: The outcome's descriptor code; accepted where none is given.
            state: The outcome encoded, where it says more than its code.

        Returns:
            SETTLE_CODE, or STALE_CODE where the claim comes too late. A claim that was confirmed
            before is confirmed again, for as long as that is remembered.
        """
        verdict: Verdict
        found: cython.pointer(Item) = self.shelf.slots.find(item)
        verdict.code = code
        verdict.state = cython.NULL
        verdict.state_size = 0
        verdict.settled = True
        if state is not None:
            verdict.state = cython.cast(octets, PyBytes_AS_STRING(state))
            verdict.state_size = cython.cast(uint32_t, PyBytes_GET_SIZE(state))
        if (
            found == cython.NULL
            or (found.state != DOUBT and found.state != OUT)
            or found.attempt != attempt
        ):
            if code == ACCEPTED and self.was_committed(item, attempt):
                return SETTLE
            self.stale(cython.address(verdict))
            return REFUSE
        found.flags |= HANDED
        return self.conclude(found, cython.address(verdict))

    # -- time and the end of a batch

    def tick(self, now_s: float) -> None:
        """Lets time pass: expires, delivers what was delayed, decides over what is in doubt.

        Args:
            now_s: The monotonic clock. What is to be sent goes out with the next flush.
        """
        timer: Timer
        item: cython.pointer(Item)
        self.ticked_s = now_s
        self.shelf.restore()
        self.expire(now_s)
        while self.deadlines.pop_due(now_s, cython.address(timer)):
            item = self.shelf.slots.find(timer.number)
            if item != cython.NULL and item.state == DOUBT and item.due_s == timer.due_s:
                self.end_doubt(item)
        if self.shelf.ripen(now_s) or self.is_unfinished or self.departed:
            self.is_unfinished = False
            self.ring()

    def expire(self, now_s):
        left: uint32_t = EXPIRE_MAX
        item: cython.pointer(Item)
        while left > 0:
            item = self.shelf.pop_expired(now_s)
            if item == cython.NULL:
                return 0
            left -= 1
            self.expired += 1
            self.bury(item, EXPIRED, None)
        return 0

    def on_batch(self, port) -> None:
        """Serves what was gathered in a batch; called by the core when the bell has rung."""
        self.sweep_departed()
        self.serve()
        if self.has_refused and not self.is_full():
            self.has_refused = False
            if self.inlet is not None:
                self.inlet.serve_held()
        if self.exceptions and self.handler is not None:
            self.handler.on_batch(self)

    def take_exceptions(self) -> list:
        """Hands over what died since the last call.

        Returns:
            For each item `(reason, message, error, failures)`: why, the message as it was stored,
            the outcome of who rejected it, and how often an attempt had failed.
        """
        taken: list = self.exceptions
        self.exceptions = []
        return taken

    # -- for people and for management

    @property
    def depth(self) -> int:
        """Counts all items."""
        return self.shelf.depth

    def counts(self) -> dict:
        """Counts the items by where they stand, and what has happened so far."""
        shelf: Shelf = self.shelf
        return {
            "depth": shelf.depth,
            "bytes": shelf.size_bytes,
            "ready": shelf.ready.count + shelf.returned_count,
            "waiting-for-group": shelf.groups.parked_count,
            "delayed": shelf.delayed_count,
            "unsettled": shelf.out_count,
            "in-doubt": shelf.doubt_count,
            "groups": shelf.groups.count,
            "consumers": len(self.consumers),
            "in": self.stored,
            "out": self.sent,
            "accepted": self.accepted,
            "released": self.released,
            "modified": self.modified,
            "rejected": self.rejected,
            "redelivered": self.redelivered,
            "expired": self.expired,
            "delivery-count-exceeded": self.exceeded,
            "doubted": self.doubted,
            "doubts-parked": self.parked,
            "dropped": self.dropped,
            "refused": self.refused,
            "malformed": self.malformed,
            "duplicates": self.duplicates,
            "stale-claims": self.stale_claims,
            "removed": self.removed,
        }

    def peek(self, count: int, offset: int = 0) -> list:
        """Shows items without touching them: the ready ones in order, then all others.

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
        self.shelf.restore()
        item = self.shelf.ready.front()
        while item != cython.NULL and len(shown) < count:
            if skipped < offset:
                skipped += 1
            else:
                shown.append((self.message_of(item), self._facts(item)))
            item = self.shelf.ready.after(item)
        while len(shown) < count:
            item = self.shelf.slots.next_item(cython.address(slot))
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
        self.describe(item, cython.address(s))
        if item.flags & (ACQUIRED | AGES):
            self.refresh(item, cython.address(s))
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, s.data), s.size)

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

    def take_ready(self, count: int) -> list:
        """Takes ready items out, to be moved elsewhere; returns their messages in order."""
        taken: list = []
        item: cython.pointer(Item)
        self.shelf.restore()
        while len(taken) < count:
            item = self.shelf.ready.front()
            if item == cython.NULL:
                if not self.shelf.is_stirred():
                    break
                self.shelf.restore()
                continue
            taken.append(self.message_of(item))
            self.removed += 1
            self.forget(item)
        return taken

    def purge(self, count_max: int = 0xFFFFFFFF) -> int:
        """Forgets items that are not out at a consumer; returns how many.

        Args:
            count_max: How many at most, so that others get their turn.
        """
        count: uint64_t = 0
        most: uint64_t = count_max
        slot: uint32_t = 0
        item: cython.pointer(Item)
        self.shelf.restore()
        while count < most:
            item = self.shelf.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                break
            if item.state != OUT and item.state != DOUBT:
                self.forget(item)
                count += 1
        self.removed += count
        return count
