"""Items in memory: where each one stands, in what order, and how it is found again.

Theory of operation. An item is one block: a struct and the message behind it. It has a slot, whose
stamp changes with every attempt, so that a token (slot and stamp) that has been overtaken finds
nothing. Ready items stand in one list for each priority, by sequence. An item that was out and
comes back is gathered in `returned`; `restore` sorts what was gathered and puts it into its old
places in one pass, however many there are.

Where items have an ordering key, at most the first of a group stands among the ready; the others
are parked with the group. While one is out, its group belongs to whose hands it is in, and the
parked ones can go only there. A group with nothing out is `freed`; `restore` lets its next one
stand among the ready.

A shelf knows nothing of links, credit or outcomes: the store does.
"""

import cython
from cython.cimports.libc.stdlib import calloc, free, malloc, qsort, realloc
from cython.cimports.libc.string import memcpy, memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

NOWHERE = cython.declare(uint32_t, 0xFFFFFFFF)
SLOTS_MIN = cython.declare(uint32_t, 64)
BUCKETS_MIN = cython.declare(uint32_t, 64)
EXPIRIES_MIN = cython.declare(uint32_t, 256)
"""Timers below this number are not worth looking through for such as have lost their meaning."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _by_sequence(a: cython.p_const_void, b: cython.p_const_void) -> cython.int:
    first: uint64_t = cython.cast(cython.pointer(cython.pointer(Item)), a)[0].sequence
    second: uint64_t = cython.cast(cython.pointer(cython.pointer(Item)), b)[0].sequence
    return 1 if first > second else -1


class Shelf:
    """A queue's items, in order.

    Attributes:
        depth: All items, wherever they stand.
        size_bytes: The sum of their sizes.
        ready_count: Those that any consumer may get.
        parked_count: Those that wait for others of their group.
        delayed_count: Those whose time has not come.
        returned_count: Those that came back and are not in their places yet.
        out_count: Those at a consumer.
        doubt_count: Those whose consumer vanished.
        groups: The ordering keys that items have.
    """

    def __cinit__(self):
        priority: cython.int
        for priority in range(PRIORITIES):
            clear(cython.address(self.ready[priority]))
        clear(cython.address(self.returned))
        clear(cython.address(self.doubtful))
        clear(cython.address(self.freed))
        self.free_first = self.free_last = NOWHERE
        self.expiries = TimerHeap()
        self.delays = TimerHeap()
        self.expiries_max = EXPIRIES_MIN

    def __dealloc__(self):
        at: uint32_t
        group: cython.pointer(Group)
        block: cython.pointer(Node)
        for at in range(self.slots_size):
            free(self.slots[at].item)
        for at in range(cython.cast(uint32_t, SPARE_SIZES)):
            while self.spare[at] != cython.NULL:
                block = self.spare[at]
                self.spare[at] = block.next
                free(block)
        for at in range(self.buckets_size):
            while self.buckets[at] != cython.NULL:
                group = self.buckets[at]
                self.buckets[at] = group.next
                free(group)
        free(self.slots)
        free(self.buckets)
        free(self.cursors)

    # -- items and how they are found

    def make(self, data, size):
        """Makes an item that stands nowhere yet; `enter` or `delay` comes next."""
        slot: uint32_t
        if self.free_first == NOWHERE:
            self._grow_slots()
        item: cython.pointer(Item) = self._new_block(size)
        memset(item, 0, cython.sizeof(Item))
        memcpy(item.data, data, size)
        slot = self.free_first
        self.free_first = self.slots[slot].next_free
        self.slots[slot].item = item
        item.slot = slot
        item.birth = self.slots[slot].stamp
        item.size = size
        self.depth += 1
        self.size_bytes += size
        return item

    def _new_block(self, size):
        """Returns memory for an item: small blocks come from those that were freed before."""
        kind: uint64_t = spare_size_of(size)
        bytes_needed: uint64_t = (kind + 1) * SPARE_STEP
        block: cython.pointer(Node)
        if kind < SPARE_SIZES and self.spare[kind] != cython.NULL:
            block = self.spare[kind]
            self.spare[kind] = block.next
            self.spare_count -= 1
            return cython.cast(cython.pointer(Item), block)
        block = cython.cast(cython.pointer(Node), malloc(bytes_needed))
        if block == cython.NULL:
            raise MemoryError("no room for a message")
        return cython.cast(cython.pointer(Item), block)

    def _free_block(self, item):
        kind: uint64_t = spare_size_of(item.size)
        if kind >= SPARE_SIZES or self.spare_count >= SPARE_MAX:
            free(item)
            return
        item.node.next = self.spare[kind]
        self.spare[kind] = cython.address(item.node)
        self.spare_count += 1

    def _free_slot(self, slot):
        """Queues a slot for use: in turn, so that the items of a batch have consecutive tokens."""
        self.slots[slot].item = cython.NULL
        self.slots[slot].next_free = NOWHERE
        if self.free_first == NOWHERE:
            self.free_first = slot
        else:
            self.slots[self.free_last].next_free = slot
        self.free_last = slot

    def _grow_slots(self):
        at: uint32_t = self.slots_size
        size: uint32_t = at * 2 if at else SLOTS_MIN
        grown: cython.pointer(Slot)
        if size < at:
            raise MemoryError("no room for more messages")
        grown = cython.cast(cython.pointer(Slot), realloc(self.slots, size * cython.sizeof(Slot)))
        if grown == cython.NULL:
            raise MemoryError("no room for more messages")
        self.slots = grown
        self.slots_size = size
        while at < size:
            grown[at].stamp = 0
            self._free_slot(at)
            at += 1
        return 0

    def stamp(self, item):
        """Makes a new token for an item; the one it had before finds nothing any more."""
        self.slots[item.slot].stamp += 1
        return (cython.cast(uint64_t, self.slots[item.slot].stamp) << 32) | item.slot

    def current(self, token):
        """Finds an item that is out by its newest token; NULL where it is stale."""
        slot: uint32_t = cython.cast(uint32_t, token)
        item: cython.pointer(Item)
        if slot >= self.slots_size or self.slots[slot].stamp != cython.cast(uint32_t, token >> 32):
            return cython.NULL
        item = self.slots[slot].item
        if item == cython.NULL or item.state != OUT:
            return cython.NULL
        return item

    def find(self, number):
        """Finds an item by the number it has for life; NULL where it has gone."""
        slot: uint32_t = cython.cast(uint32_t, number)
        item: cython.pointer(Item)
        if slot >= self.slots_size:
            return cython.NULL
        item = self.slots[slot].item
        if item == cython.NULL or item.birth != cython.cast(uint32_t, number >> 32):
            return cython.NULL
        return item

    def next_item(self, slot):
        """Walks over all items by slot; moves `slot` past the one it returns, NULL at the end."""
        at: uint32_t = slot[0]
        while at < self.slots_size and self.slots[at].item == cython.NULL:
            at += 1
        slot[0] = at + 1
        return self.slots[at].item if at < self.slots_size else cython.NULL

    # -- coming in

    def enter(self, item):
        """Places an item behind all others of its priority, or of its group."""
        group: cython.pointer(Group)
        self.next_sequence += 1
        item.sequence = self.next_sequence
        if item.group_key == 0:
            self._append_ready(item)
            return 0
        group = self._group(item.group_key)
        item.group = group
        group.count += 1
        if group.count == 1:
            group.head = item
            self._append_ready(item)
        else:
            self._park(item, cython.address(group.parked))
        return 0

    def delay(self, item, due_s):
        """Keeps an item until `ripen` enters it; its place is behind what came before then."""
        self.delays.push(due_s, number_of(item))
        item.state = DELAYED
        item.due_s = due_s
        self.delayed_count += 1
        return 0

    def ripen(self, now_s):
        """Enters the delayed items whose time has come; returns how many."""
        timer: Timer
        item: cython.pointer(Item)
        count: cython.int = 0
        while self.delays.pop_due(now_s, cython.address(timer)):
            item = self.find(timer.number)
            if item == cython.NULL or item.state != DELAYED:
                continue
            self.delayed_count -= 1
            self.enter(item)
            count += 1
        return count

    def expire_at(self, item, expires_s):
        """Makes `pop_expired` name an item when its time is over."""
        if self.expiries.count >= self.expiries_max:
            self._thin_expiries()
        self.expiries.push(expires_s, number_of(item))
        item.expires_s = expires_s
        return 0

    def _thin_expiries(self):
        """Throws out the timers of items that have gone."""
        at: uint32_t
        kept: uint32_t = 0
        for at in range(self.expiries.count):
            if self.find(self.expiries.timers[at].number) != cython.NULL:
                self.expiries.timers[kept] = self.expiries.timers[at]
                kept += 1
        self.expiries.rebuild(kept)
        self.expiries_max = max(EXPIRIES_MIN, 2 * kept)

    def pop_expired(self, now_s):
        """Returns an item whose time is over and that is not out; NULL where there is none."""
        timer: Timer
        item: cython.pointer(Item)
        while self.expiries.pop_due(now_s, cython.address(timer)):
            item = self.find(timer.number)
            if item != cython.NULL and item.state != OUT and item.state != DOUBT:
                return item
        return cython.NULL

    # -- the ready ones

    def _append_ready(self, item):
        item.state = READY
        link_before(cython.address(item.node), cython.address(self.ready[item.priority]))
        self.occupied |= 1 << item.priority
        self.ready_count += 1

    def _insert_ready(self, item, following):
        """Puts an item back before `following`, and lets those who look only forward see it."""
        at: uint32_t
        cursor: cython.pointer(Cursor)
        prev: cython.pointer(Node)
        item.state = READY
        link_before(cython.address(item.node), following)
        self.occupied |= 1 << item.priority
        self.ready_count += 1
        for at in range(self.cursors_count):
            cursor = self.cursors[at]
            if (
                cursor.rewinds
                and cursor.at[item.priority] != cython.NULL
                and cursor.at[item.priority].sequence > item.sequence
            ):
                prev = item.node.prev
                cursor.at[item.priority].pins -= 1
                cursor.at[item.priority] = cython.NULL
                if prev != cython.address(self.ready[item.priority]):
                    cursor.at[item.priority] = cython.cast(cython.pointer(Item), prev)
                    cursor.at[item.priority].pins += 1

    def _leave_ready(self, item):
        at: uint32_t
        prev: cython.pointer(Item) = cython.cast(cython.pointer(Item), item.node.prev)
        if item.pins:
            if item.node.prev == cython.address(self.ready[item.priority]):
                prev = cython.NULL
            for at in range(self.cursors_count):
                if self.cursors[at].at[item.priority] == item:
                    self.cursors[at].at[item.priority] = prev
                    if prev != cython.NULL:
                        prev.pins += 1
            item.pins = 0
        unlink(cython.address(item.node))
        if is_empty(cython.address(self.ready[item.priority])):
            self.occupied &= ~(1 << item.priority)
        self.ready_count -= 1

    def front(self):
        """Returns the first ready item of the highest priority; NULL where none is ready."""
        priority: cython.int = PRIORITIES
        if self.occupied == 0:
            return cython.NULL
        while priority > 0:
            priority -= 1
            if self.occupied & (1 << priority):
                break
        return cython.cast(cython.pointer(Item), self.ready[priority].next)

    def oldest(self):
        """Returns the first ready item of the lowest priority; NULL where none is ready."""
        priority: cython.int
        for priority in range(PRIORITIES):
            if self.occupied & (1 << priority):
                return cython.cast(cython.pointer(Item), self.ready[priority].next)
        return cython.NULL

    def after(self, item):
        """Returns the ready item that comes after a ready one; NULL after the last."""
        priority: cython.int = item.priority
        if item.node.next != cython.address(self.ready[priority]):
            return cython.cast(cython.pointer(Item), item.node.next)
        while priority > 0:
            priority -= 1
            if self.occupied & (1 << priority):
                return cython.cast(cython.pointer(Item), self.ready[priority].next)
        return cython.NULL

    # -- going out and coming back

    def hand_out(self, item, hands):
        """Gives a ready item, or a parked one of a group they hold, into a consumer's hands."""
        group: cython.pointer(Group) = item.group
        if item.state == READY:
            self._leave_ready(item)
        else:
            self._unpark(item)
        item.state = OUT
        link_before(cython.address(item.node), cython.address(hands.out))
        self.out_count += 1
        if group != cython.NULL:
            if group.head == item:
                group.head = cython.NULL
            group.out += 1
            self._hold(group, hands)
        return 0

    def give_back(self, item):
        """Takes an item out of its consumer's hands; `restore` puts it in its old place."""
        self._bring_back(item)
        item.state = RETURNED
        link_before(cython.address(item.node), cython.address(self.returned))
        self.returned_count += 1
        return 0

    def _bring_back(self, item):
        """Takes an item that is out or in doubt out of wherever it is."""
        group: cython.pointer(Group) = item.group
        unlink(cython.address(item.node))
        if item.state == OUT:
            self.out_count -= 1
        else:
            self.doubt_count -= 1
        if group != cython.NULL:
            group.out -= 1
            if group.out == 0:
                self._let_go(group)

    def doubt(self, item):
        """Sets an item aside whose consumer vanished; its group stays held, by nobody."""
        unlink(cython.address(item.node))
        link_before(cython.address(item.node), cython.address(self.doubtful))
        item.state = DOUBT
        self.out_count -= 1
        self.doubt_count += 1
        if item.group != cython.NULL:
            item.group.holder = cython.NULL
            unlink(cython.address(item.group.node))
        return 0

    def rebind(self, item, hands):
        """Gives an item that is out or in doubt into other hands, as the same attempt.

        A group that has other items out goes to nobody: those may be in other hands still.
        """
        group: cython.pointer(Group) = item.group
        unlink(cython.address(item.node))
        link_before(cython.address(item.node), cython.address(hands.out))
        if item.state == DOUBT:
            self.doubt_count -= 1
            self.out_count += 1
        item.state = OUT
        if group != cython.NULL and group.out == 1:
            self._hold(group, hands)
        elif group != cython.NULL and group.holder != hands:
            group.holder = cython.NULL
            unlink(cython.address(group.node))
        return 0

    def abandon(self, hands):
        """Lets go of the groups of a consumer that gets no more; what is out of them stays out."""
        node: cython.pointer(Node)
        while not is_empty(cython.address(hands.held)):
            node = hands.held.next
            unlink(node)
            cython.cast(cython.pointer(Group), node).holder = cython.NULL
        while not is_empty(cython.address(hands.wanting)):
            node = hands.wanting.next
            unlink(node)
            cython.cast(cython.pointer(Group), node).holder = cython.NULL
        return 0

    def drop(self, item):
        """Forgets an item, wherever it stands."""
        group: cython.pointer(Group) = item.group
        self._leave(item)
        if group != cython.NULL:
            group.count -= 1
            if group.count == 0:
                self._forget_group(group)
        self.slots[item.slot].stamp += 1
        self._free_slot(item.slot)
        self.depth -= 1
        self.size_bytes -= item.size
        self._free_block(item)
        return 0

    def _leave(self, item):
        group: cython.pointer(Group) = item.group
        if item.state == OUT or item.state == DOUBT:
            self._bring_back(item)
        elif item.state == READY:
            self._leave_ready(item)
            if group != cython.NULL:
                group.head = cython.NULL
                self._let_go(group)
        elif item.state == PARKED:
            self._unpark(item)
        elif item.state == RETURNED:
            unlink(cython.address(item.node))
            self.returned_count -= 1
        else:
            self.delayed_count -= 1

    # -- groups

    def _group(self, key):
        """Finds a group by its key, or makes it."""
        group: cython.pointer(Group)
        bucket: uint32_t
        if self.groups >= self.buckets_size:
            self._grow_buckets()
        bucket = cython.cast(uint32_t, key) & (self.buckets_size - 1)
        group = self.buckets[bucket]
        while group != cython.NULL:
            if group.key == key:
                return group
            group = group.next
        group = cython.cast(cython.pointer(Group), calloc(1, cython.sizeof(Group)))
        if group == cython.NULL:
            raise MemoryError("no room for more groups")
        group.key = key
        clear(cython.address(group.parked))
        group.next = self.buckets[bucket]
        self.buckets[bucket] = group
        self.groups += 1
        return group

    def _grow_buckets(self):
        size: uint32_t = self.buckets_size * 2 if self.buckets_size else BUCKETS_MIN
        at: uint32_t
        bucket: uint32_t
        group: cython.pointer(Group)
        grown: cython.pointer(cython.pointer(Group)) = cython.cast(
            cython.pointer(cython.pointer(Group)),
            calloc(size, cython.sizeof(cython.pointer(Group))),
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more groups")
        for at in range(self.buckets_size):
            while self.buckets[at] != cython.NULL:
                group = self.buckets[at]
                self.buckets[at] = group.next
                bucket = cython.cast(uint32_t, group.key) & (size - 1)
                group.next = grown[bucket]
                grown[bucket] = group
        free(self.buckets)
        self.buckets = grown
        self.buckets_size = size
        return 0

    def _forget_group(self, group):
        bucket: uint32_t = cython.cast(uint32_t, group.key) & (self.buckets_size - 1)
        at: cython.pointer(cython.pointer(Group)) = self.buckets + bucket
        while at[0] != group:
            at = cython.address(at[0].next)
        at[0] = group.next
        unlink(cython.address(group.node))
        self.groups -= 1
        free(group)

    def _park(self, item, following):
        group: cython.pointer(Group) = item.group
        item.state = PARKED
        link_before(cython.address(item.node), following)
        self.parked_count += 1
        if group.holder != cython.NULL:
            self._hold(group, group.holder)

    def _unpark(self, item):
        group: cython.pointer(Group) = item.group
        unlink(cython.address(item.node))
        self.parked_count -= 1
        if group.holder != cython.NULL:
            self._hold(group, group.holder)

    def _hold(self, group, hands):
        """Lists a group with its holder, behind others: as one that waits for it, or not."""
        group.holder = hands
        unlink(cython.address(group.node))
        if is_empty(cython.address(group.parked)):
            link_before(cython.address(group.node), cython.address(hands.held))
        else:
            link_before(cython.address(group.node), cython.address(hands.wanting))

    def _let_go(self, group):
        """Frees a group of which nothing is out any more; `restore` goes on with its next item."""
        group.holder = cython.NULL
        unlink(cython.address(group.node))
        link_before(cython.address(group.node), cython.address(self.freed))

    # -- putting things in their places

    def is_stirred(self):
        """Says whether `restore` has anything to do."""
        return self.returned_count > 0 or not is_empty(cython.address(self.freed))

    def restore(self):
        """Puts what came back into its old places, and goes on with groups that are free again."""
        count: uint32_t
        node: cython.pointer(Node) = self.freed.next
        room: uint64_t = self.returned_count
        items: cython.pointer(cython.pointer(Item))
        if not self.is_stirred():
            return 0
        # Each item that came back may free its group, so a group more for each.
        room *= 2
        while node != cython.address(self.freed):
            room += 1
            node = node.next
        items = cython.cast(
            cython.pointer(cython.pointer(Item)),
            malloc(room * cython.sizeof(cython.pointer(Item))),
        )
        if items == cython.NULL:
            raise MemoryError("no room to sort what came back")
        count = self._gather(items, True)
        self._restore_groups(items, count)
        count = self._gather(items, False)
        count = self._promote(items, count)
        self._restore_ready(items, count)
        free(items)
        return 0

    def _gather(self, items, grouped):
        """Takes those that came back, with a group or without, oldest first; counts them."""
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

    def _restore_groups(self, items, count):
        at: uint32_t
        item: cython.pointer(Item)
        group: cython.pointer(Group)
        for at in range(count):
            items[at].group.hint = items[at].group.parked.next
        for at in range(count):
            item = items[at]
            group = item.group
            while (
                group.hint != cython.address(group.parked)
                and cython.cast(cython.pointer(Item), group.hint).sequence < item.sequence
            ):
                group.hint = group.hint.next
            self._park(item, group.hint)
            if group.out == 0 and group.head == cython.NULL and group.node.next == cython.NULL:
                self._let_go(group)

    def _promote(self, items, count):
        """Adds the first item of each freed group to those that become ready."""
        group: cython.pointer(Group)
        item: cython.pointer(Item)
        while not is_empty(cython.address(self.freed)):
            group = cython.cast(cython.pointer(Group), self.freed.next)
            unlink(cython.address(group.node))
            if is_empty(cython.address(group.parked)):
                continue
            item = cython.cast(cython.pointer(Item), group.parked.next)
            self._unpark(item)
            group.head = item
            items[count] = item
            count += 1
        return count

    def _restore_ready(self, items, count):
        at: uint32_t
        priority: cython.int
        item: cython.pointer(Item)
        hints: cython.pointer(Node)[10]
        qsort(items, count, cython.sizeof(cython.pointer(Item)), _by_sequence)
        for priority in range(PRIORITIES):
            hints[priority] = self.ready[priority].next
        for at in range(count):
            item = items[at]
            priority = item.priority
            if (
                self.occupied & (1 << priority)
                and cython.cast(cython.pointer(Item), self.ready[priority].prev).sequence
                < item.sequence
            ):
                hints[priority] = cython.address(self.ready[priority])
            while (
                hints[priority] != cython.address(self.ready[priority])
                and cython.cast(cython.pointer(Item), hints[priority]).sequence < item.sequence
            ):
                hints[priority] = hints[priority].next
            self._insert_ready(item, hints[priority])

    # -- those who look without taking, or take only what they like

    def add_cursor(self, cursor):
        grown: cython.pointer(cython.pointer(Cursor)) = cython.cast(
            cython.pointer(cython.pointer(Cursor)),
            realloc(self.cursors, (self.cursors_count + 1) * cython.sizeof(cython.pointer(Cursor))),
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more selective consumers")
        self.cursors = grown
        self.cursors[self.cursors_count] = cursor
        self.cursors_count += 1
        return 0

    def remove_cursor(self, cursor):
        at: uint32_t
        priority: cython.int
        for at in range(self.cursors_count):
            if self.cursors[at] != cursor:
                continue
            for priority in range(PRIORITIES):
                if cursor.at[priority] != cython.NULL:
                    cursor.at[priority].pins -= 1
                    cursor.at[priority] = cython.NULL
            self.cursors_count -= 1
            self.cursors[at] = self.cursors[self.cursors_count]
            return

    def next_unseen(self, cursor):
        """Returns the first ready item that a cursor has not passed; NULL where it saw all."""
        priority: cython.int = PRIORITIES
        node: cython.pointer(Node)
        while priority > 0:
            priority -= 1
            if not self.occupied & (1 << priority):
                continue
            node = self.ready[priority].next
            if cursor.at[priority] != cython.NULL:
                node = cursor.at[priority].node.next
            while node != cython.address(self.ready[priority]):
                if (
                    cursor.rewinds
                    or cython.cast(cython.pointer(Item), node).sequence > cursor.seen[priority]
                ):
                    return cython.cast(cython.pointer(Item), node)
                node = node.next
        return cython.NULL

    def saw(self, cursor, item):
        """Moves a cursor past a ready item."""
        if cursor.at[item.priority] != cython.NULL:
            cursor.at[item.priority].pins -= 1
        cursor.at[item.priority] = item
        cursor.seen[item.priority] = item.sequence
        item.pins += 1
