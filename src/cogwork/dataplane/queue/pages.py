"""What a queue on disk holds beyond memory: its items lie in page files, and come back in order.

Theory of operation. A queue that holds more than memory may have gives up the messages that it needs
last: a run of ready items from a level's end, none of which was ever given out. `gather` writes them
into blocks; once the file that has them is durable, `settle` takes the items out of memory. In their
place stands one item for each block, a *page*, so that order, levels and cursors stay what they are.
Of each paged item 16 octets stay, beside its slot: its number, so that nobody else gets it and a
purge knows it; its place, so that a page can be parted where an item comes back into its middle;
and its size.

As consumers come nearer, pages are fetched ahead, a few at a time: whoever reads the files is told of
each by `on_wanted`, and hands over its block by `page_in`. Where somebody who cannot wait comes to a
page, `read` has its block at once. What consumers see does not depend on any of this.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u32,
    load_u64,
    octets_of,
    store_u32,
    store_u64,
)
from cython.cimports.cogwork.dataplane.queue.chain import Node
from cython.cimports.cogwork.dataplane.queue.journal import AGES_MARK, PUT_BYTES, Journal
from cython.cimports.cogwork.dataplane.queue.stored import (
    AGES,
    AT_REST,
    IS_FIRST_OF_PAGE,
    IS_WRITTEN,
    READY,
    number_of,
)
from cython.cimports.cogwork.dataplane.queue.timers import Timer, TimerHeap
from cython.cimports.libc.stdlib import calloc, free, malloc

__all__ = ("INDEX_ENTRY_BYTES", "SOURCE_HASH", "Block", "Page", "PagedItems", "Pages")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

INDEX_ENTRY_BYTES = INDEX_BYTES
"""What a page file's index says of an item: its number, 8 octets; its place, 8; its size, 4."""

BLOCK_BYTES = cython.declare(uint64_t, 1 << 20)
"""What is read at once; a larger message has a block of its own."""

EXPIRING_MAX = cython.declare(cython.int, 16)
"""Pages that are fetched in one tick because something in them has expired."""


class PagedItems:
    """What stays in memory of the items of one page file.

    Attributes:
        count: How many they were.
    """

    def __init__(self, index: bytes = b""):
        """Read a file's index.

        Args:
            index: Of each item number, place and size.
        """
        at: uint32_t
        p: octets = octets_of(index)
        first: uint64_t = load_u64(p + 8) if index else 0
        self.allot(cython.cast(uint32_t, len(index) // INDEX_BYTES))
        for at in range(self.count):
            self.items[at].number = load_u64(p)
            self.items[at].place = cython.cast(uint32_t, load_u64(p + 8) - first)
            self.items[at].size = load_u32(p + 16)
            p += INDEX_BYTES

    def __dealloc__(self):
        free(self.items)

    def allot(self, count):
        free(self.items)
        self.items = cython.cast(
            cython.pointer(PagedItem), malloc((count + 1) * cython.sizeof(PagedItem))
        )
        if self.items == cython.NULL:
            raise MemoryError("no room for what is known of paged messages")
        self.count = count
        return 0


class Block:
    """Some items of a run, as they are written.

    Attributes:
        first: Which of the run's items is its first.
        count: How many it has.
        stored_ms: When the first of them came, by the wall clock.
        expires_ms: When the first of them expires; 0 where none does.
        data: Each item: who sent it, 4 octets, and its entry PUT of the journal.
    """


class Page:
    """Items of one block that stand together, out of memory.

    Attributes:
        file: The number of the file that has them.
        block: Which of its blocks.
        first: Which of the file's items is the first one.
        count: How many they are.
        is_wanted: Whether somebody is to fetch it.
    """

    def first_sequence(self):
        return self.sequence_base + self.items.items[self.first].place

    def last_sequence(self):
        return self.sequence_base + self.items.items[self.first + self.count - 1].place

    def size_bytes(self):
        at: uint32_t
        size: uint64_t = 0
        for at in range(self.first, self.first + self.count):
            size += self.items.items[at].size
        return size


class Pages:
    """The pages of one queue.

    Attributes:
        count: How many items lie on disk.
        size_bytes: The sum of their sizes.
        is_writing: Whether a run is being written.
        run_level: The level that it is of.
        on_wanted: Called with a page that is to be fetched; None where nobody can.
        read: Returns a page's block at once; None where nobody can.
        released: The numbers of files that had items, and have none any more.
    """

    def __init__(self, slots: Slots, ready: Ready, expiries: TimerHeap):
        """Have none.

        Args:
            slots: The queue's items.
            ready: Those that stand in order.
            expiries: When they expire.
        """
        self.slots = slots
        self.ready = ready
        self.expiries = expiries
        self.page_expiries = TimerHeap()
        self.by_id = {}
        self.rows = {}
        self.wanted = []
        self.uses = {}
        self.released = []

    def __dealloc__(self):
        page: Page
        if self.by_id is not None:
            for page in self.by_id.values():
                free(page.stand)

    # -- out of memory

    def gather(self, journal: Journal, size_bytes: int) -> list:
        """Write a run of items into blocks; `settle` or `give_up` comes next.

        Args:
            journal: The queue's.
            size_bytes: About as much.

        Returns:
            The blocks; empty where there is no run worth it.
        """
        first: cython.pointer(Item)
        last: cython.pointer(Item)
        assert not self.is_writing
        if not self._find_run(size_bytes, cython.address(first), cython.address(last)):
            return []
        self._write_run(journal, first, last)
        self.is_writing = True
        return self.blocks

    def index(self) -> bytes:
        """Return what a file's index says of the run that is being written."""
        at: uint32_t
        entry: uint8_t[INDEX_BYTES]
        parts: list = []
        base: uint64_t = cython.cast(uint64_t, self.run_base)
        for at in range(self.run.count):
            store_u64(entry, self.run.items[at].number)
            store_u64(entry + 8, base + self.run.items[at].place)
            store_u32(entry + 16, self.run.items[at].size)
            parts.append(bytes_from(entry, INDEX_BYTES))
        return b"".join(parts)

    def _find_run(self, size_bytes, first, last):
        """Find the items that are needed last: of the lowest level where there are enough."""
        level: cython.int
        for level in range(self.ready.levels):
            if self.ready.has_any(level) and self._find_run_at(level, size_bytes, first, last):
                return True
        return False

    def _find_run_at(self, level, size_bytes, first, last):
        """Find a run at the end of a level, or before its last pages.

        What stands before all pages is what comes next: as much as a run stays of it.
        """
        head: cython.pointer(Node) = cython.address(self.ready.rows[level])
        node: cython.pointer(Node) = head.prev
        item: cython.pointer(Item)
        size: uint64_t = 0
        first[0] = last[0] = cython.NULL
        while node != head and size < 2 * size_bytes:
            item = cython.cast(cython.pointer(Item), node)
            node = node.prev
            if item.state == PAGED:
                if 8 * size >= size_bytes:
                    return True
                size = 0
                first[0] = last[0] = cython.NULL
            elif is_fresh(item):
                if size < size_bytes:
                    first[0] = item
                if last[0] == cython.NULL:
                    last[0] = item
                size += item.size + cython.sizeof(Item)
        return size >= 2 * size_bytes

    def _write_run(self, journal, first, last):
        """Write the fresh items from one to another into blocks, and mark them."""
        item: cython.pointer(Item) = first
        count: uint32_t = 0
        scratch: Journal = Journal(journal.core, journal.sequence_base)
        scratch.is_dirty = True
        block: Block = None
        p: cython.pointer(uint8_t)
        while True:
            count += is_fresh(item)
            if item == last:
                break
            item = cython.cast(cython.pointer(Item), item.node.next)
        self.run = PagedItems()
        self.run.allot(count)
        self.run_level = first.priority
        self.run_base = first.sequence + journal.sequence_base
        self.run_offset_s = scratch.wall_offset_s
        self.blocks = []
        count = 0
        item = first
        while True:
            if is_fresh(item):
                if block is None:
                    block = Block.__new__(Block)
                    block.first = count
                    block.stored_ms = scratch.wall_ms(item.stored_s)
                item.paging = IS_WRITTEN
                self.run.items[count].number = number_of(item)
                self.run.items[count].place = cython.cast(uint32_t, item.sequence - first.sequence)
                self.run.items[count].size = item.size
                if item.expires_s != 0.0:
                    expires_ms: uint64_t = scratch.wall_ms(item.expires_s)
                    if block.expires_ms == 0 or expires_ms < block.expires_ms:
                        block.expires_ms = expires_ms
                p = scratch.reserve(ORIGIN_BYTES)
                store_u32(p, item.origin)
                scratch.put(item)
                block.count += 1
                count += 1
            if block is not None and (scratch.size >= BLOCK_BYTES or item == last):
                scratch.parts.append(scratch.cut())
                block.data = b"".join(scratch.parts)
                scratch.parts = []
                self.blocks.append(block)
                block = None
            if item == last:
                return 0
            item = cython.cast(cython.pointer(Item), item.node.next)

    def give_up(self) -> None:
        """Keep the run in memory: it could not be written."""
        at: uint32_t
        item: cython.pointer(Item)
        if not self.is_writing:
            return
        for at in range(self.run.count):
            item = self.slots.find(self.run.items[at].number)
            if item != cython.NULL and item.paging == IS_WRITTEN:
                item.paging = AT_REST
        self._end_run()

    def settle(self, file: int, journal: Journal) -> None:
        """Take what was written out of memory, as its file is durable, and write down where it is.

        What was given out meanwhile, or has gone, stays what it is.

        Args:
            file: The file's number.
            journal: The queue's.
        """
        block: Block
        number: uint32_t = 0
        if self.is_writing:
            for block in self.blocks:
                self._settle_block(file, number, block, journal)
                number += 1
            self._end_run()

    def _settle_block(self, file, number, block, journal):
        """Make pages of what is left of a block: items that lie next to each other here, too."""
        at: uint32_t
        page: Page = None
        item: cython.pointer(Item)
        for at in range(block.first, block.first + block.count):
            item = self.slots.find(self.run.items[at].number)
            if item == cython.NULL or item.paging != IS_WRITTEN:
                continue
            if not stays(item):
                item.paging = AT_REST
                continue
            if page is None or not (
                item.node.prev == cython.address(page.stand.node) and page.first + page.count == at
            ):
                self._end_page(page, journal)
                page = self._begin(file, number, at, item)
                page.block_first = block.first
                if block.expires_ms:
                    page.expires_s = block.expires_ms * 0.001 - self.run_offset_s
            page.count += 1
            page.stand.sequence = item.sequence
            self.count += 1
            self.size_bytes += item.size
            self.ready.leave(item)
            self.ready.count += 1
            self.slots.page_out(item)
        return self._end_page(page, journal)

    def _end_page(self, page, journal):
        """Have a page found that has all its items, and write down where they are."""
        if page is None:
            return 0
        journal.paged(page.file, page.first, page.count, page.last_sequence())
        return self._note(page)

    def _begin(self, file, block, at, following):
        """Make a page, which is empty yet, before an item."""
        page: Page = Page.__new__(Page)
        page.file = file
        page.block = block
        page.first = at
        page.items = self.run
        page.level = following.priority
        page.sequence_base = following.sequence - self.run.items[at].place
        page.wall_offset_s = self.run_offset_s
        self._stand(page, cython.address(following.node))
        return page

    def _note(self, page):
        """Have a page found by its level, and by the time when something in it expires."""
        row: list = self.rows.setdefault(page.level, [])
        at: cython.Py_ssize_t = len(row)
        while at > 0 and cython.cast(Page, row[at - 1]).first_sequence() > page.first_sequence():
            at -= 1
        row.insert(at, page)
        if page.expires_s != 0.0:
            self.page_expiries.push(page.expires_s, page.id)
        return 0

    def _end_run(self):
        self.run = None
        self.blocks = None
        self.is_writing = False
        return 0

    # -- back into memory

    def want(self, stand):
        """Have a page fetched that somebody has come to, and those that follow."""
        page: Page = self.by_id[stand.group_key]
        self._want(page)
        return self.top_up()

    def _want(self, page):
        row: list
        if page.is_wanted or self.on_wanted is None:
            return 0
        page.is_wanted = True
        row = self.rows[page.level]
        row.remove(page)
        self.wanted.append(page)
        self.ready.pages_ahead += 1
        self.on_wanted(page)
        return 0

    def top_up(self):
        """Have pages fetched ahead, the next ones of the highest level that has any."""
        level: cython.int
        row: list
        if self.on_wanted is None:
            return 0
        for level in range(self.ready.levels - 1, -1, -1):
            row = self.rows.get(level)
            while row and self.ready.pages_ahead < AHEAD:
                self._want(row[0])
            if row:
                return 0
        return 0

    def page_in(self, page: Page, data: bytes) -> None:
        """Put a page's items back into memory, in its place.

        Args:
            page: One that was wanted; where it has gone meanwhile nothing happens.
            data: Its block.

        Raises:
            ValueError: That is no such block.
        """
        if self.by_id.get(page.id) is page:
            self._bring(page, octets_of(data), len(data))

    def fetch(self, stand):
        """Put a page's items back into memory at once; return the first of them."""
        page: Page = self.by_id[stand.group_key]
        number: uint64_t = page.items.items[page.first].number
        if self.read is None:
            raise ValueError("nobody can read what this queue has on disk")
        data: bytes = self.read(page)
        self._bring(page, octets_of(data), len(data))
        return self.slots.find(number)

    def _bring(self, page, p, size):
        at: uint32_t
        taken: int64_t = 0
        known: cython.pointer(PagedItem)
        item: cython.pointer(Item)
        start: octets = p
        for at in range(page.block_first, page.first + page.count):
            known = page.items.items + at
            if at == page.first:
                start = p + taken
            if (
                size - taken < ORIGIN_BYTES + PUT_BYTES + cython.cast(int64_t, known.size)
                or load_u64(p + taken + ORIGIN_BYTES + 1) != known.number
                or load_u32(p + taken + ORIGIN_BYTES + 47) != known.size
            ):
                raise ValueError(f"no item {known.number} in block {page.block}")
            taken += ORIGIN_BYTES + PUT_BYTES + cython.cast(int64_t, known.size)
        for at in range(page.first, page.first + page.count):
            known = page.items.items + at
            item = self._bring_one(page, start, known)
            if at == page.first:
                item.paging = IS_FIRST_OF_PAGE
            start += ORIGIN_BYTES + PUT_BYTES + known.size
        if not page.is_wanted:
            self.ready.pages_ahead += 1
        return self._leave(page)

    def _bring_one(self, page, p, known):
        """Make an item again that a block has, in its place before the page."""
        item: cython.pointer(Item)
        put: octets = p + ORIGIN_BYTES
        expires_ms: uint64_t = load_u64(put + 25)
        item = self.slots.page_in(known.number, put + PUT_BYTES, known.size)
        item.sequence = page.sequence_base + known.place
        item.priority = page.level
        item.origin = load_u32(p)
        item.stored_s = load_u64(put + 17) * 0.001 - page.wall_offset_s
        item.format = load_u32(put + 41)
        if put[46] & AGES_MARK:
            item.flags |= AGES
        if expires_ms:
            item.expires_s = expires_ms * 0.001 - page.wall_offset_s
        if page.restored_s != 0.0:  # as of all others, in `Restoration`
            waits_s: cython.double = max(item.expires_s - item.stored_s, 0.0)
            item.origin = 0
            item.stored_s = min(item.stored_s, page.restored_s)
            if expires_ms:
                item.expires_s = min(item.expires_s, page.restored_s + waits_s)
        if expires_ms:
            self.expiries.push(item.expires_s, known.number)
        self.ready.insert_before(item, cython.address(page.stand.node))
        return item

    def _leave(self, page):
        """Take a page out of the order; its items are there again, or have gone."""
        del self.by_id[page.id]
        if page.is_wanted:
            self.wanted.remove(page)
        else:
            cython.cast(list, self.rows[page.level]).remove(page)
        self.count -= page.count
        self.size_bytes -= page.size_bytes()
        self.uses[page.file] -= 1
        if not self.uses[page.file]:
            del self.uses[page.file]
            self.released.append(page.file)
        self.ready.leave(page.stand)
        self.ready.count -= page.count - 1
        free(page.stand)
        page.stand = cython.NULL
        return 0

    def want_expired(self, now_s):
        """Have pages fetched in which something has expired: it is for others to say of what."""
        timer: Timer
        page: Page
        left: cython.int = EXPIRING_MAX
        while left and self.page_expiries.pop_due(now_s, cython.address(timer)):
            page = self.by_id.get(timer.number)
            if page is not None:
                self._want(page)
                left -= 1
        return 0

    # -- parts of pages

    def part(self, level, sequence):
        """Part the page in whose middle an item of a level has its place, if there is one."""
        page: Page
        at: uint32_t = 0
        for page in self.wanted:
            if page.level == level and page.first_sequence() < sequence < page.last_sequence():
                break
        else:
            page = _last_before(self.rows.get(level), sequence)
            if page is None or page.last_sequence() < sequence:
                return 0
        while page.sequence_base + page.items.items[page.first + at].place < sequence:
            at += 1
        return self._part(page, at)

    def _part(self, page, count):
        """Make a page of the first items of another one.

        Cursors that have passed the other one have passed both.
        """
        part: Page = Page.__new__(Page)
        part.file = page.file
        part.block = page.block
        part.block_first = page.block_first
        part.items = page.items
        part.first = page.first
        part.count = count
        part.level = page.level
        part.sequence_base = page.sequence_base
        part.expires_s = page.expires_s
        part.wall_offset_s = page.wall_offset_s
        part.restored_s = page.restored_s
        page.first += count
        page.count -= count
        self._stand(part, cython.address(page.stand.node))
        return self._note(part)

    def _stand(self, page, following):
        """Give a page its place, with what it has by now."""
        stand: cython.pointer(Item) = cython.cast(
            cython.pointer(Item), calloc(1, cython.sizeof(Item))
        )
        if stand == cython.NULL:
            raise MemoryError("no room for a page of messages")
        self.last_id += 1
        page.id = self.last_id
        page.stand = stand
        stand.priority = page.level
        stand.group_key = page.id
        if page.count:
            stand.sequence = page.last_sequence()
        self.ready.insert_before(stand, following)
        stand.state = PAGED
        self.ready.count -= 1
        self.by_id[page.id] = page
        self.uses[page.file] = self.uses.get(page.file, 0) + 1
        return 0

    # -- all of them

    def add(self, page, first_sequence):
        """Have a page stand behind all that is there, as after a restart."""
        page.sequence_base = first_sequence - page.items.items[page.first].place
        self._stand(page, cython.address(self.ready.rows[page.level]))
        self.ready.count += page.count
        self.count += page.count
        self.size_bytes += page.size_bytes()
        return self._note(page)

    def in_order(self):
        """List all pages, those of a level in order."""
        row: list
        found: list = list(self.wanted)
        for row in self.rows.values():
            found.extend(row)
        return found

    def files(self) -> set:
        """Return the numbers of the files that anything is in."""
        return set(self.uses)

    def count_of(self, stand):
        """Count the items of a page by what stands for it."""
        return cython.cast(Page, self.by_id[stand.group_key]).count

    def purge(self):
        """Give up a page's items; return their numbers, and the sum of their sizes as the last."""
        at: uint32_t
        page: Page = next(iter(self.by_id.values()))
        size_bytes: uint64_t = page.size_bytes()
        numbers: list = []
        for at in range(page.first, page.first + page.count):
            numbers.append(page.items.items[at].number)
            self.slots.drop_paged(page.items.items[at].number)
        if page.is_wanted:
            self.ready.pages_ahead -= 1
        self._leave(page)
        numbers.append(size_bytes)
        return numbers

    def clear(self):
        """Forget all of them, and what is being written."""
        self.give_up()
        while self.by_id:
            self.purge()
        self.page_expiries.rebuild(0)
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def stays(item: cython.pointer(Item)) -> cython.bint:
    """Return whether an item is ready, and nobody has had it or looks at it."""
    return (
        item.state == READY
        and item.attempt == 0
        and item.failures == 0
        and item.acquisitions == 0
        and item.pins == 0
        and item.group == cython.NULL
        and item.flags & ~cython.cast(uint8_t, AGES) == 0
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_fresh(item: cython.pointer(Item)) -> cython.bint:
    """Return whether an item may be paged out."""
    return item.paging != IS_WRITTEN and stays(item)


def _last_before(row: object, sequence: object) -> Page:
    """Find the last page of a row that begins before a sequence; None where none does."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = len(row) if row else 0
    middle: cython.Py_ssize_t
    before: uint64_t = sequence
    while low < high:
        middle = (low + high) // 2
        if cython.cast(Page, row[middle]).first_sequence() < before:
            low = middle + 1
        else:
            high = middle
    return row[low - 1] if low else None
