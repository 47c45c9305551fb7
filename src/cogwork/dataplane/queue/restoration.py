"""A queue's items written down anew, and made again of what was written down.

Theory of operation. After a restart an item whose attempt had begun is in doubt, with that attempt:
its consumer may come back with its tag. All others are ready in their old order, or delayed for as
long as they still were. New items get numbers that no item has had before, so that no old tag names
a new item.

A checkpoint first writes what is known of items that are no more, then goes through the items slot
by slot, some in each turn, while the queue goes on: what comes into being or changes behind it is
in the records of the turns since it began.
"""

from collections import deque
from operator import attrgetter

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.envelope import Envelope, read_any_envelope
from cython.cimports.cogwork.dataplane.queue.chain import Node, clear, is_empty
from cython.cimports.cogwork.dataplane.queue.forward_dedup import ForwardDedup
from cython.cimports.cogwork.dataplane.queue.item_table import is_away
from cython.cimports.cogwork.dataplane.queue.journal import cogwork_wall_offset_s
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


def restore(store: Store, image: JournalImage) -> None:
    """Fill an empty store with what was written down.

    Args:
        store: Without consumers and without a journal yet.
        image: What the records add up to.
    """
    restoration: Restoration = Restoration(store)
    restoration.run(image)


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

    def run(self, image: JournalImage) -> None:
        """Make all of them."""
        store: Store = self.store
        kept: KeptItem
        now_ms: uint64_t = cython.cast(uint64_t, (self.now_s + self.wall_offset_s) * 1000.0)
        # A log takes its time to be read: what is in doubt must not time out at once.
        store.ticked_s = max(store.ticked_s, self.now_s)
        for kept in _in_order(list(image.items.values())):
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
        while self._has_room(size) and self.seen_at < len(self.seen):
            seen_ms, message_id = self.seen[self.seen_at]
            self.scratch.saw(seen_ms, message_id)
            self.seen_at += 1
        while self._has_room(size):
            item = self.store.items.slots.next_item(cython.address(self.slot))
            if item == cython.NULL:
                self.is_finished = True
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
