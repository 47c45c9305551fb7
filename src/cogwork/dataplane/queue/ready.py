"""The items that any consumer may get, and those who look through them.

Theory of operation. Ready items stand in one row for each priority, by sequence. A cursor is how far
somebody has looked who leaves items where they are: it pins the last item that it saw, and moves
back by one when that leaves. A bit for each priority says whether anything is ready there: so few
levels cost what one does, and 256 are four words. Where an item comes back to its old place, cursors of such as look for
what suits them move back before it; those of browsers, which saw it, do not.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.chain import clear, is_empty, unlink
from cython.cimports.cogwork.dataplane.queue.stored import (
    AT_REST,
    IS_FIRST_OF_PAGE,
    PRIORITIES_MAX,
    PRIORITY_WORDS,
)
from cython.cimports.libc.stdlib import calloc, free, malloc, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ALL = cython.declare(uint64_t, 0xFFFFFFFFFFFFFFFF)


class Ready:
    """The ready items of a queue, in order.

    Attributes:
        count: How many there are, with those that lie on disk.
    """

    def __cinit__(self):
        self.set_levels(1)

    def __dealloc__(self):
        free(self.cursors)
        free(self.rows)

    def set_levels(self, levels):
        """Tell so many priorities apart; while nothing is ready, and nobody looks."""
        priority: cython.int
        rows: cython.pointer(Node) = cython.cast(
            cython.pointer(Node), malloc(levels * cython.sizeof(Node))
        )
        if rows == cython.NULL:
            raise MemoryError("no room for a queue's priorities")
        for priority in range(levels):
            clear(cython.address(rows[priority]))
        free(self.rows)
        self.rows = rows
        self.levels = levels
        return 0

    def below(self, priority):
        """Return the highest priority below one at which anything is ready; -1 if there is none."""
        word: cython.int = (priority - 1) >> 6
        bits: uint64_t
        if priority <= 0:
            return -1
        bits = self.occupied[word] & (ALL >> (63 - ((priority - 1) & 63)))
        while bits == 0:
            if word == 0:
                return -1
            word -= 1
            bits = self.occupied[word]
        return (word << 6) + 63 - leading_zeros(bits)

    def has_any(self, priority):
        """Return whether anything of a priority is ready."""
        return (self.occupied[priority >> 6] >> (priority & 63)) & 1

    def _insert(self, item, following):
        """Put an item back before `following`, and let those who look only forward see it."""
        at: uint32_t
        cursor: cython.pointer(Cursor)
        prev: cython.pointer(Node)
        self.insert_before(item, following)
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
                if prev != cython.address(self.rows[item.priority]):
                    cursor.at[item.priority] = cython.cast(cython.pointer(Item), prev)
                    cursor.at[item.priority].pins += 1

    def leave(self, item):
        """Take an item out of its row."""
        at: uint32_t
        prev: cython.pointer(Item) = cython.cast(cython.pointer(Item), item.node.prev)
        if item.pins:
            if item.node.prev == cython.address(self.rows[item.priority]):
                prev = cython.NULL
            for at in range(self.cursors_count):
                if self.cursors[at].at[item.priority] == item:
                    self.cursors[at].at[item.priority] = prev
                    if prev != cython.NULL:
                        prev.pins += 1
            item.pins = 0
        if item.paging == IS_FIRST_OF_PAGE:
            self.pages_ahead -= 1
        item.paging = AT_REST
        unlink(cython.address(item.node))
        if is_empty(cython.address(self.rows[item.priority])):
            self.occupied[item.priority >> 6] &= ~(cython.cast(uint64_t, 1) << (item.priority & 63))
        self.count -= 1

    def merge(self, items, count):
        """Put items, sorted by sequence, into their old places in one pass."""
        at: uint32_t
        priority: cython.int
        item: cython.pointer(Item)
        hints: cython.pointer(Node)[PRIORITIES_MAX]
        for priority in range(self.levels):
            hints[priority] = self.rows[priority].next
        for at in range(count):
            item = items[at]
            priority = item.priority
            if (
                self.has_any(priority)
                and cython.cast(cython.pointer(Item), self.rows[priority].prev).sequence
                < item.sequence
            ):
                hints[priority] = cython.address(self.rows[priority])
            while (
                hints[priority] != cython.address(self.rows[priority])
                and cython.cast(cython.pointer(Item), hints[priority]).sequence < item.sequence
            ):
                hints[priority] = hints[priority].next
            self._insert(item, hints[priority])

    def front(self):
        """Return the first ready item of the highest priority; NULL where none is ready."""
        priority: cython.int = 0
        if self.count == 0:
            return cython.NULL
        if self.levels > 1:
            priority = self.below(self.levels)
        return cython.cast(cython.pointer(Item), self.rows[priority].next)

    def oldest(self):
        """Return the first ready item of the lowest priority; NULL where none is ready."""
        word: cython.int
        for word in range(PRIORITY_WORDS):
            if self.occupied[word]:
                return cython.cast(
                    cython.pointer(Item),
                    self.rows[(word << 6) + trailing_zeros(self.occupied[word])].next,
                )
        return cython.NULL

    def after(self, item):
        """Return the ready item that comes after a ready one; NULL after the last."""
        priority: cython.int = item.priority
        if item.node.next != cython.address(self.rows[priority]):
            return cython.cast(cython.pointer(Item), item.node.next)
        priority = self.below(priority)
        if priority < 0:
            return cython.NULL
        return cython.cast(cython.pointer(Item), self.rows[priority].next)

    # -- cursors

    def add_cursor(self, cursor):
        """Keep a cursor right from now on."""
        grown: cython.pointer(cython.pointer(Cursor)) = cython.cast(
            cython.pointer(cython.pointer(Cursor)),
            realloc(self.cursors, (self.cursors_count + 1) * cython.sizeof(cython.pointer(Cursor))),
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more selective consumers")
        self.cursors = grown
        cursor.at = cython.cast(
            cython.pointer(cython.pointer(Item)),
            calloc(self.levels, cython.sizeof(cython.pointer(Item)) + cython.sizeof(uint64_t)),
        )
        if cursor.at == cython.NULL:
            raise MemoryError("no room for more selective consumers")
        # Items and sequences are of one size: the second half is what it has seen.
        cursor.seen = cython.cast(cython.pointer(uint64_t), cursor.at + self.levels)
        self.cursors[self.cursors_count] = cursor
        self.cursors_count += 1
        return 0

    def remove_cursor(self, cursor):
        at: uint32_t
        priority: cython.int
        for at in range(self.cursors_count):
            if self.cursors[at] != cursor:
                continue
            for priority in range(self.levels):
                if cursor.at[priority] != cython.NULL:
                    cursor.at[priority].pins -= 1
            free(cursor.at)
            cursor.at = cython.NULL
            self.cursors_count -= 1
            self.cursors[at] = self.cursors[self.cursors_count]
            return

    def next_unseen(self, cursor):
        """Return the first ready item that a cursor has not passed; NULL where it saw all."""
        priority: cython.int = self.below(self.levels)
        node: cython.pointer(Node)
        while priority >= 0:
            node = self.rows[priority].next
            if cursor.at[priority] != cython.NULL:
                node = cursor.at[priority].node.next
            while node != cython.address(self.rows[priority]):
                if (
                    cursor.rewinds
                    or cython.cast(cython.pointer(Item), node).sequence > cursor.seen[priority]
                ):
                    return cython.cast(cython.pointer(Item), node)
                node = node.next
            priority = self.below(priority)
        return cython.NULL

    def saw(self, cursor, item):
        """Move a cursor past a ready item."""
        if cursor.at[item.priority] != cython.NULL:
            cursor.at[item.priority].pins -= 1
        cursor.at[item.priority] = item
        cursor.seen[item.priority] = item.sequence
        item.pins += 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def leading_zeros(bits: uint64_t) -> cython.int:
    """Count the zeros above the highest bit; there is one."""
    count: cython.int = 0
    width: cython.int = 32
    while width:
        if bits >> (64 - width) == 0:
            count += width
            bits <<= width
        width >>= 1
    return count


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def trailing_zeros(bits: uint64_t) -> cython.int:
    """Count the zeros below the lowest bit; there is one."""
    return 63 - leading_zeros(bits & (~bits + 1))
