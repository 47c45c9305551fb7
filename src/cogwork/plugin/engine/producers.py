"""Who has appended what: how a stream drops what a producer sends twice.

Theory of operation. A producer numbers its records. The table keeps, for each producer, the last
few batches with the place they got and a fingerprint of their payload: what is sent again gets the
old answer, what is partly new is cut, and a number that comes back with another payload is an error
and no repetition. The table is part of the stream's state: every replica has the same, octet for
octet, for it changes by appends alone. It is bounded: who has not appended for longest is forgotten
first, and has to take a new id.
"""

from __future__ import annotations

import struct
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

import msgspec
from google_crc32c import value as crc32c
from msgspec import structs

from cogwork.plugin.engine.errors import Malformed, OutOfSequence, SequenceReused

if TYPE_CHECKING:
    from cogwork.plugin.engine.batch import Batch

__all__ = ("BATCHES_KEPT", "PRODUCERS_MAX", "Fresh", "ProducerTable", "Repeated")

PRODUCERS_MAX = 10_000
"""How many producers a stream remembers, if nothing else is said."""

BATCHES_KEPT = 8
"""How many batches of each producer: so many may be repeated and still get their offset."""

_COUNT = struct.Struct(">I")
_KEPT = struct.Struct(">QIQI")


class Fresh(msgspec.Struct, frozen=True, gc=False):
    """To be appended.

    Attributes:
        batch: What is new of the batch.
        first_offset: Where the first record of the whole batch is, if it is there and remembered.
    """

    batch: Batch
    first_offset: int | None = None


class Repeated(msgspec.Struct, frozen=True, gc=False):
    """In the stream already.

    Attributes:
        first_offset: Where the batch's first record is; None where nobody remembers.
    """

    first_offset: int | None


class _Kept(msgspec.Struct, frozen=True, gc=False):
    """A batch that was appended."""

    sequence: int
    record_count: int
    offset: int
    fingerprint: int

    @property
    def end(self) -> int:
        """The sequence after its last record."""
        return self.sequence + self.record_count


class ProducerTable:
    """The producers of one stream. Batches without a producer are none of its business."""

    __slots__ = ("_kept", "_producers_max")

    def __init__(self, producers_max: int = PRODUCERS_MAX) -> None:
        self._producers_max = producers_max
        self._kept: OrderedDict[bytes, deque[_Kept]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def next_sequence(self, producer: bytes) -> int:
        """Return the sequence that the producer's next record must have."""
        kept = self._kept.get(producer)
        return kept[-1].end if kept else 0

    def holds(self, batch: Batch) -> bool:
        """Return whether all of the batch's sequences have been used."""
        return batch.sequence + batch.count <= self.next_sequence(batch.producer)

    def decide(self, batch: Batch) -> Fresh | Repeated:
        """Return what of a batch is new.

        Raises:
            OutOfSequence: Records of the producer are missing before these.
            SequenceReused: The producer has used a sequence for other records.
        """
        kept = self._kept.get(batch.producer)
        expected = kept[-1].end if kept else 0
        if batch.sequence == expected:
            return Fresh(batch)
        if batch.sequence > expected:
            raise OutOfSequence(expected, batch.sequence)
        first_offset = None if kept is None else _place(kept, batch)
        dropped = expected - batch.sequence
        if dropped >= batch.count:
            return Repeated(first_offset)
        return Fresh(batch.after(dropped), first_offset)

    def record(self, batch: Batch, offset: int) -> None:
        """Remember a batch that was fresh and is now in the stream."""
        kept = self._kept.get(batch.producer)
        if kept is None:
            kept = self._kept[batch.producer] = deque(maxlen=BATCHES_KEPT)
            if len(self._kept) > self._producers_max:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(batch.producer)
        kept.append(_Kept(batch.sequence, batch.count, offset, crc32c(batch.payload)))

    def to_bytes(self) -> bytes:
        """Write it down, those first that have not appended for longest."""
        parts = [_COUNT.pack(len(self._kept))]
        for producer, kept in self._kept.items():
            parts.append(bytes((len(producer), len(kept))))
            parts.append(producer)
            parts.extend(_KEPT.pack(*structs.astuple(each)) for each in kept)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, producers_max: int = PRODUCERS_MAX) -> ProducerTable:
        """Read it back.

        Raises:
            Malformed: It is none.
        """
        table = cls(producers_max)
        try:
            (count,) = _COUNT.unpack_from(data)
            position = _COUNT.size
            for _ in range(count):
                position = table._read_producer(data, position)
        except (struct.error, IndexError) as error:
            raise Malformed("a table of producers", "it is cut short") from error
        if position != len(data) or len(table) != count:
            raise Malformed("a table of producers", "its count is wrong")
        return table

    def _read_producer(self, data: bytes, position: int) -> int:
        length, count = data[position], data[position + 1]
        start = position + 2
        end = start + length
        if not 1 <= count <= BATCHES_KEPT:
            raise Malformed("a table of producers", f"{count} batches of one producer")
        self._kept[data[start:end]] = deque(
            (_Kept(*_KEPT.unpack_from(data, end + i * _KEPT.size)) for i in range(count)),
            maxlen=BATCHES_KEPT,
        )
        return end + count * _KEPT.size


def _place(kept: deque[_Kept], batch: Batch) -> int | None:
    """Return the offset of a repetition's first record.

    What was cut differently when it was first sent is compared as far as whole batches of then lie
    in the batch of now.
    """
    found = None
    end = batch.sequence + batch.count
    for each in kept:
        if each.sequence <= batch.sequence < each.end:
            found = each.offset + batch.sequence - each.sequence
        if batch.sequence <= each.sequence and each.end <= end:
            part = batch.part(each.sequence - batch.sequence, each.record_count)
            if crc32c(part) != each.fingerprint:
                raise SequenceReused(each.sequence)
    return found
