"""What a queue's records add up to: its items as they were when the last record was written."""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u16,
    load_u32,
    load_u64,
    octets_of,
)
from cython.cimports.cogwork.dataplane.message.envelope import (
    DEAD_LETTER_ID_BYTES,
    WANTS_MESSAGE_ID,
    Envelope,
    read_any_envelope,
)
from cython.cimports.cogwork.dataplane.queue.audit_events import (
    OUTCOME_ACCEPTED,
    OUTCOME_NOTHING,
    outcome_of_reason,
)
from cython.cimports.cogwork.dataplane.queue.commits import Commits
from cython.cimports.cogwork.dataplane.queue.dead_letter_dedup import DeadLetterDedup
from cython.cimports.cogwork.dataplane.queue.forward_dedup import ForwardDedup
from cython.cimports.cogwork.dataplane.queue.journal import (
    ACQUIRED_AGAIN,
    ACQUIRED_BYTES,
    AGES_MARK,
    ATTEMPTS,
    ATTEMPTS_BYTES,
    BACK,
    BACK_BYTES,
    COMMITTED,
    COMMITTED_BYTES,
    CONFIRMED,
    CONFIRMED_BYTES,
    DEAD,
    DEAD_BYTES,
    DEAD_LETTER,
    DEAD_LETTER_BYTES,
    DIED,
    DIED_BYTES,
    DONE,
    DONE_BYTES,
    FORWARDED,
    FORWARDED_BYTES,
    FORWARDS,
    FORWARDS_BYTES,
    GATHERED,
    GATHERED_BYTES,
    HELD,
    HELD_BYTES,
    KEEPS_PLACE,
    OUT_AGAIN,
    OUT_BYTES,
    PAGED_ITEMS,
    PAGED_ITEMS_BYTES,
    PUT,
    PUT_BYTES,
    RECOVERED,
    RECOVERED_BYTES,
    REPORTED,
    REPORTED_BYTES,
    SEEN,
    SEEN_BYTES,
    SETTLED,
    SETTLED_BYTES,
)
from cython.cimports.cogwork.dataplane.queue.state import RECOVERY_JUMP

__all__ = ("SOURCE_HASH", "JournalImage", "KeptItem", "PagedRange")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

UNREPORTED_MAX = cython.declare(cython.Py_ssize_t, 250_000)
"""Settlements that an audit may be told of after a restart; the newest count."""


class KeptItem:
    """An item as the records tell it.

    Attributes:
        number: For life.
        sequence: Its place in the queue, or among the delayed.
        stored_ms: When it came, by the wall clock.
        expires_ms: When its time is over; 0 for never.
        due_ms: Until when it was delayed; 0 where it was not.
        format: The message's.
        attempt: The newest.
        failures: Attempts that failed.
        acquisitions: Attempts that gave it back uncounted.
        priority: Its level.
        ages: Whether its message has a ttl.
        is_out: Whether that attempt goes on.
        is_unrecorded: Whether no record says so: it went out, and nothing more was written.
        is_recovered: Whether it is the attempt of a recovery: nobody was handed that.
        reason: Why it is dead; None while it is not.
        error: The outcome of who rejected it, encoded; empty where nobody did.
        died_ms: Since when it is dead; 0 where that is not known.
        message: Encoded.
        is_elsewhere: Whether its message lies in a page file.
        keeps_place: Whether its place is the one that it has there.
        was_put_again: Whether more than one record has its message.
    """

    def is_as_paged(self, place, size):
        """Return whether a page file that has it with this place and size has all of it.

        What was given out, or is written down again, may differ from what lies there.
        """
        return (
            not (self.is_elsewhere or self.keeps_place or self.was_put_again)
            and self.sequence == place
            and cython.cast(uint32_t, len(self.message)) == size
            and self.attempt == 0
            and self.failures == 0
            and self.acquisitions == 0
            and self.due_ms == 0
            and self.reason is None
        )

    def complete(self, put, place, size):
        """Take in what a page file says of an item, as far as no later record does."""
        if self.is_elsewhere:
            self.stored_ms = load_u64(put + 17)
            self.expires_ms = load_u64(put + 25)
            self.format = load_u32(put + 41)
            self.priority = put[45]
            self.ages = put[46] & AGES_MARK
            self.message = bytes_from(put + PUT_BYTES, size)
        if self.is_elsewhere or self.keeps_place:
            self.sequence = place
        self.is_elsewhere = self.keeps_place = False
        return 0


class PagedRange:
    """Items that follow each other in a page file.

    Attributes:
        file: Its number.
        first: Which of its items is the first.
        count: How many they are.
        place: The place of the last.
    """


class JournalImage:
    """A queue's items, made of its records.

    Attributes:
        items: By number.
        commits: What was confirmed last; at 0 where an earlier version did not say when.
        dead_letter_dedup: The dead letters of other queues that were taken last.
        forwards: The messages of other containers that were taken last.
        birth_base: Above what any item's number was made of.
        sequence_max: The highest place in the queue.
        held_partitions: Those of a queue that containers share which were held here, as bits.
        attempt_base: What the attempts of its last life were above.
        has_records: Whether anything was written of it.
        is_audited: Whether an audit wants to be told what was settled.
        pages: What lies in page files, the newest last.
        gone: The numbers of items that are no more, of which some may lie there.
        unreported: What was settled and may not have been told to it: number, attempt and outcome.
    """

    def __init__(self, seen_max: int = 0):
        """Is empty.

        Args:
            seen_max: How many message-ids are wanted.
        """
        self.items = {}
        self.commits = Commits()
        self.dead_letter_dedup = DeadLetterDedup()
        self.forwards = ForwardDedup()
        self.sightings = {}
        self.seen_max = seen_max
        self.unreported = []
        self.marks = {}
        self.pages = []
        self.gone = set()

    @property
    def seen(self) -> list:
        """The newest message-ids with the times when they were seen last, oldest first."""
        found: list = sorted((seen_ms, each) for each, seen_ms in self.sightings.items())
        return found[max(0, len(found) - self.seen_max) :]

    def apply(self, payload: bytes) -> None:
        """Apply the records of a turn.

        Raises:
            ValueError: It is no such payload.
        """
        at: int64_t = 0
        size: int64_t = len(payload)
        taken: int64_t
        self.has_records = True
        while at < size:
            taken = self._apply_one(octets_of(payload) + at, size - at)
            if taken == 0:
                raise ValueError(f"no record of a queue at octet {at} of {size}")
            at += taken

    def note_sent(self, number: int, attempt: int) -> None:
        """Take in that an attempt went out, unless the records say more of its item.

        Args:
            number: The item's.
            attempt: Which.
        """
        item: KeptItem = self._find(number)
        if item is not None and item.reason is None and attempt > item.attempt:
            item.attempt = attempt
            item.is_out = item.is_unrecorded = True

    def _apply_one(self, p, size):
        """Apply a record; return what it takes, 0 where it is none."""
        kind: cython.int = p[0]
        message_size: uint32_t
        item: KeptItem
        if kind == PUT and size >= PUT_BYTES:
            message_size = load_u32(p + 47)
            if size - PUT_BYTES < message_size:
                return 0
            self._put(p, message_size)
            return PUT_BYTES + cython.cast(int64_t, message_size)
        if kind == OUT_AGAIN and size >= OUT_BYTES:
            item = self._find(load_u64(p + 1))
            if item is not None:
                item.attempt = load_u32(p + 9)
                item.is_out = True
                item.is_recovered = False
            return OUT_BYTES
        if kind == DONE and size >= DONE_BYTES:
            self._done(load_u64(p + 1))
            return DONE_BYTES
        if kind == CONFIRMED and size >= CONFIRMED_BYTES:
            self._commit(p, load_u32(p + 13))
            return CONFIRMED_BYTES
        if kind == COMMITTED and size >= COMMITTED_BYTES:
            self._commit(p, 0)
            return COMMITTED_BYTES
        if kind == BACK and size >= BACK_BYTES:
            item = self._find(load_u64(p + 1))
            if item is not None:
                item.attempt = load_u32(p + 9)
                item.failures = load_u32(p + 13)
                item.is_out = False
            return BACK_BYTES
        if kind == SEEN and size >= SEEN_BYTES:
            message_size = load_u16(p + 9)
            if size - SEEN_BYTES < message_size:
                return 0
            self._saw(load_u64(p + 1), bytes_from(p + SEEN_BYTES, message_size))
            return SEEN_BYTES + cython.cast(int64_t, message_size)
        if kind == HELD and size >= HELD_BYTES:
            self.held_partitions = load_u64(p + 1)
            return HELD_BYTES
        if kind == ATTEMPTS and size >= ATTEMPTS_BYTES:
            self.attempt_base = max(self.attempt_base, load_u32(p + 1))
            return ATTEMPTS_BYTES
        if kind == DEAD_LETTER and size >= DEAD_LETTER_BYTES:
            self.dead_letter_dedup.remember(bytes_from(p + 1, DEAD_LETTER_ID_BYTES))
            return DEAD_LETTER_BYTES
        if kind == DIED and size >= DIED_BYTES:
            return self._read_dead(p, DIED_BYTES, size)
        if kind == ACQUIRED_AGAIN and size >= ACQUIRED_BYTES:
            item = self._find(load_u64(p + 1))
            if item is not None:
                item.acquisitions = load_u32(p + 9)
            return ACQUIRED_BYTES
        if kind == DEAD and size >= DEAD_BYTES:
            return self._read_dead(p, DEAD_BYTES, size)
        if kind == RECOVERED and size >= RECOVERED_BYTES:
            self._recover(load_u64(p + 1))
            return RECOVERED_BYTES
        if kind == FORWARDED and size >= FORWARDED_BYTES:
            self.forwards.remember(p + 1)
            return FORWARDED_BYTES
        if kind == FORWARDS and size >= FORWARDS_BYTES:
            self.forwards.restore(p + 1)
            return FORWARDS_BYTES
        if kind == PAGED_ITEMS and size >= PAGED_ITEMS_BYTES:
            return self._note_paged(p)
        return self._apply_mark(p, size)

    def _note_paged(self, p):
        """Apply that items lie in a page file."""
        paged: PagedRange = PagedRange.__new__(PagedRange)
        paged.file = load_u64(p + 1)
        paged.first = load_u32(p + 9)
        paged.count = load_u32(p + 13)
        paged.place = load_u64(p + 17)
        self.pages.append(paged)
        self.sequence_max = max(self.sequence_max, paged.place)
        return PAGED_ITEMS_BYTES

    def _find(self, number):
        """Find an item; what is not known may lie in a page file, and is looked for later."""
        item: KeptItem = self.items.get(number)
        if item is None and self.pages and number not in self.gone:
            return self.add_elsewhere(number)
        return item

    def add_elsewhere(self, number):
        """Add an item whose message lies in a page file."""
        item: KeptItem = KeptItem.__new__(KeptItem)
        item.number = number
        item.is_elsewhere = True
        self.items[number] = item
        return item

    def _forget(self, number):
        """Take in that an item is no more, wherever it lay; return it where it is known."""
        if self.pages:
            self.gone.add(number)
        return self.items.pop(number, None)

    def _apply_mark(self, p, size):
        """Apply a record of what an audit is told; return what it takes, 0 where it is none."""
        kind: cython.int = p[0]
        if kind == GATHERED and size >= GATHERED_BYTES:
            self.is_audited = True
            self.marks[load_u64(p + 1)] = len(self.unreported)
            return GATHERED_BYTES
        if kind == REPORTED and size >= REPORTED_BYTES:
            self._tell(load_u64(p + 1))
            return REPORTED_BYTES
        if kind == SETTLED and size >= SETTLED_BYTES:
            self._settle(load_u64(p + 1), load_u32(p + 9), p[13])
            return SETTLED_BYTES
        return 0

    def _commit(self, p, at_s):
        """Apply that an attempt was confirmed: its item is no more."""
        number: uint64_t = load_u64(p + 1)
        attempt: uint32_t = load_u32(p + 9)
        self._forget(number)
        self._settle(number, attempt, OUTCOME_ACCEPTED)
        return self.commits.add(number, attempt, at_s) if attempt else 0

    def _settle(self, number, attempt, outcome):
        """Keep what was settled until the audit has been told."""
        dropped: cython.Py_ssize_t
        if not self.is_audited:
            return 0
        self.unreported.append((number, attempt, outcome))
        if len(self.unreported) > UNREPORTED_MAX:
            dropped = len(self.unreported) // 2
            del self.unreported[:dropped]
            self.marks = {mark: max(at - dropped, 0) for mark, at in self.marks.items()}
        return 0

    def _done(self, number):
        item: KeptItem = self._forget(number)
        if item is not None and item.reason is None:
            self._settle(number, item.attempt, OUTCOME_NOTHING)
        return 0

    def _tell(self, mark):
        """Forget what was settled before a mark; the audit has been told."""
        at: object = self.marks.get(mark)
        if at is None:
            return 0
        del self.unreported[:at]
        self.marks = {each: left - at for each, left in self.marks.items() if each > mark}
        return 0

    def _read_dead(self, p, head, size):
        """Apply that an item is dead: of an earlier version without when it died."""
        why: int64_t = p[13]
        error_size: int64_t = load_u32(p + 14)
        item: KeptItem
        if size - head < why + error_size:
            return 0
        item = self._find(load_u64(p + 1))
        if item is not None:
            item.failures = load_u32(p + 9)
            item.reason = bytes_from(p + head, why).decode("ascii", "replace")
            item.error = bytes_from(p + head + why, error_size)
            item.died_ms = load_u64(p + 18) if head == DIED_BYTES else 0
            item.is_out = False
            self._settle(item.number, item.attempt, outcome_of_reason(item.reason))
        return head + why + error_size

    def _recover(self, at_ms):
        """Apply that members whose records are lost may have given out any item that was due.

        Attempts and births go on beyond all that those may have made: no tag of theirs names an
        item or an attempt of later.
        """
        item: KeptItem
        base: uint32_t = self.attempt_base
        for item in self.items.values():
            base = max(base, item.attempt)
        base = (base // RECOVERY_JUMP + 1) * RECOVERY_JUMP
        self.attempt_base = base
        self.birth_base += RECOVERY_JUMP
        for item in self.items.values():
            if item.reason is None and (item.due_ms <= at_ms or item.attempt):
                item.attempt = base
                item.is_out = item.is_recovered = True
        return 0

    def _put(self, p, size):
        item: KeptItem = KeptItem.__new__(KeptItem)
        known: KeptItem
        birth: uint32_t
        item.number = load_u64(p + 1)
        item.sequence = load_u64(p + 9)
        item.stored_ms = load_u64(p + 17)
        item.expires_ms = load_u64(p + 25)
        item.due_ms = load_u64(p + 33)
        item.format = load_u32(p + 41)
        item.priority = p[45]
        item.ages = p[46] & AGES_MARK
        item.message = bytes_from(p + PUT_BYTES, size)
        known = self.items.get(item.number)
        item.was_put_again = known is not None
        if known is not None and p[46] & KEEPS_PLACE:
            item.sequence, item.due_ms = known.sequence, known.due_ms
            item.acquisitions = known.acquisitions
            item.keeps_place = known.is_elsewhere or known.keeps_place
        self.items[item.number] = item
        birth = cython.cast(uint32_t, item.number >> 32)
        self.birth_base = max(self.birth_base, birth + 1)
        self.sequence_max = max(self.sequence_max, item.sequence)
        if self.seen_max:
            self._note_seen(item)
        return 0

    def _note_seen(self, item):
        e: Envelope
        if (
            read_any_envelope(
                octets_of(item.message),
                cython.cast(uint32_t, len(item.message)),
                item.format,
                WANTS_MESSAGE_ID,
                cython.address(e),
            )
            >= 0
            and e.message_id != cython.NULL
        ):
            self._saw(item.stored_ms, bytes_from(e.message_id, e.message_id_size))
        return 0

    def _saw(self, seen_ms, message_id):
        """Remember an id once, however often an account names it: as seen, and with its item."""
        if self.seen_max == 0:
            return 0
        self.sightings[message_id] = max(seen_ms, self.sightings.get(message_id, 0))
        if len(self.sightings) >= 2 * self.seen_max:
            self.sightings = {each: at_ms for at_ms, each in self.seen}
        return 0
