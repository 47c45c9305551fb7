"""A queue's items written down anew, and made again of what was written down.

Theory of operation. After a restart an item whose attempt had begun is in doubt, with that attempt:
its consumer may come back with its tag. All others are ready in their old order, or delayed for as
long as they still were. New items get numbers that no item has had before, so that no old tag names
a new item.

A checkpoint first writes what is known of items that are no more, then goes through the items slot
by slot, some in each turn, while the queue goes on: what comes into being or changes behind it is
in the records of the turns since it began.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from operator import attrgetter

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.envelope import (
    WANTS_GROUP_ID,
    Envelope,
    read_any_envelope,
)
from cython.cimports.cogwork.dataplane.queue.chain import Node, clear, is_empty
from cython.cimports.cogwork.dataplane.queue.forward_dedup import ForwardDedup
from cython.cimports.cogwork.dataplane.queue.item_table import ItemTable, is_away
from cython.cimports.cogwork.dataplane.queue.journal import PUT_BYTES, cogwork_wall_offset_s
from cython.cimports.cogwork.dataplane.queue.pages import ORIGIN_BYTES, Page, PagedItems
from cython.cimports.cogwork.dataplane.queue.recent import cogwork_hash
from cython.cimports.cogwork.dataplane.queue.state import ATTEMPTS_JUMP
from cython.cimports.cogwork.dataplane.queue.stored import (
    ACQUIRED,
    AGES,
    ASIDE,
    DELAYED,
    HANDED,
    IN_DOUBT,
    PARKED,
    READY,
    number_of,
)
from cython.cimports.cogwork.dataplane.system import clock_s

__all__ = ("SOURCE_HASH", "Checkpoint", "restore")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SLOTS_AT_ONCE = cython.declare(uint32_t, 1 << 19)
"""Slots that a checkpoint looks at in one turn: of items on disk there may be millions."""


def restore(store: Store, image: JournalImage, files: object = None) -> None:
    """Fill an empty store with what was written down.

    Args:
        store: Without consumers and without a journal yet.
        image: What the records add up to.
        files: Opens the queue's page files by number; None where it has none.
    """
    restoration: Restoration = Restoration(store)
    restoration.run(image, files)


def _in_order(items: list) -> list:
    """Order items as they stood: behind what came before their delay was over, where they had one.

    That a delay is over is not written down, so such an item has no place of its own.
    """
    kept: KeptItem
    found: list = []
    standing: list = sorted((each for each in items if not each.due_ms), key=attrgetter("sequence"))
    delayed: object = deque(
        sorted((each for each in items if each.due_ms), key=attrgetter("due_ms", "sequence"))
    )
    for kept in standing:
        while delayed and cython.cast(KeptItem, delayed[0]).due_ms < kept.stored_ms:
            found.append(delayed.popleft())
        found.append(kept)
    found.extend(delayed)
    return found


class PageFile:
    """A page file, as a restart reads it."""

    def __init__(self, source: object):
        """Read what it says of itself.

        Args:
            source: The file; its `read` returns a block.
        """
        self.source = source
        self.level = source.level
        self.blocks = source.blocks
        self.items = PagedItems(source.index)

    def put_of(self, block, at):
        """Return where the entry PUT of an item is; good until the next one is looked for."""
        if self.data is None or self.block != block or self.at > at:
            self.data = self.source.read(block)
            self.block = block
            self.at = self.blocks[block].first
            self.offset = 0
        while self.at < at:
            self.offset += ORIGIN_BYTES + PUT_BYTES + self.items.items[self.at].size
            self.at += 1
        size: int64_t = ORIGIN_BYTES + PUT_BYTES + cython.cast(int64_t, self.items.items[at].size)
        if self.offset + size > cython.cast(int64_t, len(self.data)):
            raise ValueError(f"a block ends before item {at}")
        return octets_of(self.data) + self.offset + ORIGIN_BYTES


class PagesRestoration:
    """Finds what stays on disk, and completes what the records tell of items that lie there.

    The newest page that has an item counts. What the records know is restored as any other item.
    """

    def __init__(self, store: Store, image: JournalImage, files: object):
        """Find nothing yet.

        Args:
            store: Where the items belong.
            image: What the records add up to; it is completed.
            files: Opens page files by number.
        """
        self.store = store
        self.image = image
        self.files = files
        self.opened = {}
        self.found = []
        self.wall_offset_s = cogwork_wall_offset_s()
        self.now_s = clock_s()

    def run(self) -> list:
        """Return an item with a page for each of them."""
        kept: KeptItem
        parted: list = []
        places: dict = {}
        for paged in reversed(self.image.pages):
            self._take_range(paged)
        for number in [each.number for each in self.image.items.values() if each.message is None]:
            del self.image.items[number]  # what no file has is not known
        for kept in self.image.items.values():
            if not kept.due_ms:
                places.setdefault(kept.priority, []).append(kept.sequence)
        for each in places.values():
            each.sort()
        for kept in self.found:
            parted.extend(self._parted(kept, places.get(kept.priority, [])))
        return parted

    def _open(self, number):
        file: PageFile = self.opened.get(number)
        if file is None:
            file = PageFile(self.files.open(number))
            self.opened[number] = file
        return file

    def _take_range(self, paged):
        """Take what is left of a range."""
        at: uint32_t
        block: uint32_t = 0
        end: uint32_t = paged.first + paged.count
        kept: KeptItem = None
        file: PageFile = self._open(paged.file)
        if paged.count == 0 or end > file.items.count or end < paged.first:
            raise ValueError(f"page file {paged.file} has {file.items.count} items, not {end}")
        base: uint64_t = paged.place - file.items.items[end - 1].place
        for at in range(paged.first, end):
            while at >= file.blocks[block].first + file.blocks[block].count:
                block += 1
                kept = None
            if not self._take_one(file, block, at, base + file.items.items[at].place):
                kept = None
                continue
            if kept is None:
                kept = self._begin(file, paged.file, block, at, base + file.items.items[at].place)
                self.found.append(kept)
            cython.cast(Page, kept.page).count += 1
        return 0

    def _take_one(self, file, block, at, place):
        """Say whether an item stays on disk; give it its message where its records know of it."""
        number: uint64_t = file.items.items[at].number
        size: uint32_t = file.items.items[at].size
        store: Store = self.store
        kept: KeptItem
        may_stay: cython.bint = (
            not store.wants & WANTS_GROUP_ID
            and store.audit_events is None
            and file.level < store.items.ready.levels
        )
        if self.image.gone and number in self.image.gone:
            return False
        kept = self.image.items.get(number) if self.image.items else None
        if kept is None and not may_stay:
            kept = self.image.add_elsewhere(number)
        elif kept is not None and may_stay and kept.is_as_paged(place, size):
            del self.image.items[number]
            kept = None
        if kept is not None:
            if kept.is_elsewhere or kept.keeps_place:
                kept.complete(file.put_of(block, at), place, size)
            return False
        return store.items.slots.reserve(number)

    def _begin(self, file, number, block, at, place):
        """Make a page, which is empty yet, and an item that has its place among others."""
        page: Page = Page.__new__(Page)
        kept: KeptItem = KeptItem.__new__(KeptItem)
        facts: object = file.blocks[block]
        page.file = number
        page.block = block
        page.block_first = facts.first
        page.first = at
        page.items = file.items
        page.level = file.level
        page.restored_s = self.now_s
        page.wall_offset_s = self.wall_offset_s
        if facts.expires_ms:
            page.expires_s = min(
                facts.expires_ms * 0.001 - self.wall_offset_s,
                self.now_s + max(0, facts.expires_ms - facts.stored_ms) * 0.001,
            )
        kept.page = page
        kept.sequence = place
        kept.stored_ms = facts.stored_ms
        kept.priority = file.level
        return kept

    def _parted(self, kept, places):
        """Part a page where other items have their places in its middle."""
        page: Page = kept.page
        base: uint64_t = kept.sequence - page.items.items[page.first].place
        last: uint64_t = base + page.items.items[page.first + page.count - 1].place
        part: KeptItem
        at: uint32_t
        found: list = [kept]
        for place in places[bisect_right(places, kept.sequence) : bisect_left(places, last)]:
            page = cython.cast(KeptItem, found[len(found) - 1]).page
            at = page.first
            while at < page.first + page.count and base + page.items.items[at].place < place:
                at += 1
            if page.first < at < page.first + page.count:
                part = self._begin(
                    self._open(page.file),
                    page.file,
                    page.block,
                    at,
                    base + page.items.items[at].place,
                )
                cython.cast(Page, part.page).count = page.first + page.count - at
                page.count = at - page.first
                found.append(part)
        return found


class Restoration:
    """Makes items again."""

    def __init__(self, store: Store):
        """Make none yet.

        Args:
            store: Where they belong.
        """
        self.store = store
        self.wall_offset_s = cogwork_wall_offset_s()
        self.now_s = clock_s()
        self.recovered = []
        clear(cython.address(self.absent_consumer.in_flight))
        clear(cython.address(self.absent_consumer.owned_groups))
        clear(cython.address(self.absent_consumer.waiting_groups))

    def run(self, image: JournalImage, files: object = None) -> None:
        """Make all of them."""
        store: Store = self.store
        kept: KeptItem
        now_ms: uint64_t = cython.cast(uint64_t, (self.now_s + self.wall_offset_s) * 1000.0)
        # A log takes its time to be read: what is in doubt must not time out at once.
        store.ticked_s = max(store.ticked_s, self.now_s)
        pages: list = PagesRestoration(store, image, files).run() if image.pages else []
        for kept in _in_order([*image.items.values(), *pages]):
            if kept.page is not None:
                self._restore_page(kept.page)
                continue
            # What has gone out was due: no clock that was set back has it wait once more. Of what
            # was given to another container before it was due that is not known; it waits on.
            is_kept: cython.bint = not kept.is_out or store.redelivers_in_doubt
            self._restore(kept, kept.due_ms > now_ms and kept.attempt == 0 and is_kept)
        self._number_on(image)
        self._mark_in_doubt()
        store.items.slots.settle(image.birth_base)
        if store.audit_events is not None:
            store.audit_events.sequence_base = store.journal.sequence_base if store.journal else 0
            store.audit_events.restore(image.unreported)
        now: uint32_t = cython.cast(uint32_t, now_ms // 1000)
        for number, attempt, at_s in image.commits.remembered(0):
            store.commits.add(number, attempt, min(at_s, now) or now)
        for key in image.dead_letter_dedup.remembered():
            store.dead_letter_dedup.remember(key)
        forwards: list = image.forwards.rows()
        if forwards:
            store.forwards = ForwardDedup()
            store.forwards.restore_rows(forwards)
        if store.recent is not None:
            for seen_ms, message_id in image.seen:
                seen_s: cython.double = min(self._at(seen_ms), self.now_s)
                if not store.recent.saw(octets_of(message_id), len(message_id), seen_s):
                    store.recent.remember(seen_s)

    def _restore_page(self, page):
        """Have items stand in the queue that stay on disk."""
        items: ItemTable = self.store.items
        items.pages.add(page, items.next_sequence + 1)
        items.next_sequence = page.last_sequence()
        items.depth += page.count
        items.size_bytes += page.size_bytes()
        return 0

    def _number_on(self, image):
        """Have attempts go on beyond all that may have been made, whether that was written or not."""
        store: Store = self.store
        kept: KeptItem
        base: uint32_t = image.attempt_base
        if store.delivers_ahead and image.has_records:
            for kept in image.items.values():
                base = max(base, kept.attempt)
            base = (base // ATTEMPTS_JUMP + 1) * ATTEMPTS_JUMP
        store.attempt_base = base
        if base != image.attempt_base and store.journal is not None:
            store.journal.attempts(base)
            store.base_barrier = store.core.open_barrier
        return 0

    def _restore(self, kept, is_delayed):
        store: Store = self.store
        e: Envelope
        item: cython.pointer(Item) = store.items.slots.make_again(
            kept.number, octets_of(kept.message), cython.cast(uint32_t, len(kept.message))
        )
        store.items.depth += 1
        store.items.size_bytes += item.size
        item.format = kept.format
        item.priority = min(kept.priority, store.level_of(255, BASIC_FORMAT))
        item.attempt = 1 if kept.is_out and kept.attempt == 0 else kept.attempt
        item.failures = kept.failures
        item.acquisitions = kept.acquisitions
        item.stored_s = min(self._at(kept.stored_ms), self.now_s)
        if kept.ages:
            item.flags |= AGES
        found: cython.int = read_any_envelope(
            item.data, item.size, item.format, store.wants, cython.address(e)
        )
        if found >= 0 and (item.format == 0 or item.format == BASIC_FORMAT):
            # The levels may have been others when it came.
            item.priority = store.level_of(e.header.priority, item.format)
            if e.group_id_size:
                item.group_key = cogwork_hash(e.group_id, e.group_id_size) | 1
        if kept.reason is not None:
            return self._restore_dead(item, kept)
        if kept.expires_ms:
            store.items.expire_at(item, self._when(kept, kept.expires_ms))
        if is_delayed:
            if item.attempt:  # as what is in doubt at a consumer is delivered again
                item.failures += 1
                item.flags |= ACQUIRED
            return store.items.delay(item, self._when(kept, kept.due_ms))
        store.items.enter(item)
        if item.attempt:
            item.flags |= ACQUIRED
            store.items.disorder.lose(item.sequence)
        if kept.is_unrecorded and store.journal is not None:
            store.journal.out(item)
        if kept.is_out:
            # Marked until `_mark_in_doubt`, which needs all of its group to stand in order first.
            item.flags |= HANDED
            if kept.is_recovered:
                self.recovered.append(kept.number)
        return 0

    def _restore_dead(self, item, kept):
        """Put an item aside again whose dead letter has not been accepted.

        Where the dead have no address any more, nobody would ever accept it: then it is no more.
        """
        store: Store = self.store
        item.group_key = 0
        store.items.enter(item)
        if not store.keeps_dead:
            store.dropped += 1
            return store.forget(item)
        store.items.put_aside(item)
        died_ms: uint64_t = kept.died_ms or cython.cast(
            uint64_t, (self.now_s + self.wall_offset_s) * 1000.0
        )
        return store.add_pending(item, kept.reason, kept.error or None, died_ms)

    def _mark_in_doubt(self):
        """Mark what was out at a consumer as in doubt."""
        store: Store = self.store
        slot: uint32_t = 0
        item: cython.pointer(Item)
        node: cython.pointer(Node)
        while True:
            item = store.items.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                break
            if item.flags & HANDED and (item.state == READY or item.state == PARKED):
                store.items.hand_out(item, cython.address(self.absent_consumer))
        while not is_empty(cython.address(self.absent_consumer.in_flight)):
            node = self.absent_consumer.in_flight.next
            store.lose(cython.cast(cython.pointer(Item), node))
        self._end_recovered()
        self._stand_back()
        return 0

    def _end_recovered(self):
        """Decide over what may have been settled where the records of it are lost.

        No claim is waited for: whoever has one may have been overtaken there.
        """
        item: cython.pointer(Item)
        number: uint64_t
        for number in self.recovered:
            item = self.store.items.slots.find(number)
            if item != cython.NULL and item.state == IN_DOUBT:
                self.store.resolve_in_doubt(item)
        return 0

    def _stand_back(self):
        """Have what came back before the end wait, where others of its group were still out."""
        store: Store = self.store
        slot: uint32_t = 0
        item: cython.pointer(Item)
        while True:
            item = store.items.slots.next_item(cython.address(slot))
            if item == cython.NULL:
                return 0
            if item.state == READY and item.group != cython.NULL and item.group.out > 0:
                store.items.stand_back(item)

    def _when(self, kept, wall_ms):
        """Return the same of what an item waits for: no longer than when it came, if clocks jumped."""
        waits_s: cython.double = cython.cast(cython.double, wall_ms) - kept.stored_ms
        return min(self._at(wall_ms), self.now_s + max(waits_s, 0.0) * 0.001)

    def _at(self, wall_ms):
        """Return when something is by the monotonic clock."""
        return wall_ms * 0.001 - self.wall_offset_s


class Checkpoint:
    """Writes a queue's items down anew, part by part.

    Attributes:
        is_finished: Whether all is written.
    """

    def __init__(self, store: Store):
        """Begin.

        Args:
            store: One with a journal.
        """
        self.store = store
        self.scratch = Journal(store.core, store.journal.sequence_base)
        self.scratch.is_dirty = True
        self.seen = list(store.journal.seen or ())
        for number, attempt, at_s in store.commits.remembered(store.wall_s()):
            self.scratch.committed(number, attempt, at_s)
        for key in store.dead_letter_dedup.remembered():
            self.scratch.dead_letter_taken(octets_of(key))
        if store.forwards is not None:
            for row in store.forwards.rows():
                self.scratch.forwards(octets_of(cython.cast(bytes, row)))
        if store.audit_events is not None:
            self.scratch.gathered(0)
            for number, attempt, outcome in store.audit_events.unreported():
                self.scratch.settled(number, attempt, outcome)
        if store.attempt_base:
            self.scratch.attempts(store.attempt_base)
        if store.journal.held_partitions:
            self.scratch.hold_partitions(store.journal.held_partitions)
        page: Page
        for page in store.items.pages.in_order():
            self.scratch.paged(page.file, page.first, page.count, page.last_sequence())

    @property
    def birth_base(self) -> int:
        """Above what any item's number so far was made of."""
        return self.store.items.slots.highest_stamp() + 1

    def next_part(self, size_bytes: int) -> bytes:
        """Return the records of the next items; `is_finished` says whether they were the last.

        All that the store's journal had must have gone to the log before.

        Args:
            size_bytes: About as much at once.
        """
        item: cython.pointer(Item)
        size: uint64_t = size_bytes
        end: uint32_t = self.slot + min(SLOTS_AT_ONCE, 0xFFFFFFFF - self.slot)
        while self._has_room(size) and self.seen_at < len(self.seen):
            seen_ms, message_id = self.seen[self.seen_at]
            self.scratch.saw(seen_ms, message_id)
            self.seen_at += 1
        while self._has_room(size):
            item = self.store.items.slots.next_item_before(cython.address(self.slot), end)
            if item == cython.NULL:
                self.is_finished = self.slot >= self.store.items.slots.size
                break
            self._write(item)
        parts: list = self.scratch.parts
        self.scratch.parts = []
        parts.append(self.scratch.cut())
        return b"".join(parts)

    def _has_room(self, size):
        """Return whether more belongs to a part; what was cut off is enough for one."""
        return len(self.scratch.parts) == 0 and self.scratch.size < size

    def _write(self, item):
        """Write an item, and what is behind it."""
        pending: object = (
            self.store.pending_dead_letters.get(number_of(item)) if item.state == ASIDE else None
        )
        is_delayed: cython.bint = item.state == DELAYED or (
            item.state == ASIDE and item.due_s != 0.0
        )
        self.scratch.put(item)
        if item.attempt and is_delayed:
            self.scratch.out(item)  # another container may have it
        elif item.attempt:
            self.scratch.back(item)
        if item.acquisitions:
            self.scratch.acquired(item)
        if is_away(item) and (item.state != ASIDE or item.flags & HANDED):
            self.scratch.out(item)
        if pending is not None:
            self.scratch.dead(item, cython.cast(str, pending[0]).encode(), pending[1], pending[2])
        return 0
