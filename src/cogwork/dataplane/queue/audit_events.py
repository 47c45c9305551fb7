"""What happens to a queue's items, noted for an audit.

Theory of operation. A store with audit events notes each item that it accepts, each attempt that is
handed over, and what becomes of it; whoever keeps the audit takes the facts in batches. What is
noted stands in plain memory of a bounded size: where nobody takes it, what is more is counted as
missed, and the store goes on.

An item is followed, or not, by a hash of its number, so that all facts of an item are there or
none. After a restart all items that are still there are named again, slot by slot, as the facts
before are taken; and so is what was settled and not told, as far as the journal knows of it.
"""

import hashlib

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, store_u32, store_u64
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    read_binary,
    read_string,
    skip_value,
)
from cython.cimports.cogwork.dataplane.message.basic import (
    BASIC_FORMAT,
    BasicParts,
    find_basic_parts,
)
from cython.cimports.cogwork.dataplane.queue.stored import DELAYED, number_of
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memmove, memset

__all__ = ("FACTS_MAX", "OUTCOMES", "SOURCE_HASH", "AuditEvents", "render")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FACTS_MAX = 1 << 18
"""Facts that wait to be taken: 14 MiB for a queue at most, and a second of a busy one."""

FACTS_MIN = cython.declare(uint32_t, 256)
PLACES_MIN = cython.declare(uint32_t, 64)

OUTCOMES = (
    None,
    "accepted",
    "rejected",
    "released",
    "modified",
    "parked",
    "expired",
    "exceeded",
    "dropped",
    "removed",
)
"""What a fact's outcome is called."""

PROPERTIES_HEAD = cython.declare(bytes, b"\x00\x53\x73\xd0")
PROPERTIES_COUNT = cython.declare(bytes, b"\x00\x00\x00\x07")
ITEM_HEAD = cython.declare(bytes, b"\xa1\x18")
CONTENT_TYPE = cython.declare(bytes, b"\xa3\x10application/json")
ATTEMPT_HEAD = cython.declare(bytes, b"\xa1\x07attempt\x70")
POSITION_HEAD = cython.declare(bytes, b"\xa1\x08position\x80")
NO_POSITION = cython.declare(bytes, b"\xa1\x08position\x40")
PLACE_HEADS = cython.declare(tuple, (b"\x00\x53\x74\xc1\x1a\x04", b"\x00\x53\x74\xc1\x22\x04"))
"""Of the application properties: a map of two pairs, without a position and with one."""
DATA_HEAD = cython.declare(bytes, b"\x00\x53\x75\xb0")

_CORRELATIONS = tuple(
    b"\x40" if each is None else b"\xa1" + bytes((len(each),)) + each.encode() for each in OUTCOMES
)
"""The outcome again, as the correlation-id."""

_REASONS = {
    "rejected": OUTCOME_REJECTED,
    "in-doubt": OUTCOME_PARKED,
    "abandoned": OUTCOME_PARKED,
    "expired": OUTCOME_EXPIRED,
    "delivery-count-exceeded": OUTCOME_EXCEEDED,
    "acquisitions-exceeded": OUTCOME_EXCEEDED,
    "maximum-length": OUTCOME_DROPPED,
}


class AuditEvents:
    """The facts of one store's items.

    Attributes:
        shard: The store's number; the first part of each item's name.
        has_digests: Whether messages' bodies are hashed.
        sequence_base: What an item's place in the queue is counted from.
        missed: Facts for which there was no room.
        pending: Lists of facts that were taken and are not known to be told; kept by their taker.
    """

    def __init__(
        self,
        items: ItemTable,
        shard: int,
        sample: float = 1.0,
        *,
        has_digests: bool = False,
        facts_max: int = FACTS_MAX,
    ):
        """Follow a store's items, once the store has these audit events.

        Args:
            items: The store's; it has no items yet.
            shard: The store's number.
            sample: The share of the items that are followed.
            has_digests: Whether messages' bodies are hashed.
            facts_max: How many facts may wait to be taken.
        """
        self.items = items
        self.shard = shard
        self.has_digests = has_digests
        self.facts_max = max(facts_max, 1)
        self.sample_below = cython.cast(uint64_t, min(max(sample, 0.0), 1.0) * 4294967296.0)
        self.pending = []
        self.restored = []

    def __dealloc__(self):
        free(self.facts)
        free(self.places)

    # -- what the store tells

    def accepted(self, item):
        """Note that the store has a new item."""
        return self._name(item) if self.follows(number_of(item)) else 0

    def handed(self, item):
        """Note when an attempt of an item was handed over, and in which order."""
        if not self.follows(number_of(item)):
            return 0
        if item.slot >= self.places_size:
            self._grow_places(item.slot)
        self.last_place = max(self.last_place + 1, cogwork_wall_us())
        self.places[item.slot] = self.last_place
        return 0

    def settled(self, item, outcome):
        """Note what became of an item's newest attempt, or of the item."""
        fact: cython.pointer(Fact)
        if not self.follows(number_of(item)):
            return 0
        if self.is_calling and item.slot >= self.call_slot:
            self._name(item)
        fact = self._new(item)
        if fact == cython.NULL:
            return 0
        fact.is_settled = 1
        fact.outcome = cython.cast(uint8_t, outcome)
        fact.attempt = item.attempt
        fact.consumer = item.consumer
        if item.slot < self.places_size:
            fact.position = self.places[item.slot]
            self.places[item.slot] = 0
        return 0

    def dead_lettered(self, item, reason):
        """Note that an item is dead, and why."""
        return self.settled(item, outcome_of_reason(reason))

    def clear(self):
        """Forget what was not taken: the items are another store's now."""
        self.count = 0
        self.restored = []
        self.pending = []
        self.is_calling = False
        if self.places_size:
            memset(self.places, 0, self.places_size * cython.sizeof(uint64_t))
        return 0

    def restore(self, unreported):
        """Have what was there before a restart named again, and what was settled and not told.

        Args:
            unreported: For each such item its number, its newest attempt, and the outcome.
        """
        now_us: uint64_t = cogwork_wall_us()
        self.is_calling = self.items.depth > 0
        self.call_slot = 0
        for number, attempt, outcome in unreported:
            if not self.follows(number):
                continue
            self.restored.append((0, number, 0, 0, 0, 0, None, now_us))
            self.restored.append((1, number, attempt, outcome, 0, 0, None, now_us))
        return 0

    # -- what its taker does

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return self.count == 0 and not self.restored and not self.is_calling

    @property
    def waiting(self) -> int:
        """Counts the facts that wait to be taken."""
        return self.count + len(self.restored)

    def take(self, count: int) -> list:
        """Hand over the oldest facts.

        Args:
            count: How many at most.

        Returns:
            For each fact whether it is a settlement, the item's number, the attempt, the outcome's
            place in `OUTCOMES`, the consumer's number, the position (0 where none is known), the
            body's digest or None, and the time in microseconds since 1970.
        """
        index: uint32_t
        fact: cython.pointer(Fact)
        taken: list = self.restored[:count]
        del self.restored[:count]
        if not taken and self.is_calling and self.count < count:
            self._call(cython.cast(uint32_t, count))
        left: uint32_t = min(self.count, cython.cast(uint32_t, count - len(taken)))
        for index in range(left):
            fact = self.facts + index
            taken.append(
                (
                    fact.is_settled,
                    fact.number,
                    fact.attempt,
                    fact.outcome,
                    fact.consumer,
                    fact.position,
                    fact.digest if fact.has_digest else None,
                    fact.time_us,
                )
            )
        self.count -= left
        if left and self.count:
            memmove(self.facts, self.facts + left, self.count * cython.sizeof(Fact))
        return taken

    def unreported(self):
        """List the settlements that nobody is known to have been told of, as `restore` takes them."""
        index: uint32_t
        found: list = []
        facts: list
        for facts in self.pending:
            for each in facts:
                if each[0]:
                    found.append((each[1], each[2], each[3]))
        for each in self.restored:
            if each[0]:
                found.append((each[1], each[2], each[3]))
        for index in range(self.count):
            if self.facts[index].is_settled:
                found.append(
                    (
                        self.facts[index].number,
                        self.facts[index].attempt,
                        self.facts[index].outcome,
                    )
                )
        return found

    # -- facts

    def _name(self, item):
        fact: cython.pointer(Fact) = self._new(item)
        if fact == cython.NULL:
            return 0
        if item.sequence and item.state != DELAYED:
            fact.position = item.sequence + self.sequence_base
        if self.has_digests:
            fact.digest = self._digest(item)
            fact.has_digest = 1
        return 0

    def _new(self, item):
        """Return room for a fact of an item; NULL where there is none."""
        fact: cython.pointer(Fact)
        if self.count == self.capacity:
            if self.capacity >= self.facts_max:
                self.missed += 1
                return cython.NULL
            self._grow()
        fact = self.facts + self.count
        self.count += 1
        memset(fact, 0, cython.sizeof(Fact))
        fact.number = number_of(item)
        fact.time_us = cogwork_wall_us()
        return fact

    def _call(self, count):
        """Name items that were there before, slot by slot; the last call ends that."""
        item: cython.pointer(Item)
        while self.count < count:
            item = self.items.slots.next_item(cython.address(self.call_slot))
            if item == cython.NULL:
                self.is_calling = False
                return 0
            self.accepted(item)
            if self.count >= self.facts_max:
                return 0
        return 0

    def _digest(self, item):
        """Hash a message's body: the first 64 bits of its SHA-256."""
        hashed: object = hashlib.sha256()
        p: octets = item.data
        size: int64_t = item.size
        at: int64_t = 0
        start: int64_t
        end: int64_t
        body: int64_t = 0
        value: octets = cython.NULL
        length: uint32_t = 0
        code: cython.int
        parts: BasicParts
        if item.format == BASIC_FORMAT and find_basic_parts(p, item.size, cython.address(parts)):
            hashed.update(bytes_from(parts.body, parts.body_size))
            return int.from_bytes(hashed.digest()[:8], "big")
        if item.format != 0:
            hashed.update(bytes_from(p, item.size))
            return int.from_bytes(hashed.digest()[:8], "big")
        while at < size:
            start = at
            code = descriptor_code(p + at, size - at, cython.address(body))
            if code < 0x70 or code > 0x77:
                break
            at += body
            end = skip_value(p, at, size)
            if end < 0:
                break
            if code >= 0x75:
                if code == 0x76 or not _read_octets(
                    p, at, size, cython.address(value), cython.address(length)
                ):
                    value = p + start
                    length = cython.cast(uint32_t, end - start)
                hashed.update(bytes_from(value, length))
            at = end
        return int.from_bytes(hashed.digest()[:8], "big")

    def _grow(self):
        capacity: uint32_t = min(max(self.capacity * 2, FACTS_MIN), self.facts_max)
        grown: cython.pointer(Fact) = cython.cast(
            cython.pointer(Fact), realloc(self.facts, capacity * cython.sizeof(Fact))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for an audit's facts")
        self.facts = grown
        self.capacity = capacity
        return 0

    def _grow_places(self, slot):
        size: uint32_t = max(self.places_size, PLACES_MIN)
        grown: cython.pointer(uint64_t)
        while size <= slot:
            size *= 2
        grown = cython.cast(
            cython.pointer(uint64_t), realloc(self.places, size * cython.sizeof(uint64_t))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for an audit's places")
        memset(grown + self.places_size, 0, (size - self.places_size) * cython.sizeof(uint64_t))
        self.places = grown
        self.places_size = size
        return 0


def render(facts: list, where: str, consumers: dict, middles: tuple) -> list:
    """Encode facts as messages: properties, attempt and position, and a JSON object.

    Args:
        facts: As `AuditEvents.take` returns them.
        where: What stands between event and item's number: queue, container, sample, and of the
            item's name the eight digits of the shard.
        consumers: Their names by number, as JSON.
        middles: The properties from user-id to reply-to, of acceptances and of settlements.
    """
    number: uint64_t
    attempt: uint32_t
    outcome: uint32_t
    position: uint64_t
    time_us: uint64_t
    messages: list = []
    shard: str = where[len(where) - 8 :]
    for is_settled, number, attempt, outcome, consumer, position, digest, time_us in facts:
        event: str = "settled" if is_settled else "accepted"
        name: str = consumers.get(consumer, "null")
        place: str = f"{position}" if position else "null"
        hashed: str = "null" if digest is None else f'"{digest:016x}"'
        said: str = "null" if OUTCOMES[outcome] is None else f'"{OUTCOMES[outcome]}"'
        item: bytes = f"{shard}{number:016x}".encode()
        properties: bytes = (
            ITEM_HEAD + item + middles[is_settled] + _CORRELATIONS[outcome] + CONTENT_TYPE
        )
        body: bytes = (
            f'{{"event":"{event}",{where}{number:016x}","attempt":{attempt},"outcome":{said},'
            f'"consumer":{name},"position":{place},"digest":{hashed},"time_us":{time_us}}}'
        ).encode()
        messages.append(
            PROPERTIES_HEAD
            + bytes_of_size(cython.cast(uint32_t, len(properties)) + 4)
            + PROPERTIES_COUNT
            + properties
            + place_of(attempt, position)
            + DATA_HEAD
            + bytes_of_size(cython.cast(uint32_t, len(body)))
            + body
        )
    return messages


@cython.cfunc
def bytes_of_size(size: uint32_t) -> bytes:
    encoded: uint8_t[4]
    store_u32(encoded, size)
    return bytes_from(encoded, 4)


@cython.cfunc
def place_of(attempt: uint32_t, position: uint64_t) -> bytes:
    """Encode attempt and position once more, as application properties."""
    encoded: uint8_t[8]
    pairs: bytes = PLACE_HEADS[position > 0] + ATTEMPT_HEAD + bytes_of_size(attempt)
    if position == 0:
        return pairs + NO_POSITION
    store_u64(encoded, position)
    return pairs + POSITION_HEAD + bytes_from(encoded, 8)


def outcome_of_reason(reason):
    """Return the outcome of an item that is dead for a reason."""
    return _REASONS.get(reason, OUTCOME_NOTHING)


@cython.cfunc
@cython.exceptval(check=False)
def _read_octets(
    p: octets,
    at: int64_t,
    end: int64_t,
    value: cython.pointer(octets),
    size: cython.pointer(uint32_t),
) -> cython.bint:
    """Read a binary or a string; return whether it is one."""
    code: uint8_t = p[at] if at < end else 0
    if code == 0xA0 or code == 0xB0:
        return read_binary(p, at, end, value, size) >= 0
    if code == 0xA1 or code == 0xB1:
        return read_string(p, at, end, value, size) >= 0 and value[0] != cython.NULL
    return False
