"""Who gets what: a store's consumers, and the items on their way to them.

Theory of operation. As long as consumers have credit and nothing is in the way, a new item goes out
within the same call, to the next one in the round that takes it; else items wait until a consumer's
credit comes. A selective consumer has a cursor, so that it looks at each item once; a browser gets
copies. The delivery-tag names the attempt: shard, item and attempt, 16 octets.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import store_u32
from cython.cimports.cogwork.dataplane.queue.chain import is_empty
from cython.cimports.cogwork.dataplane.queue.packer import describe
from cython.cimports.cogwork.dataplane.queue.pages import AHEAD
from cython.cimports.cogwork.dataplane.queue.state import ATTEMPTS_AHEAD, is_beyond, is_shut, pack
from cython.cimports.cogwork.dataplane.queue.stored import (
    ACQUIRED,
    EXCLUDED,
    HANDED,
    LEASED,
    MARKS,
    OUT,
    PAGED,
    PARKED,
    PRESETTLED,
    READY,
    number_of,
)
from cython.cimports.cogwork.dataplane.terminus import KEEP
from cython.cimports.cogwork.dataplane.transport.consumer_end import must_wait
from cython.cimports.cogwork.dataplane.transport.shipment import ACQUIRED_BEFORE

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SCAN_MAX = cython.declare(uint32_t, 2048)
"""Items that one selective consumer looks at in one go; it goes on in a later turn."""


class Dispatcher:
    """Feeds the links of a store's consumers from its items."""

    def __init__(self, settlement: Settlement, shard: uint32_t):
        """Feed nobody.

        Args:
            settlement: The store, to which the consumers answer.
            shard: Its number among the stores of its queue.
        """
        self.settlement = settlement
        self.items = settlement.items
        self.ready = settlement.items.ready
        self.shard = shard
        self.consumers = {}
        self.browsers = []
        self.departed = []
        self.by_serial = {}
        self.kept = {}
        self.round = Round()
        self.far = Round()

    # -- consumers come and go

    def add(self, link, marks_received, is_browser, is_far):
        """Feed a link from now on; one that is far only with what no other can take."""
        consumer: Consumer = Consumer()
        consumer.link = link
        consumer.marks_received = marks_received
        consumer.is_browser = is_browser
        consumer.is_far = is_far
        consumer.round = self.round_for(link, is_far)
        consumer.is_selective = link.selector is not None or link.no_local
        self.next_serial += 1
        consumer.serial = self.next_serial
        consumer.cursor.rewinds = not is_browser
        if is_browser or consumer.is_selective:
            self.ready.add_cursor(cython.address(consumer.cursor))
        if is_browser:
            self.browsers.append(consumer)
        self.consumers[link] = consumer
        self.by_serial[consumer.serial] = consumer
        link.feeder = self.settlement
        link.keeps_format = is_far
        if link.credit:
            self.on_ready(link)
        return 0

    def remove(self, link):
        """Feed a link no more; what is out at it stays so until it is settled or detached."""
        consumer: Consumer = self._take_out(link)
        if consumer is None:
            return 0
        # While an item is out its node is linked with the consumer's: keep that in memory.
        self.departed.append(consumer)
        return self.settlement.schedule()

    def end(self, link, verdict, is_named):
        """Feed a link no more that ended in order, and apply its default outcome."""
        consumer: Consumer = self._take_out(link)
        return 0 if consumer is None else self._end_attempts(consumer, verdict, is_named)

    def keep(self, link):
        """Feed a link no more that is left to be resumed; what is out at it stays so.

        Returns the number by which `end_kept` knows it; 0 where nothing is out at it.
        """
        consumer: Consumer = self._take_out(link)
        if consumer is None:
            return 0
        if is_empty(cython.address(consumer.state.in_flight)):
            self.by_serial.pop(consumer.serial, None)
            return 0
        self.kept[consumer.serial] = consumer
        return consumer.serial

    def end_kept(self, serial, verdict, is_named):
        """Wait no longer for a link to be resumed; NULL has what was out at it lost."""
        consumer: Consumer = self.kept.pop(serial, None)
        if consumer is None:
            return 0
        if verdict != cython.NULL:
            return self._end_attempts(consumer, verdict, is_named)
        self.departed.append(consumer)
        return self.settlement.schedule()

    def _end_attempts(self, consumer, verdict, is_named):
        """Apply a default outcome to all that is out at a consumer."""
        node: cython.pointer(Node) = consumer.state.in_flight.next
        while node != cython.address(consumer.state.in_flight):
            self.settlement.end_attempt(cython.cast(cython.pointer(Item), node), verdict, is_named)
            node = consumer.state.in_flight.next
        self.by_serial.pop(consumer.serial, None)
        return self.settlement.schedule()

    def _take_out(self, link):
        """Feed a link no more; returns its consumer, None where it has none."""
        consumer: Consumer = self.consumers.pop(link, None)
        if consumer is None:
            return None
        if link.feeder is self.settlement:
            link.feeder = None
        consumer.round.leave(consumer)
        self.items.groups.abandon(cython.address(consumer.state))
        self.ready.remove_cursor(cython.address(consumer.cursor))
        if consumer.is_browser:
            self.browsers.remove(consumer)
        return consumer

    def drop_leases(self, link):
        """Treat what is out at another container's consumer as at one of this one's, that goes."""
        consumer: Consumer = self.consumers.get(link)
        return 0 if consumer is None else self._drop_leases(consumer)

    def _drop_leases(self, consumer):
        node: cython.pointer(Node) = consumer.state.in_flight.next
        while node != cython.address(consumer.state.in_flight):
            cython.cast(cython.pointer(Item), node).flags &= ~LEASED
            node = node.next
        return 0

    def holders(self):
        """List the consumers: link, whether it is far, whether anything is out at it."""
        consumer: Consumer
        found: list = []
        for consumer in self.consumers.values():
            is_holding: cython.bint = not is_empty(cython.address(consumer.state.in_flight))
            found.append((consumer.link, consumer.is_far, is_holding))
        return found

    def serial_of(self, link):
        """Return what a consumer is known by also when its link has gone."""
        consumer: Consumer = self.consumers.get(link)
        return 0 if consumer is None else consumer.serial

    def take_back(self, serial):
        """Give back what was sent to another container's consumer, and has not arrived there.

        That consumer has a new link, on which it said what it has: that has been resumed, and what
        else is unseen was on the way when the old link broke.
        """
        consumer: Consumer
        node: cython.pointer(Node) = self.items.in_doubt.next
        item: cython.pointer(Item)
        for consumer in self.departed:
            if consumer.serial == serial:
                self._drop_leases(consumer)
        while node != cython.address(self.items.in_doubt):
            item = cython.cast(cython.pointer(Item), node)
            node = node.next
            if item.consumer == serial and item.flags & LEASED:
                self.settlement.end_lease(item)
        return 0

    def leased_to(self):
        """Return the numbers of those that have gone and for which `take_back` may find items."""
        found: set = {cython.cast(Consumer, each).serial for each in self.departed}
        node: cython.pointer(Node) = self.items.in_doubt.next
        item: cython.pointer(Item)
        while node != cython.address(self.items.in_doubt):
            item = cython.cast(cython.pointer(Item), node)
            node = node.next
            if item.flags & LEASED and not item.flags & HANDED:
                found.add(item.consumer)
        return found

    def sweep_departed(self):
        """Lose what is still out at links that have gone, and was not answered for by them."""
        departed: list = self.departed
        consumer: Consumer
        node: cython.pointer(Node)
        if not departed:
            return 0
        self.departed = []
        for consumer in departed:
            node = consumer.state.in_flight.next
            while consumer.link.detached and node != cython.address(consumer.state.in_flight):
                self.settlement.lose(cython.cast(cython.pointer(Item), node))
                node = consumer.state.in_flight.next
            if not is_empty(cython.address(consumer.state.in_flight)):
                self.departed.append(consumer)
            else:
                self.by_serial.pop(consumer.serial, None)
        return 0

    def hold(self, serial):
        """Hold what is said to a consumer until what happened is durable."""
        consumer: Consumer = self.last_held
        if consumer is None or consumer.serial != serial:
            consumer = self.by_serial.get(serial)
            if consumer is None:
                return self.settlement.core.hold_output()
            self.last_held = consumer
        return consumer.link.hold_output()

    def resume(self, link, number, attempt, is_handed, is_there):
        """Give a consumer an attempt that it has from an earlier link, where that goes on.

        It is sent again, unless it is there on this link. So is one that is ready again and that
        nobody else was given. Returns KEEP, or what the settlement says of an attempt that is over.
        """
        consumer: Consumer = self.consumers[link]
        item: cython.pointer(Item) = self.settlement.in_hand(number, attempt)
        if self.settlement.journal is not None and not self.settlement.delivers_ahead:
            link.hold_output()
        if item == cython.NULL:
            item = self.settlement.given_up(number, attempt)
            if item == cython.NULL:
                if self.settlement.journal is not None:
                    link.hold_output()
                return self.settlement.answer_late(number, attempt)
            self.items.hand_out(item, cython.address(consumer.state))
            if self.settlement.journal is not None:
                self.settlement.journal.out(item)
        # A new stamp: what the old link may still say of this item finds nothing.
        self.items.slots.stamp(item)
        self.items.rebind(item, cython.address(consumer.state))
        item.consumer = consumer.serial
        item.flags &= ~MARKS
        if consumer.marks_received:
            item.flags |= MARKS
        if is_handed or not consumer.is_far:
            # Another container may also ask for what its consumer's application has not seen.
            item.flags |= HANDED
        if not is_there:
            consumer.resumed.append(number)
        return KEEP

    def on_ready(self, link):
        """Give a consumer what it has new credit for."""
        consumer: Consumer = self.consumers.get(link)
        if consumer is None:
            return 0
        if is_shut(self.settlement):
            return 0
        self.items.restore()
        if self.settlement.drops_head and is_beyond(self.settlement):
            self.settlement.drop_beyond()
        if consumer.is_browser:
            return self.browse(consumer)
        if consumer.resumed:
            self.resend(consumer)
        if link.is_ready():
            consumer.round.enter(consumer)
            return self.serve_one(consumer) if self.ranked is None else self.serve()
        return 0

    # -- choosing who gets what

    def offer(self, item):
        """Give a new item to the next consumer in the round that takes it."""
        consumer: Consumer
        if self.browsers:
            for consumer in list(self.browsers):
                self.browse(consumer)
        if self.round.count == 0 and self.far.count == 0 and self.ranked is None:
            return 0
        if self.items.is_stirred() or is_shut(self.settlement):
            return self.settlement.schedule()
        if self.items.pages.count:  # what lies on disk comes first, or a level above it does
            return self.settlement.schedule()
        if item.state == PARKED:
            if item.group.holder != cython.NULL:
                self.serve_one(cython.cast(Consumer, item.group.holder.owner))
            return 0
        if item.state != READY:
            return 0
        if self.ranked is not None:
            return self._offer_by_rank(item)
        if not self._offer_to(self.round, item):
            self._offer_to(self.far, item)
        return 0

    def _offer_by_rank(self, item):
        """Give a new item to a consumer of the highest priority at which one takes it."""
        round: Round
        for round in self.ranked:
            if self._offer_to(round, item):
                return 0
        self._offer_to(self.far, item)
        return 0

    def round_for(self, link, is_far):
        """Return the round that a consumer has its turns in."""
        round: Round
        if is_far and self.far is not self.round:
            return self.far
        if link.priority == 0:
            return self.round
        for round in self.ranked or ():
            if round.priority == link.priority:
                return round
        round = Round(link.priority)
        self._rank(round)
        return round

    def _rank(self, added):
        """Put a round among the others, and leave out those that nobody is in any more."""
        consumer: Consumer
        used: set = {self.round, added}
        for consumer in self.consumers.values():
            used.add(consumer.round)
        if self.far is not self.round:
            used.discard(self.far)
        self.ranked = sorted(used, key=_descending)
        return 0

    def _offer_to(self, round, item):
        """Give a new item to the next consumer of a round that takes it; return whether one did."""
        consumer: Consumer
        tried: uint32_t = 0
        while tried < round.count:
            consumer = round.next_ready()
            if consumer is None:
                return 0
            if consumer.is_selective:
                if consumer.link.unscanned:  # it is to get what is before this item first
                    tried += 1
                    continue
                if must_wait(consumer.link):
                    self.settlement.core.postpone(self.settlement.wakeup)
                    return 1
            if self.suits(item, consumer):
                self.deliver(item, consumer)
                return 1
            if (
                consumer.is_selective
                and self.ready.next_unseen(cython.address(consumer.cursor)) == item
            ):
                self.ready.saw(cython.address(consumer.cursor), item)
            tried += 1
        return 0

    def serve(self):
        """Give what is ready to the consumers in turn, until none of them can take any."""
        consumer: Consumer
        round: Round
        if is_shut(self.settlement):
            return 0
        self.items.restore()
        for consumer in list(self.browsers):
            self.browse(consumer)
        if self.ranked is None:
            self._serve_round(self.round)
        else:
            for round in self.ranked:
                self._serve_round(round)
        return self._serve_round(self.far)

    def _serve_round(self, round):
        consumer: Consumer
        item: cython.pointer(Item)
        idle: uint32_t = 0
        while idle < round.count:
            consumer = round.next_ready()
            if consumer is None:
                return 0
            item = self.next_for(consumer)
            if item == cython.NULL:
                idle += 1
                continue
            idle = 0
            self.deliver(item, consumer)
        return 0

    def serve_one(self, consumer):
        """Give one consumer what it can take."""
        item: cython.pointer(Item)
        while consumer.is_active and consumer.link.is_ready():
            item = self.next_for(consumer)
            if item == cython.NULL:
                break
            self.deliver(item, consumer)
        return 0

    def next_for(self, consumer):
        """Find the item that a consumer is to get next; NULL where there is none for it."""
        item: cython.pointer(Item) = cython.NULL
        left: uint32_t
        while True:
            if not is_empty(cython.address(consumer.state.waiting_groups)):
                item = self.next_parked(consumer)
            if item == cython.NULL and consumer.is_selective:
                item = self.next_by_cursor(consumer)
            elif item == cython.NULL:
                left = SCAN_MAX
                item = self.ready.front()
                while item != cython.NULL and left and not self.suits(item, consumer):
                    item = self.ready.after(item)
                    left -= 1
                if left == 0:  # it does not look again and again at all that it has refused
                    consumer.is_selective = True
                    self.ready.add_cursor(cython.address(consumer.cursor))
                    item = self.next_by_cursor(consumer)
            if item != cython.NULL and item.state == PAGED:
                return self.await_page(item)
            if (
                item == cython.NULL
                or item.expires_s == 0.0
                or item.expires_s > self.settlement.now()
            ):
                return item
            self.settlement.expire_one(item)
            item = cython.NULL

    def next_parked(self, consumer):
        """Find the next item of a group that only this consumer may get now."""
        node: cython.pointer(Node) = consumer.state.waiting_groups.next
        item: cython.pointer(Item)
        while node != cython.address(consumer.state.waiting_groups):
            if must_wait(consumer.link):
                self.settlement.core.postpone(consumer.link)
                return cython.NULL
            item = cython.cast(
                cython.pointer(Item), cython.cast(cython.pointer(Group), node).parked.next
            )
            if self.suits(item, consumer):
                return item
            node = node.next
        return cython.NULL

    def next_by_cursor(self, consumer):
        """Find the next item that a consumer wants among those it has not looked at."""
        left: uint32_t = SCAN_MAX
        item: cython.pointer(Item) = self.ready.next_unseen(cython.address(consumer.cursor))
        while item != cython.NULL:
            if left == 0 or must_wait(consumer.link):
                return self.go_on_later(consumer)
            if item.state == PAGED or self.suits(item, consumer):
                return item
            self.ready.saw(cython.address(consumer.cursor), item)
            left -= 1
            item = self.ready.next_unseen(cython.address(consumer.cursor))
        return cython.NULL

    def await_page(self, stand):
        """Have the page fetched that comes next; return NULL: once it is there they are served."""
        self.items.pages.want(stand)
        return cython.NULL

    def go_on_later(self, consumer):
        """Have a consumer look at more items in a later turn, or with the next tick; return NULL."""
        self.is_unfinished = True
        self.settlement.core.postpone(consumer.link)
        return cython.NULL

    def suits(self, item, consumer):
        """Return whether a consumer may have an item, and wants it."""
        s: Shipment
        if item.flags & EXCLUDED and consumer.serial in self.settlement.exclusions[number_of(item)]:
            return False
        if not consumer.is_selective or item.state == PAGED:
            return True
        describe(item, cython.address(s))
        return not consumer.link.refuses(cython.address(s))

    # -- sending

    def deliver(self, item, consumer):
        """Send an item as a new attempt. The item may be gone when this returns."""
        s: Shipment
        self.items.hand_out(item, cython.address(consumer.state))
        if self.items.pages.count and self.ready.pages_ahead < AHEAD:
            self.items.pages.top_up()
        is_first: cython.bint = item.attempt == 0
        item.attempt = max(item.attempt, self.settlement.attempt_base) + 1
        if self.settlement.unproven:
            self.settlement.unproven.discard(number_of(item))
        item.consumer = consumer.serial
        pack(self.settlement, item, cython.address(s))
        if not is_first:
            self.redelivered += 1
        elif self.settlement.waits is not None:
            self.settlement.waits.add(waited_us(item.stored_s, self.settlement.now()))
        item.flags &= ~(HANDED | LEASED | MARKS | PRESETTLED)
        item.flags |= ACQUIRED
        if consumer.marks_received:
            item.flags |= MARKS
        if consumer.is_far:
            item.flags |= LEASED
        if consumer.link.presettles:
            item.flags |= PRESETTLED
        if self.settlement.journal is not None:
            self.settlement.journal.out(item)
        if self.settlement.audit_events is not None:
            self.settlement.audit_events.handed(item)
        return self.ship(item, consumer, cython.address(s))

    def ship(self, item, consumer, s):
        """Send an item's newest attempt, under its tag."""
        tag: uint8_t[16]
        s.source_index = self.settlement.index
        s.source_generation = self.settlement.generation
        s.token = self.items.slots.stamp(item)
        s.tag = tag
        s.tag_size = 16
        store_u32(tag, self.shard)
        store_u32(tag + 4, item.birth)
        store_u32(tag + 8, item.slot)
        store_u32(tag + 12, item.attempt)
        if s.acquired and consumer.link.marks_acquired:
            s.format |= ACQUIRED_BEFORE
        self.sent += 1
        if self.settlement.journal is not None and (
            not self.settlement.delivers_ahead
            or item.attempt % ATTEMPTS_AHEAD == 0
            or self.settlement.core.released_barrier < self.settlement.base_barrier
        ):
            consumer.link.hold_output()
        return consumer.link.take(s)

    def resend(self, consumer):
        """Send attempts that a consumer has from an earlier link, so that it can settle them."""
        s: Shipment
        item: cython.pointer(Item)
        while consumer.resumed and consumer.link.is_ready():
            item = self.items.slots.find(consumer.resumed.pop(0))
            if item == cython.NULL or item.state != OUT or item.consumer != consumer.serial:
                continue
            pack(self.settlement, item, cython.address(s))
            self.ship(item, consumer, cython.address(s))
        return 0

    def browse(self, browser):
        """Send copies of what a browser has not seen."""
        s: Shipment
        left: uint32_t = SCAN_MAX
        item: cython.pointer(Item)
        while browser.link.is_ready():
            item = self.ready.next_unseen(cython.address(browser.cursor))
            if item == cython.NULL:
                return 0
            if item.state == PAGED:
                self.await_page(item)
                return 0
            if left == 0 or must_wait(browser.link):
                self.go_on_later(browser)
                return 0
            self.ready.saw(cython.address(browser.cursor), item)
            left -= 1
            if not self.suits(item, browser):
                continue
            pack(self.settlement, item, cython.address(s))
            if self.settlement.journal is not None and not self.settlement.delivers_ahead:
                browser.link.hold_output()
            browser.link.take(cython.address(s))
        return 0


def _descending(round: Round) -> int:
    return -round.priority


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def waited_us(from_s: cython.double, to_s: cython.double) -> uint64_t:
    """Tell how long something has waited; the clock may stand for a batch, and is never behind."""
    return cython.cast(uint64_t, (to_s - from_s) * 1e6) if to_s > from_s else 0
