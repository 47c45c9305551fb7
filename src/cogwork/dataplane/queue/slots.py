"""Items in memory: made, numbered, and found again by number or by token.

Theory of operation. An item is one block: a struct and the message behind it. It has a slot, whose
stamp changes with every attempt, so that a token (slot and stamp) that has been overtaken finds
nothing. Small blocks are kept when they are freed, for the next items of their size. An item that
lies on disk (`pages`) keeps its slot, and has no block.
"""

import cython
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy, memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

NOWHERE = cython.declare(uint32_t, 0xFFFFFFFF)
SLOTS_MIN = cython.declare(uint32_t, 64)
SLOTS_STEP = cython.declare(uint32_t, 8192)
"""So many are added at once at most: freeing tens of millions would take too long for a turn."""


class Slots:
    """The items of a queue, by slot."""

    def __cinit__(self):
        self.free_first = self.free_last = NOWHERE

    def __dealloc__(self):
        at: uint32_t
        block: cython.pointer(Node)
        for at in range(self.size):
            free(self.slots[at].item)
        for at in range(cython.cast(uint32_t, SPARE_SIZES)):
            while self.spare[at] != cython.NULL:
                block = self.spare[at]
                self.spare[at] = block.next
                free(block)
        free(self.slots)

    def make(self, data, size):
        """Make an item that stands nowhere yet."""
        slot: uint32_t
        item: cython.pointer(Item)
        if self.free_first == NOWHERE:
            self._add_to(self.size + min(max(self.size, SLOTS_MIN), SLOTS_STEP))
        item = self._new_block(size)
        memset(item, 0, cython.sizeof(Item))
        memcpy(item.data, data, size)
        slot = self.free_first
        self.free_first = self.slots[slot].next_free
        self.slots[slot].item = item
        item.slot = slot
        item.birth = self.slots[slot].stamp
        item.size = size
        return item

    def make_again(self, number, data, size):
        """Make an item that had this number in an earlier life; `settle` comes after the last."""
        if not self.reserve(number):
            raise ValueError("two items with one number")
        return self._put_block(number, data, size)

    def reserve(self, number):
        """Keep the slot of an item of an earlier life; say whether nobody has it."""
        slot: uint32_t = cython.cast(uint32_t, number)
        if slot >= self.size:
            self._add_to(cython.cast(uint64_t, slot) + 1)
            # `settle` chains what is free: until then the chain would go through this one.
            self.free_first = self.free_last = NOWHERE
        if self.slots[slot].item != cython.NULL or self.slots[slot].next_free == IS_PAGED:
            return False
        self.slots[slot].next_free = IS_PAGED
        return True

    def page_in(self, number, data, size):
        """Give an item that lay on disk its message again; it stands nowhere yet."""
        return self._put_block(number, data, size)

    def _put_block(self, number, data, size):
        slot: uint32_t = cython.cast(uint32_t, number)
        item: cython.pointer(Item) = self._new_block(size)
        memset(item, 0, cython.sizeof(Item))
        memcpy(item.data, data, size)
        self.slots[slot].item = item
        self.slots[slot].next_free = NOWHERE
        item.slot = slot
        item.birth = cython.cast(uint32_t, number >> 32)
        item.size = size
        return item

    def page_out(self, item):
        """Give up an item's block, as it lies on disk; its number is still its own."""
        self.slots[item.slot].item = cython.NULL
        self.slots[item.slot].next_free = IS_PAGED
        self._free_block(item)

    def drop_paged(self, number):
        """Give up an item that lies on disk."""
        slot: uint32_t = cython.cast(uint32_t, number)
        self.slots[slot].stamp += 1
        self._free_slot(slot)

    def replace(self, item, data, size):
        """Give an item another message, in another block.

        None but its neighbours in a list may know where it is: it is out, or in doubt.
        """
        moved: cython.pointer(Item) = self._new_block(size)
        moved[0] = item[0]
        memcpy(moved.data, data, size)
        moved.size = size
        moved.node.prev.next = cython.address(moved.node)
        moved.node.next.prev = cython.address(moved.node)
        self.slots[moved.slot].item = moved
        self._free_block(item)
        return moved

    def settle(self, first_stamp):
        """Have new items get numbers above all of an earlier life; no token is out yet."""
        at: uint32_t
        self.first_stamp = first_stamp
        self.free_first = self.free_last = NOWHERE
        for at in range(self.size):
            self.slots[at].stamp = first_stamp
            if self.slots[at].item == cython.NULL and self.slots[at].next_free != IS_PAGED:
                self._free_slot(at)

    def highest_stamp(self):
        """Return a number that no stamp is above."""
        at: uint32_t
        highest: uint32_t = self.first_stamp
        for at in range(self.size):
            highest = max(highest, self.slots[at].stamp)
        return highest

    def drop(self, item):
        """Free an item; neither its number nor its token finds anything any more."""
        self.slots[item.slot].stamp += 1
        self._free_slot(item.slot)
        self._free_block(item)

    def next_item(self, slot):
        """Walk over all items by slot; move `slot` past the one it returns, NULL at the end."""
        return self.next_item_before(slot, self.size)

    def next_item_before(self, slot, end):
        """Do the same up to a slot: what lies on disk has many, and nothing to return."""
        at: uint32_t = slot[0]
        end = min(end, self.size)
        while at < end and self.slots[at].item == cython.NULL:
            at += 1
        slot[0] = at + 1 if at < end else at
        return self.slots[at].item if at < end else cython.NULL

    def _new_block(self, size):
        """Return memory for an item: small blocks come from those that were freed before."""
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
        """Queue a slot for use: in turn, so that the items of a batch have consecutive tokens."""
        self.slots[slot].item = cython.NULL
        self.slots[slot].next_free = NOWHERE
        if self.free_first == NOWHERE:
            self.free_first = slot
        else:
            self.slots[self.free_last].next_free = slot
        self.free_last = slot

    def _add_to(self, size):
        """Have so many slots at least, and free those that are new."""
        capacity: uint64_t = self.capacity if self.capacity else SLOTS_MIN
        grown: cython.pointer(Slot)
        if size > NOWHERE - 1:
            raise MemoryError("no room for more messages")
        while capacity < size:
            capacity *= 2
        if capacity > self.capacity:
            grown = cython.cast(
                cython.pointer(Slot), realloc(self.slots, capacity * cython.sizeof(Slot))
            )
            if grown == cython.NULL:
                raise MemoryError("no room for more messages")
            self.slots = grown
            self.capacity = min(capacity, NOWHERE)
        while self.size < size:
            self.slots[self.size].stamp = self.first_stamp
            self._free_slot(self.size)
            self.size += 1
        return 0
