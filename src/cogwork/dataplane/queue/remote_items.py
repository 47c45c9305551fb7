"""What a consumer has from other containers' shards, found by token and, for each upstream, in order.

Theory of operation. An item is a slot of a table, and its token is the slot and a stamp that changes
with every item there, so that a token that has been overtaken finds nothing. Slots are used in turn:
items of a batch have consecutive tokens. The items of one upstream are chained in the order in which
they came, which is that of their delivery-ids.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from
from cython.cimports.cogwork.dataplane.transport.shipment import NOWHERE
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SLOTS_MIN = cython.declare(uint32_t, 64)


class RemoteItems:
    """The items of one consumer, by token."""

    def __cinit__(self):
        self.free_first = self.free_last = NOWHERE
        self.states = {}

    def __dealloc__(self):
        free(self.slots)

    def make(self, tag, tag_size):
        """Make an item that no upstream has; return its token."""
        slot: uint32_t
        item: cython.pointer(RemoteItem)
        if self.free_first == NOWHERE:
            self._grow()
        slot = self.free_first
        item = cython.address(self.slots[slot])
        self.free_first = item.next
        item.next = item.previous = NOWHERE
        item.place = BROKEN
        item.code = 0
        item.settled = False
        item.tag_size = min(tag_size, cython.cast(uint32_t, TAG_MAX))
        if item.tag_size:
            memcpy(item.tag, tag, item.tag_size)
        return self.token_at(slot)

    def link(self, chain, token, place, incoming_id):
        """Add an item to an upstream's."""
        slot: uint32_t = cython.cast(uint32_t, token)
        item: cython.pointer(RemoteItem) = cython.address(self.slots[slot])
        item.place = place
        item.incoming_id = incoming_id
        item.next = NOWHERE
        item.previous = chain.last
        if chain.last == NOWHERE:
            chain.first = slot
        else:
            self.slots[chain.last].next = slot
        chain.last = slot

    def unlink(self, chain, token):
        """Take an item out of its upstream's."""
        item: cython.pointer(RemoteItem) = cython.address(self.slots[cython.cast(uint32_t, token)])
        if item.previous == NOWHERE:
            chain.first = item.next
        else:
            self.slots[item.previous].next = item.next
        if item.next == NOWHERE:
            chain.last = item.previous
        else:
            self.slots[item.next].previous = item.previous
        item.place = BROKEN

    def between(self, chain, first, last):
        """List an upstream's items by their delivery-ids, from the first one to the last one."""
        found: list = []
        at: uint32_t = chain.first
        while at != NOWHERE and cython.cast(int32_t, self.slots[at].incoming_id - last) <= 0:
            if self.slots[at].incoming_id - first <= last - first:
                found.append(self.token_at(at))
            at = self.slots[at].next
        return found

    def drop(self, token):
        """Forget an item that no upstream has."""
        if self.states:
            self.states.pop(token, None)
        self._vacate(cython.cast(uint32_t, token))
        return 0

    def forget(self, chain, token):
        """Take an item out of its upstream's, and forget it."""
        self.unlink(chain, token)
        return self.drop(token)

    def tag_of(self, token):
        """Return what names an item's attempt."""
        item: cython.pointer(RemoteItem) = cython.address(self.slots[cython.cast(uint32_t, token)])
        return bytes_from(item.tag, item.tag_size)

    def state_of(self, token):
        """Return what the consumer said of an item, where that is more than its code."""
        return self.states.get(token) if self.states else None

    def keep_state(self, token, state):
        """Keep what the consumer said of an item; None where its code says it all."""
        if state is not None:
            self.states[token] = state
        elif self.states:
            self.states.pop(token, None)
        return 0

    def clear(self):
        """Forget all items."""
        slot: uint32_t
        for slot in range(self.size):
            if self.slots[slot].place != VACANT:
                self._vacate(slot)
        self.states.clear()
        return 0

    def _vacate(self, slot):
        item: cython.pointer(RemoteItem) = cython.address(self.slots[slot])
        item.stamp += 1
        item.place = VACANT
        item.next = NOWHERE
        if self.free_first == NOWHERE:
            self.free_first = slot
        else:
            self.slots[self.free_last].next = slot
        self.free_last = slot

    def _grow(self):
        at: uint32_t = self.size
        size: uint32_t = at * 2 if at else SLOTS_MIN
        grown: cython.pointer(RemoteItem)
        if size < at:
            raise MemoryError("no room for more items")
        grown = cython.cast(
            cython.pointer(RemoteItem), realloc(self.slots, size * cython.sizeof(RemoteItem))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more items")
        self.slots = grown
        self.size = size
        while at < size:
            grown[at].stamp = 0
            self._vacate(at)
            at += 1
        return 0
