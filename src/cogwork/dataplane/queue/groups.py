"""Groups: items with one ordering key, which go to one consumer at a time.

Theory of operation. At most the first item of a group stands among the ready; the others are parked
with the group. While one is out, its group belongs to whose holder it is in, and the parked ones can
go only there: the group stands among those that its holder wants, or holds while none is parked. A
group with nothing out is `freed`; `promote` lets its next one become ready.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.chain import clear, is_empty, link_before, unlink
from cython.cimports.cogwork.dataplane.queue.stored import PARKED
from cython.cimports.libc.stdlib import calloc, free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

BUCKETS_MIN = cython.declare(uint32_t, 64)


class Groups:
    """The groups of a queue, by key.

    Attributes:
        count: How many there are.
        parked_count: Items that wait for others of their group.
    """

    def __cinit__(self):
        clear(cython.address(self.freed))

    def __dealloc__(self):
        at: uint32_t
        group: cython.pointer(Group)
        for at in range(self.size):
            while self.buckets[at] != cython.NULL:
                group = self.buckets[at]
                self.buckets[at] = group.next
                free(group)
        free(self.buckets)

    # -- items come and go

    def join(self, item):
        """Put a new item into its group; return whether it may become ready, else it is parked.

        The items of a group that have been in doubt for too long count as its own, but nothing
        waits for them: the next one is not to wait either.
        """
        group: cython.pointer(Group) = self._find(item.group_key)
        item.group = group
        group.count += 1
        if is_idle(group):
            group.head = item
            return True
        self.park(item, cython.address(group.parked))
        return False

    def quit(self, group):
        """Forget an item of a group, and with its last one the group."""
        at: cython.pointer(cython.pointer(Group))
        group.count -= 1
        if group.count > 0:
            return
        at = self.buckets + (cython.cast(uint32_t, group.key) & (self.size - 1))
        while at[0] != group:
            at = cython.address(at[0].next)
        at[0] = group.next
        unlink(cython.address(group.node))
        self.count -= 1
        free(group)

    def park(self, item, following):
        """Have an item wait before `following` for those of its group that came earlier."""
        group: cython.pointer(Group) = item.group
        item.state = PARKED
        link_before(cython.address(item.node), following)
        self.parked_count += 1
        if group.holder != cython.NULL:
            self._hold(group, group.holder)

    def unpark(self, item):
        """Let an item wait no more."""
        group: cython.pointer(Group) = item.group
        unlink(cython.address(item.node))
        self.parked_count -= 1
        if group.holder != cython.NULL:
            self._hold(group, group.holder)

    # -- owners

    def take(self, item, holder):
        """Note that an item goes out to `holder`, and its group with it."""
        group: cython.pointer(Group) = item.group
        if group.head == item:
            group.head = cython.NULL
        group.out += 1
        self._hold(group, holder)

    def bring_back(self, group):
        """Note that an item of a group is out no more."""
        group.out -= 1
        if group.out == 0:
            self.let_go(group)

    def rebind(self, group, holder):
        """Note that an item of a group goes to another consumer, or to none: NULL.

        A group that has other items out goes to nobody: other consumers may have those.
        """
        if holder != cython.NULL and group.out == 1:
            self._hold(group, holder)
        elif holder == cython.NULL or group.holder != holder:
            group.holder = cython.NULL
            unlink(cython.address(group.node))

    def let_go(self, group):
        """Free a group of which nothing is out any more; `restore` goes on with its next item."""
        group.holder = cython.NULL
        unlink(cython.address(group.node))
        link_before(cython.address(group.node), cython.address(self.freed))

    def abandon(self, holder):
        """Let go of the groups of a consumer that gets no more; what is out of them stays out."""
        node: cython.pointer(Node)
        while not is_empty(cython.address(holder.owned_groups)):
            node = holder.owned_groups.next
            unlink(node)
            cython.cast(cython.pointer(Group), node).holder = cython.NULL
        while not is_empty(cython.address(holder.waiting_groups)):
            node = holder.waiting_groups.next
            unlink(node)
            cython.cast(cython.pointer(Group), node).holder = cython.NULL

    def _hold(self, group, holder):
        """List a group with its holder, behind others: as one that waits for it, or not."""
        group.holder = holder
        unlink(cython.address(group.node))
        if is_empty(cython.address(group.parked)):
            link_before(cython.address(group.node), cython.address(holder.owned_groups))
        else:
            link_before(cython.address(group.node), cython.address(holder.waiting_groups))

    # -- putting things in their places

    def freed_count(self):
        """Count the groups of which nothing is out any more."""
        count: uint32_t = 0
        node: cython.pointer(Node) = self.freed.next
        while node != cython.address(self.freed):
            count += 1
            node = node.next
        return count

    def restore(self, items, count):
        """Park items that came back, sorted by sequence, in their old places."""
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
            is_free: cython.bint = is_idle(group)
            self.park(item, group.hint)
            if is_free:
                self.let_go(group)

    def promote(self, items, count):
        """Add the first item of each freed group to those that become ready."""
        group: cython.pointer(Group)
        item: cython.pointer(Item)
        while not is_empty(cython.address(self.freed)):
            group = cython.cast(cython.pointer(Group), self.freed.next)
            unlink(cython.address(group.node))
            if is_empty(cython.address(group.parked)):
                continue
            item = cython.cast(cython.pointer(Item), group.parked.next)
            self.unpark(item)
            group.head = item
            items[count] = item
            count += 1
        return count

    # -- groups by key

    def _find(self, key):
        """Find a group by its key, or make it."""
        group: cython.pointer(Group)
        bucket: uint32_t
        if self.count >= self.size:
            self._grow()
        bucket = cython.cast(uint32_t, key) & (self.size - 1)
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
        self.count += 1
        return group

    def _grow(self):
        size: uint32_t = self.size * 2 if self.size else BUCKETS_MIN
        at: uint32_t
        bucket: uint32_t
        group: cython.pointer(Group)
        grown: cython.pointer(cython.pointer(Group)) = cython.cast(
            cython.pointer(cython.pointer(Group)),
            calloc(size, cython.sizeof(cython.pointer(Group))),
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more groups")
        for at in range(self.size):
            while self.buckets[at] != cython.NULL:
                group = self.buckets[at]
                self.buckets[at] = group.next
                bucket = cython.cast(uint32_t, group.key) & (size - 1)
                group.next = grown[bucket]
                grown[bucket] = group
        free(self.buckets)
        self.buckets = grown
        self.size = size
        return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_idle(group: cython.pointer(Group)) -> cython.bint:
    """Say whether nothing of a group is ready or out, and nothing will let its next item go on."""
    return group.out == 0 and group.head == cython.NULL and group.node.next == cython.NULL
