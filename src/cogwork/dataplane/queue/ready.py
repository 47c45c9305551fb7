"""The items that any consumer may get, and those who look through them.

Theory of operation. Ready items stand in one row for each priority, by sequence. A cursor is how far
somebody has looked who leaves items where they are: it pins the last item that it saw, and moves
back by one when that leaves. Where an item comes back to its old place, cursors of such as look for
what suits them move back before it; those of browsers, which saw it, do not.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.chain import clear, is_empty, unlink
from cython.cimports.libc.stdlib import free, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Ready:
    """The ready items of a queue, in order.

    Attributes:
        count: How many there are.
    """

    def __cinit__(self):
        priority: cython.int
        for priority in range(PRIORITIES):
            clear(cython.address(self.rows[priority]))

    def __dealloc__(self):
        free(self.cursors)

    def _insert(self, item, following):
        """Put an item back before `following`, and let those who look only forward see it."""
        at: uint32_t
        cursor: cython.pointer(Cursor)
        prev: cython.pointer(Node)
        self._insert_before(item, following)
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
        unlink(cython.address(item.node))
        if is_empty(cython.address(self.rows[item.priority])):
            self.occupied &= ~(1 << item.priority)
        self.count -= 1

    def merge(self, items, count):
        """Put items, sorted by sequence, into their old places in one pass."""
        at: uint32_t
        priority: cython.int
        item: cython.pointer(Item)
        hints: cython.pointer(Node)[PRIORITIES]
        for priority in range(PRIORITIES):
            hints[priority] = self.rows[priority].next
        for at in range(count):
            item = items[at]
            priority = item.priority
            if (
                self.occupied & (1 << priority)
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
        priority: cython.int = PRIORITIES
        if self.occupied == 0:
            return cython.NULL
        while priority > 0:
            priority -= 1
            if self.occupied & (1 << priority):
                break
        return cython.cast(cython.pointer(Item), self.rows[priority].next)

    def oldest(self):
        """Return the first ready item of the lowest priority; NULL where none is ready."""
        priority: cython.int
        for priority in range(PRIORITIES):
            if self.occupied & (1 << priority):
                return cython.cast(cython.pointer(Item), self.rows[priority].next)
        return cython.NULL

    def after(self, item):
        """Return the ready item that comes after a ready one; NULL after the last."""
        priority: cython.int = item.priority
        if item.node.next != cython.address(self.rows[priority]):
            return cython.cast(cython.pointer(Item), item.node.next)
        while priority > 0:
            priority -= 1
            if self.occupied & (1 << priority):
                return cython.cast(cython.pointer(Item), self.rows[priority].next)
        return cython.NULL

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
        """Return the first ready item that a cursor has not passed; NULL where it saw all."""
        priority: cython.int = PRIORITIES
        node: cython.pointer(Node)
        while priority > 0:
            priority -= 1
            if not self.occupied & (1 << priority):
                continue
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
        return cython.NULL

    def saw(self, cursor, item):
        """Move a cursor past a ready item."""
        if cursor.at[item.priority] != cython.NULL:
            cursor.at[item.priority].pins -= 1
        cursor.at[item.priority] = item
        cursor.seen[item.priority] = item.sequence
        item.pins += 1
