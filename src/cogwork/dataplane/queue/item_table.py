"""An item table: where each item of a queue stands, and in what order they go out and come back.

Theory of operation. `Slots` has the items, `Ready` those that any consumer may get, `Groups` those
that wait for others with their ordering key; the shelf has those that are out, in doubt, returned or
delayed, and moves items from place to place. An item that was out and comes back is gathered in
`returned`; `restore` sorts what was gathered and puts it into its old places in one pass, however
many there are, and lets the next items of groups that are free again stand among the ready.

The table knows nothing of links, credit or outcomes: the store does.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.chain import clear, link_before, unlink
from cython.cimports.cogwork.dataplane.queue.stored import (
    ASIDE,
    DELAYED,
    GROUP_DETACHED,
    HANDED,
    IN_DOUBT,
    OUT,
    PARKED,
    READY,
    RETURNED,
    Group,
    number_of,
)
from cython.cimports.libc.stdlib import free, malloc, qsort

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

EXPIRIES_MIN = cython.declare(uint32_t, 256)
"""Timers below this number are not worth looking through for such as have lost their meaning."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _by_sequence(a: cython.p_const_void, b: cython.p_const_void) -> cython.int:
    first: uint64_t = cython.cast(cython.pointer(cython.pointer(Item)), a)[0].sequence
    second: uint64_t = cython.cast(cython.pointer(cython.pointer(Item)), b)[0].sequence
    return 1 if first > second else -1


class ItemTable:
    """A queue's items, in order.

    Attributes:
        depth: All items, wherever they stand.
        size_bytes: The sum of their sizes.
        delayed_count: Those whose time has not come.
        returned_count: Those that came back and are not in their places yet.
        out_count: Those at a consumer.
        out_bytes: The sum of their sizes.
        in_doubt_count: Those whose consumer vanished.
        aside_count: Beside all these: items whose message is on its way elsewhere.
        aside_bytes: The sum of their sizes.
        disorder: How far first attempts were out of order.
        pages: Those of its items that lie on disk.
    """

    def __cinit__(self):
        clear(cython.address(self.returned))
        clear(cython.address(self.in_doubt))
        self.slots = Slots()
        self.ready = Ready()
        self.groups = Groups()
        self.expiries = TimerHeap()
        self.pages = Pages(self.slots, self.ready, self.expiries)
        self.delays = TimerHeap()
        self.disorder = Disorder()
        self.expiries_max = EXPIRIES_MIN

    # -- coming in

    def make(self, data, size):
        """Make an item that stands nowhere yet; `enter` or `delay` comes next."""
        item: cython.pointer(Item) = self.slots.make(data, size)
        self.depth += 1
        self.size_bytes += size
        return item

    def enter(self, item):
        """Place an item behind all others of its priority, or of its group."""
        self.next_sequence += 1
        item.sequence = self.next_sequence
        if item.group_key == 0 or self.groups.join(item):
            self.ready.append(item)
        return 0

    def delay(self, item, due_s):
        """Keep an item until `ripen` enters it; its place is behind what came before then."""
        self.delays.push(due_s, number_of(item))
        item.state = DELAYED
        item.sequence = self.delays.turn
        item.due_s = due_s
        self.delayed_count += 1
        return 0

    def ripen(self, now_s):
        """Enter the delayed items whose time has come; return how many."""
        timer: Timer
        item: cython.pointer(Item)
        count: cython.int = 0
        while self.delays.pop_due(now_s, cython.address(timer)):
            item = self.slots.find(timer.number)
            if item == cython.NULL or item.state != DELAYED:
                continue
            self.delayed_count -= 1
            self.enter(item)
            if item.attempt:
                self.disorder.lose(item.sequence)
            count += 1
        return count

    def expire_at(self, item, expires_s):
        """Make `pop_expired` name an item when its time is over."""
        if self.expiries.count >= self.expiries_max:
            self._thin_expiries()
        self.expiries.push(expires_s, number_of(item))
        item.expires_s = expires_s
        return 0

    def next_due(self, now_s):
        """Return when the next item expires or is ripe, of those that are not due; 0 for never."""
        found: cython.double = 0.0
        due_s: cython.double
        if self.expiries.count and self.expiries.timers[0].due_s > now_s:
            found = self.expiries.timers[0].due_s
        if self.delays.count:
            due_s = self.delays.timers[0].due_s
            if due_s > now_s and (found == 0.0 or due_s < found):
                found = due_s
        return found

    def forget_times(self):
        """Throw out all timers: what comes may have the numbers of what they were for."""
        self.expiries.rebuild(0)
        self.delays.rebuild(0)

    @property
    def memory_bytes(self) -> int:
        """The sizes of all messages that are in memory, summed up."""
        return self.bytes_in_memory()

    def bytes_in_memory(self):
        return self.size_bytes + self.aside_bytes - self.pages.size_bytes

    def origins(self, count_max) -> dict:
        """Return how many bytes in memory came by each connection: about, if they are many.

        Args:
            count_max: How many slots are looked at, spread over all of them.
        """
        sums: dict = {}
        at: uint64_t = 0
        seen: uint64_t = 0
        step: uint64_t = 1 + self.slots.size // cython.cast(uint32_t, max(1, count_max))
        item: cython.pointer(Item)
        while at < self.slots.size:
            item = self.slots.slots[at].item
            if item != cython.NULL:
                sums[item.origin] = sums.get(item.origin, 0) + item.size
                seen += item.size
            at += step
        total = self.memory_bytes
        return {origin: total * size // seen for origin, size in sums.items() if size}

    def forget_page(self, numbers):
        """Give up the items of a page; add their numbers, and return how many they were."""
        found: list = self.pages.purge()
        self.size_bytes -= cython.cast(uint64_t, found.pop())
        self.depth -= cython.cast(uint32_t, len(found))
        numbers.extend(found)
        return cython.cast(uint32_t, len(found))

    def _thin_expiries(self):
        """Throw out the timers of items that have gone."""
        at: uint32_t
        kept: uint32_t = 0
        for at in range(self.expiries.count):
            if self.slots.find(self.expiries.timers[at].number) != cython.NULL:
                self.expiries.timers[kept] = self.expiries.timers[at]
                kept += 1
        self.expiries.rebuild(kept)
        self.expiries_max = max(EXPIRIES_MIN, 2 * kept)

    def pop_expired(self, now_s):
        """Return an item whose time is over and that is not out; NULL where there is none."""
        timer: Timer
        item: cython.pointer(Item)
        while self.expiries.pop_due(now_s, cython.address(timer)):
            item = self.slots.find(timer.number)
            if item != cython.NULL and not is_away(item):
                return item
        return cython.NULL

    # -- going out and coming back

    def hand_out(self, item, holder):
        """Give a ready item, or a parked one of a group they hold, into a consumer's holder."""
        if item.state == READY:
            self.ready.leave(item)
        else:
            self.groups.unpark(item)
        item.state = OUT
        link_before(cython.address(item.node), cython.address(holder.in_flight))
        self.out_count += 1
        self.out_bytes += item.size
        if item.group != cython.NULL:
            self.groups.take(item, holder)
        return self.disorder.take(item.sequence) if item.attempt == 0 else 0

    def stand_back(self, item):
        """Park a ready item again, before all of its group: another one of that is out."""
        group: cython.pointer(Group) = item.group
        self.ready.leave(item)
        group.head = cython.NULL
        self.groups.park(item, group.parked.next)
        return 0

    def give_back(self, item):
        """Take an item out of its consumer's holder; `restore` puts it in its old place."""
        self._bring_back(item)
        item.state = RETURNED
        link_before(cython.address(item.node), cython.address(self.returned))
        self.returned_count += 1
        return 0

    def _bring_back(self, item):
        """Take an item that is out or in doubt out of wherever it is."""
        unlink(cython.address(item.node))
        if item.state == OUT:
            self.out_count -= 1
            self.out_bytes -= item.size
        else:
            self.in_doubt_count -= 1
        if item.flags & GROUP_DETACHED:
            item.flags &= ~GROUP_DETACHED
        elif item.group != cython.NULL:
            self.groups.bring_back(item.group)

    def mark_in_doubt(self, item):
        """Set an item aside whose consumer vanished; its group stays held, by nobody."""
        unlink(cython.address(item.node))
        link_before(cython.address(item.node), cython.address(self.in_doubt))
        item.state = IN_DOUBT
        self.out_count -= 1
        self.out_bytes -= item.size
        self.in_doubt_count += 1
        if item.group != cython.NULL and not item.flags & GROUP_DETACHED:
            self.groups.rebind(item.group, cython.NULL)
        return 0

    def detach_group(self, item):
        """Let the group of an item in doubt go on without it."""
        if item.group != cython.NULL and not item.flags & GROUP_DETACHED:
            item.flags |= GROUP_DETACHED
            self.groups.bring_back(item.group)
        return 0

    def rebind(self, item, holder):
        """Give an item that is out or in doubt to another consumer, as the same attempt."""
        unlink(cython.address(item.node))
        link_before(cython.address(item.node), cython.address(holder.in_flight))
        if item.state == IN_DOUBT:
            self.in_doubt_count -= 1
            self.out_count += 1
            self.out_bytes += item.size
        item.state = OUT
        if item.group != cython.NULL and not item.flags & GROUP_DETACHED:
            self.groups.rebind(item.group, holder)
        return 0

    def rewrite(self, item, data, size):
        """Give an item that is out or in doubt another message; return where it is now."""
        self.size_bytes = self.size_bytes - item.size + size
        if item.state == OUT:
            self.out_bytes = self.out_bytes - item.size + size
        return self.slots.replace(item, data, size)

    def put_aside(self, item):
        """Take an item whose message is handed on; it keeps its number until that has arrived.

        From now on `due_s` is 0 where it was not delayed.
        """
        if item.state != DELAYED:
            item.due_s = 0.0
        self._clear(item)
        item.state = ASIDE
        item.flags &= ~HANDED
        self.aside_count += 1
        self.aside_bytes += item.size
        return 0

    def enter_again(self, item):
        """Place an item that was put aside behind all others, or delays it again."""
        self._uncount_aside(item)
        self.depth += 1
        self.size_bytes += item.size
        if item.due_s != 0.0:
            return self.delay(item, item.due_s)
        self.enter(item)
        return self.disorder.lose(item.sequence) if item.attempt else 0

    def drop(self, item):
        """Forget an item, wherever it stands."""
        if item.state == ASIDE:
            self._uncount_aside(item)
        else:
            self._clear(item)
        self.slots.drop(item)
        return 0

    def _uncount_aside(self, item):
        self.aside_count -= 1
        self.aside_bytes -= item.size

    def _clear(self, item):
        """Take an item out of its place, its group and the counts."""
        self._leave(item)
        if item.group != cython.NULL:
            self.groups.quit(item.group)
            item.group = cython.NULL
        if item.attempt == 0 and item.sequence and item.state != DELAYED:
            self.disorder.lose(item.sequence)
        self.depth -= 1
        self.size_bytes -= item.size
        return 0

    def _leave(self, item):
        if item.state == OUT or item.state == IN_DOUBT:
            self._bring_back(item)
        elif item.state == READY:
            self.ready.leave(item)
            if item.group != cython.NULL:
                item.group.head = cython.NULL
                self.groups.let_go(item.group)
        elif item.state == PARKED:
            self.groups.unpark(item)
        elif item.state == RETURNED:
            unlink(cython.address(item.node))
            self.returned_count -= 1
        else:
            self.delayed_count -= 1

    # -- putting things in their places

    def restore(self):
        """Put what came back into its old places, and go on with groups that are free again."""
        at: uint32_t
        count: uint32_t
        room: uint64_t = self.returned_count
        items: cython.pointer(cython.pointer(Item))
        if not self.is_stirred():
            return 0
        # Each item that came back may free its group, so a group more for each.
        room = 2 * room + self.groups.freed_count()
        items = cython.cast(
            cython.pointer(cython.pointer(Item)),
            malloc(room * cython.sizeof(cython.pointer(Item))),
        )
        if items == cython.NULL:
            raise MemoryError("no room to sort what came back")
        self.groups.restore(items, self._gather(items, True))
        count = self.groups.promote(items, self._gather(items, False))
        qsort(items, count, cython.sizeof(cython.pointer(Item)), _by_sequence)
        try:
            if self.pages.count:
                for at in range(count):
                    self.pages.part(items[at].priority, items[at].sequence)
        finally:
            self.ready.merge(items, count)
            free(items)
        return 0

    def _gather(self, items, grouped):
        """Take those that came back, with a group or without, oldest first; count them."""
        count: uint32_t = 0
        node: cython.pointer(Node) = self.returned.next
        item: cython.pointer(Item)
        while node != cython.address(self.returned):
            item = cython.cast(cython.pointer(Item), node)
            node = node.next
            if (item.group != cython.NULL) == grouped:
                unlink(cython.address(item.node))
                self.returned_count -= 1
                items[count] = item
                count += 1
        qsort(items, count, cython.sizeof(cython.pointer(Item)), _by_sequence)
        return count
