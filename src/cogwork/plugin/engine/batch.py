"""Records on their way into a stream, and out of it: opaque octets, many at a time.

Theory of operation. Ordering costs per batch and not per record: the records of one append travel
packed, each after its length (four octets, big-endian), from the producer to every subscriber, and
nobody between looks at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cogwork.plugin.engine.errors import InvalidAppend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = (
    "BATCH_BYTES_MAX",
    "CHUNK_OVERHEAD_BYTES",
    "PRODUCER_BYTES_MAX",
    "SEQUENCE_MAX",
    "Batch",
    "Chunk",
    "check",
    "pack",
    "spans",
    "unpack",
)

LENGTH_BYTES = 4

PRODUCER_BYTES_MAX = 64
"""A producer id is no longer; a UUID has 16."""

BATCH_BYTES_MAX = 16 << 20
"""A packed payload is no larger; an engine may declare less."""

CHUNK_OVERHEAD_BYTES = 400
"""What a chunk costs beside its payload, about: many small ones shall not be free."""

SEQUENCE_MAX = (1 << 63) - 1
"""The last sequence of a producer, which then takes a new id: engines count with 63 bits."""


def pack(records: Iterable[bytes], before: bytes = b"") -> bytes:
    """Put records one after the other, each behind its length, all behind what goes before."""
    parts: list[bytes] = [before]
    for record in records:
        parts.append(len(record).to_bytes(LENGTH_BYTES, "big"))
        parts.append(record)
    return b"".join(parts)


def unpack(payload: bytes) -> Iterator[bytes]:
    """Yield the records of a packed payload.

    Raises:
        ValueError: It ends in the middle of one.
    """
    for start, end in spans(payload):
        yield payload[start:end]


def spans(payload: bytes, position: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where the records of a packed payload, from a position on, begin and end.

    Raises:
        ValueError: It ends in the middle of one.
    """
    end = len(payload)
    while position < end:
        start = position + LENGTH_BYTES
        position = start + int.from_bytes(payload[position:start], "big")
        if position > end or start > end:
            raise ValueError("the payload ends in the middle of a record")
        yield start, position


class Batch(msgspec.Struct, frozen=True, gc=False):
    """What one append carries.

    Attributes:
        payload: The records, packed.
        count: How many there are; at least one.
        producer: Who made them, for dropping what comes twice; empty where nobody counts.
        sequence: The first record's, one more for each that follows; a new producer begins at 0.
    """

    payload: bytes
    count: int
    producer: bytes = b""
    sequence: int = 0

    @classmethod
    def of(cls, records: Iterable[bytes], producer: bytes = b"", sequence: int = 0) -> Batch:
        """Pack records."""
        listed = list(records)
        return cls(pack(listed), len(listed), producer, sequence)

    def records(self) -> Iterator[bytes]:
        """Yield the records."""
        return unpack(self.payload)

    def after(self, dropped: int) -> Batch:
        """Return the batch without its first `dropped` records, which are fewer than all."""
        position = _skip(self.payload, 0, dropped)
        return Batch(
            self.payload[position:], self.count - dropped, self.producer, self.sequence + dropped
        )

    def part(self, start: int, count: int) -> bytes:
        """Return the packed payload of `count` records from the one at index `start` on."""
        if start == 0 and count == self.count:
            return self.payload
        position = _skip(self.payload, 0, start)
        return self.payload[position : _skip(self.payload, position, count)]


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A batch with its place in the stream.

    Attributes:
        offset: Of its first record; one more for each that follows.
        epoch: Under which it was appended.
        time_ms: When, in milliseconds since 1970 (UTC); never less than that of a chunk before.
        batch: The records.
    """

    offset: int
    epoch: int
    time_ms: int
    batch: Batch

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        return self.offset + self.batch.count

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        return len(self.batch.payload) + CHUNK_OVERHEAD_BYTES

    def since(self, offset: int) -> Chunk:
        """Return the part of it from `offset` on, which it holds."""
        if offset <= self.offset:
            return self
        return Chunk(offset, self.epoch, self.time_ms, self.batch.after(offset - self.offset))


def check(batch: Batch, max_bytes: int = BATCH_BYTES_MAX) -> None:
    """See that a batch is one, without looking at each record.

    Raises:
        InvalidAppend: It is none; the text says why.
    """
    size_bytes = len(batch.payload)
    if batch.count < 1:
        raise InvalidAppend("a batch has at least one record")
    if size_bytes > max_bytes:
        raise InvalidAppend(
            f"the batch has {size_bytes} octets, more than {max_bytes}: append it in parts"
        )
    if size_bytes < batch.count * LENGTH_BYTES:
        raise InvalidAppend(f"{size_bytes} octets cannot be {batch.count} records")
    if len(batch.producer) > PRODUCER_BYTES_MAX:
        raise InvalidAppend(f"a producer id has at most {PRODUCER_BYTES_MAX} octets")
    if not 0 <= batch.sequence <= SEQUENCE_MAX - batch.count:
        raise InvalidAppend(f"a sequence is a number from 0 to {SEQUENCE_MAX}")


def _skip(payload: bytes, position: int, count: int) -> int:
    """Return the position after `count` records."""
    for _ in range(count):
        start = position + LENGTH_BYTES
        position = start + int.from_bytes(payload[position:start], "big")
    return position
