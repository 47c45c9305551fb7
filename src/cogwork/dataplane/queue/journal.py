"""What a durable queue writes down of each change, as octets, until they go to the log.

Theory of operation. A store with a journal has every change of an item written here before anything
follows from it. What follows is output: of the connection that the item came from, or that it goes
to, or that is told that its claim stands. That output is held from then on (`dataplane.output`)
until the octets, which the container takes at the end of the turn, are durable. So a store never
waits, and what the log holds after a crash is never behind what anybody has been told.

An item that is handed on, to the dead-letter address or another container, is written down as done
once it is durable that it was accepted there.
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, store_u32, store_u64
from cython.cimports.cogwork.dataplane.message.envelope import DEAD_LETTER_ID_BYTES
from cython.cimports.cogwork.dataplane.queue.stored import AGES, ASIDE, DELAYED, number_of
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy

__all__ = ("MESSAGE_BYTES_MAX", "SOURCE_HASH", "Journal", "recovered_entry")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PART_BYTES = cython.declare(uint64_t, 4 << 20)
"""About as much goes to the log as one record."""

MESSAGE_BYTES_MAX = 32 << 20
"""A message has to fit one record of the log, and that one of its files."""

MESSAGE_ID_BYTES_MAX = cython.declare(uint32_t, 0xFFFF)

BUFFER_MIN_BYTES = cython.declare(uint64_t, 4096)


def recovered_entry(at_ms: int) -> bytes:
    """Return the entry that says that others may have given out and settled any item since.

    Args:
        at_ms: When that was found out, in milliseconds since 1970: what is due later is untouched.
    """
    return bytes((RECOVERED,)) + at_ms.to_bytes(8, "big")


class Journal:
    """One queue's records on their way to the log.

    Attributes:
        on_dirty: Called once when there is something to take.
        is_open: Whether the queue may take and give; not while the log has no room.
        is_low: Whether it may take no messages, as the log has no room but for the rest.
        is_failed: Whether nothing is written any more, for good.
        failed_state: What is then said of messages; None where it is the disk that has failed.
        sequence_base: What an item's place in the queue is counted from.
        wall_offset_s: The wall clock's time where the monotonic clock's is 0.
        message_bytes_max: What is larger does not fit a record.
        seen: Message-ids with the times they came, oldest first; None where none are remembered.
        held_partitions: Those of a queue that containers share which are held here, as bits.
    """

    def __init__(
        self, core: Core, sequence_base: int = 0, seen_max: int = 0, seen: object = ()
    ) -> None:
        """Start with nothing to write.

        Args:
            core: Whose output is held.
            sequence_base: Above all places that the log holds of this queue.
            seen_max: Message-ids that are remembered; 0 remembers none.
            seen: Those that are remembered from before, with their times in milliseconds.
        """
        self.core = core
        self.sequence_base = sequence_base
        self.is_open = True
        self.parts = []
        self.message_bytes_max = MESSAGE_BYTES_MAX
        self.wall_offset_s = cogwork_wall_offset_s()
        if seen_max:
            self.seen = deque(seen, seen_max)

    def __dealloc__(self):
        free(self.data)

    # -- what Python does with it

    def take(self) -> list:
        """Hand over what was written, as the payloads of records of the log, in order."""
        parts: list = self.parts
        if self.size:
            parts.append(self.cut())
        self.parts = []
        self.is_dirty = False
        self.wall_offset_s = cogwork_wall_offset_s()
        return parts

    def hold_output(self) -> None:
        """Hold all output until what is written now is durable."""
        self.core.hold_output()

    def mark_sent(self, marks: SentMarks, group: int) -> None:
        """Have attempts marked as they go out, which is before their records are durable.

        Args:
            marks: Where.
            group: The queue's number in the log.
        """
        self.marks = marks
        self.group = group

    # -- records

    def put(self, item):
        """Write that the queue has an item."""
        return self._put(item, 0)

    def put_again(self, item):
        """Write what an item says by now that is in flight; its place is what it was."""
        return self._put(item, KEEPS_PLACE)

    def _put(self, item, marks):
        p: cython.pointer(uint8_t) = self.reserve(PUT_BYTES + item.size)
        p[0] = PUT
        store_u64(p + 1, number_of(item))
        store_u64(p + 9, item.sequence + self.sequence_base if item.sequence else 0)
        store_u64(p + 17, self.wall_ms(item.stored_s))
        store_u64(p + 25, self.wall_ms(item.expires_s) if item.expires_s else 0)
        store_u64(p + 33, self.wall_ms(item.due_s) if is_delayed(item) else 0)
        store_u32(p + 41, item.format)
        p[45] = item.priority
        p[46] = (AGES_MARK if item.flags & AGES else 0) | marks
        store_u32(p + 47, item.size)
        memcpy(p + PUT_BYTES, item.data, item.size)
        return 0

    def dead_letter_taken(self, key):
        """Write which dead letter it was that was put last: in the same record, or neither is."""
        p: cython.pointer(uint8_t) = self.extend(DEAD_LETTER_BYTES)
        p[0] = DEAD_LETTER
        memcpy(p + 1, key, DEAD_LETTER_ID_BYTES)
        return 0

    def forwarded(self, tag):
        """Write which container sent what was put last, and as which of its messages."""
        p: cython.pointer(uint8_t) = self.extend(FORWARDED_BYTES)
        p[0] = FORWARDED
        memcpy(p + 1, tag, FORWARDED_BYTES - 1)
        return 0

    def forwards(self, row):
        """Write anew what was taken of one container."""
        p: cython.pointer(uint8_t) = self.reserve(FORWARDS_BYTES)
        p[0] = FORWARDS
        memcpy(p + 1, row, FORWARDS_BYTES - 1)
        return 0

    def out(self, item):
        """Write that an attempt of an item begins, or that another container is given it.

        That is told from any attempt of a consumer by its number where the item is not due: a
        clock that was set back may have what a consumer has delayed again.
        """
        p: cython.pointer(uint8_t) = self.reserve(OUT_BYTES)
        attempt: uint32_t = 0 if is_delayed(item) else item.attempt
        p[0] = OUT_AGAIN
        store_u64(p + 1, number_of(item))
        store_u32(p + 9, attempt)
        if self.marks is not None and not self.marks.note(self.group, number_of(item), attempt):
            self.core.hold_output()
        return 0

    def done(self, number):
        """Write that an item is no more."""
        p: cython.pointer(uint8_t) = self.reserve(DONE_BYTES)
        p[0] = DONE
        store_u64(p + 1, number)
        return 0

    def committed(self, number, attempt, at_s):
        """Write that an item is done with, by which attempt, and when: its claim may come again."""
        p: cython.pointer(uint8_t) = self.reserve(CONFIRMED_BYTES)
        p[0] = CONFIRMED
        store_u64(p + 1, number)
        store_u32(p + 9, attempt)
        store_u32(p + 13, at_s)
        return 0

    def dead(self, item, reason, error, died_ms):
        """Write that an item is dead, why and since when; its dead letter is still to be accepted."""
        said: bytes = b"" if error is None else error
        size: uint32_t = cython.cast(uint32_t, len(said))
        why: uint32_t = cython.cast(uint32_t, len(reason))
        p: cython.pointer(uint8_t) = self.reserve(DIED_BYTES + why + size)
        p[0] = DIED
        store_u64(p + 1, number_of(item))
        store_u32(p + 9, item.failures)
        p[13] = why
        store_u32(p + 14, size)
        store_u64(p + 18, died_ms)
        memcpy(p + DIED_BYTES, cython.cast(cython.p_char, reason), why)
        memcpy(p + DIED_BYTES + why, cython.cast(cython.p_char, said), size)
        return 0

    def back(self, item):
        """Write that an item is at no consumer, and what it has behind it."""
        p: cython.pointer(uint8_t) = self.reserve(BACK_BYTES)
        p[0] = BACK
        store_u64(p + 1, number_of(item))
        store_u32(p + 9, item.attempt)
        store_u32(p + 13, item.failures)
        return 0

    def acquired(self, item):
        """Write how often consumers have had an item and given it back uncounted."""
        p: cython.pointer(uint8_t) = self.reserve(ACQUIRED_BYTES)
        p[0] = ACQUIRED_AGAIN
        store_u64(p + 1, number_of(item))
        store_u32(p + 9, item.acquisitions)
        return 0

    def paged(self, file, first, count, sequence):
        """Write that items lie in a page file, which says all of them.

        Args:
            file: Its number.
            first: Which of its items is the first.
            count: How many follow each other there, with it.
            sequence: The place of the last.
        """
        p: cython.pointer(uint8_t) = self.reserve(PAGED_ITEMS_BYTES)
        p[0] = PAGED_ITEMS
        store_u64(p + 1, file)
        store_u32(p + 9, first)
        store_u32(p + 13, count)
        store_u64(p + 17, sequence + self.sequence_base)
        return 0

    def saw(self, seen_ms, message_id):
        """Write that a message-id was seen, whose message may be gone.

        One that is longer than the record can say is remembered no longer than its message.
        """
        size: uint32_t = cython.cast(uint32_t, len(message_id))
        p: cython.pointer(uint8_t)
        if size > MESSAGE_ID_BYTES_MAX:
            return 0
        p = self.reserve(SEEN_BYTES + size)
        p[0] = SEEN
        store_u64(p + 1, seen_ms)
        p[9] = size >> 8
        p[10] = size & 0xFF
        memcpy(p + SEEN_BYTES, cython.cast(cython.p_char, message_id), size)
        return 0

    def attempts(self, base):
        """Write what the attempts of this life are above."""
        p: cython.pointer(uint8_t) = self.reserve(ATTEMPTS_BYTES)
        p[0] = ATTEMPTS
        store_u32(p + 1, base)
        return 0

    def hold_partitions(self, bits):
        """Write which partitions are held here."""
        p: cython.pointer(uint8_t) = self.reserve(HELD_BYTES)
        p[0] = HELD
        store_u64(p + 1, bits)
        self.held_partitions = bits
        return 0

    def gathered(self, mark):
        """Write that what was settled so far is about to be told to an audit."""
        p: cython.pointer(uint8_t) = self.reserve(GATHERED_BYTES)
        p[0] = GATHERED
        store_u64(p + 1, mark)
        return 0

    def reported(self, mark):
        """Write that what was settled before that mark has been told to the audit."""
        p: cython.pointer(uint8_t) = self.reserve(REPORTED_BYTES)
        p[0] = REPORTED
        store_u64(p + 1, mark)
        return 0

    def settled(self, number, attempt, outcome):
        """Write anew that an item was settled, of which the audit may not have been told."""
        p: cython.pointer(uint8_t) = self.reserve(SETTLED_BYTES)
        p[0] = SETTLED
        store_u64(p + 1, number)
        store_u32(p + 9, attempt)
        p[13] = cython.cast(uint8_t, outcome)
        return 0

    def note_seen(self, message_id, size, now_s):
        """Keep a message-id for the next checkpoint."""
        self.seen.append((self.wall_ms(now_s), bytes_from(message_id, size)))
        return 0

    # -- what follows

    def hold_for(self, end):
        """Hold the output of the connection that a link's end belongs to.

        What is no link's end answers to somebody else: then all output is held.
        """
        if end is not None and end.hold_output():
            return 0
        return self.core.hold_output()

    # -- octets

    def wall_ms(self, at_s):
        """Say in milliseconds since 1970 when something is by the monotonic clock."""
        return cython.cast(uint64_t, (at_s + self.wall_offset_s) * 1000.0)

    def reserve(self, size):
        """Return where a record of so many octets goes."""
        if self.size >= PART_BYTES:
            self.parts.append(self.cut())
        return self.extend(size)

    def extend(self, size):
        """Return where a record of so many octets goes that belongs to the one before it."""
        if self.size + size > self.capacity:
            self._grow(size)
        if not self.is_dirty:
            self._mark_dirty()
        self.size += size
        return self.data + (self.size - size)

    def cut(self):
        """Take what is in the buffer."""
        data: bytes = bytes_from(self.data, self.size)
        self.size = 0
        return data

    def _mark_dirty(self):
        if not self.is_dirty:
            self.is_dirty = True
            self.core.use_barrier()
            if self.on_dirty is not None:
                self.on_dirty()
        return 0

    def _grow(self, size):
        grown: cython.pointer(uint8_t)
        capacity: uint64_t = max(self.capacity, BUFFER_MIN_BYTES)
        while capacity < self.size + size:
            capacity *= 2
        grown = cython.cast(cython.pointer(uint8_t), realloc(self.data, capacity))
        if grown == cython.NULL:
            raise MemoryError("no room for a queue's records")
        self.data = grown
        self.capacity = capacity
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_delayed(item: cython.pointer(Item)) -> cython.bint:
    """Return whether an item is delayed, or was as it was put aside: else its `due_s` is 0 then."""
    return (item.state == DELAYED or item.state == ASIDE) and item.due_s != 0.0
