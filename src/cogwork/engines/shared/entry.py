"""What the server's log holds: entries, each of which says what it follows.

All numbers are big-endian. An entry: magic (2), version (1), kind (1), CRC-32 of all that follows,
begun with the kind (4), id (8), position and id of the entry before that counts (8, 8), offset (8),
epoch (8), time in milliseconds (8, signed), number of records (4), position of the newest
checkpoint (8) and of the newest snapshot (8) before this entry, octets of all entries before it
(8), the body. The body of records: for each batch its length (4) and itself, as in `chunks`; of a
checkpoint or a snapshot: position of the first part (8, 0 in that one), index of the part (4),
number of parts (4), the part.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING
from zlib import crc32

from cogwork.plugin.engine.batch import Chunk
from cogwork.plugin.engine.chunks import decode_batch, encode_batch
from cogwork.plugin.engine.errors import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogwork.plugin.engine.batch import Batch

__all__ = (
    "BATCH_OVERHEAD_BYTES",
    "ENTRY_OVERHEAD_BYTES",
    "PART_OVERHEAD_BYTES",
    "Entry",
    "Kind",
    "Part",
    "link_of",
    "pack_batches",
    "unpack_batches",
)

MAGIC = b"CW"
VERSION = 1

_FRONT = struct.Struct(">2sBBI")
_HEAD = struct.Struct(">8sQ8sQQqIQQQ")
_LINK = struct.Struct(">8sQ8s")
_LENGTH = struct.Struct(">I")
_PART = struct.Struct(">QII")

ENTRY_OVERHEAD_BYTES = _FRONT.size + _HEAD.size
PART_OVERHEAD_BYTES = ENTRY_OVERHEAD_BYTES + _PART.size
BATCH_OVERHEAD_BYTES = _LENGTH.size + 13 + 64
"""At most so much is added to a batch: its length, its own header, the producer id."""


class Kind(IntEnum):
    """What an entry is."""

    RECORDS = 0
    FENCE = 1
    CHECKPOINT = 2
    SNAPSHOT = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        kind: What the body is.
        id: Its own, at random.
        previous: The position of the entry before it that counts; 0 where it is the first.
        previous_id: That one's id.
        offset: The stream's next offset before it.
        epoch: The stream's, with it.
        time_ms: When it was written; never less than before.
        count: How many records it has.
        checkpoint: Where the newest complete checkpoint begins; 0 for none.
        snapshot: Where the newest complete snapshot begins; 0 for none.
        written: Octets of all entries before it.
        body: As the kind says.
    """

    kind: Kind
    id: bytes
    previous: int
    previous_id: bytes
    offset: int
    epoch: int
    time_ms: int
    count: int
    checkpoint: int
    snapshot: int
    written: int
    body: bytes

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        return self.offset + self.count

    @property
    def size_bytes(self) -> int:
        """How many octets it takes."""
        return ENTRY_OVERHEAD_BYTES + len(self.body)

    def to_bytes(self) -> bytes:
        """Write it down."""
        head = _HEAD.pack(
            self.id,
            self.previous,
            self.previous_id,
            self.offset,
            self.epoch,
            self.time_ms,
            self.count,
            self.checkpoint,
            self.snapshot,
            self.written,
        )
        check = crc32(self.body, crc32(head, self.kind))
        return _FRONT.pack(MAGIC, VERSION, self.kind, check) + head + self.body

    @classmethod
    def from_bytes(cls, data: bytes) -> Entry:
        """Read it back.

        Raises:
            Malformed: It is none, damaged, or of another version.
        """
        if len(data) < ENTRY_OVERHEAD_BYTES:
            raise Malformed("an entry", "it is cut short")
        magic, version, kind, check = _FRONT.unpack_from(data)
        if magic != MAGIC:
            raise Malformed("an entry", "somebody else wrote it")
        if version != VERSION:
            raise Malformed("an entry", f"its version is {version}, not {VERSION}")
        if crc32(memoryview(data)[_FRONT.size :], kind) != check or kind not in _KINDS:
            raise Malformed("an entry", "it is damaged")
        fields = (*_HEAD.unpack_from(data, _FRONT.size), data[ENTRY_OVERHEAD_BYTES:])
        return cls(_KINDS[kind], *fields)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of records.

        Raises:
            Malformed: The body is none, or does not have the records that it should.
        """
        offset = self.offset
        for batch in unpack_batches(self.body) if self.kind is Kind.RECORDS else ():
            yield Chunk(offset, self.epoch, self.time_ms, batch)
            offset += batch.count
        if offset != self.next_offset:
            raise Malformed("an entry", "it has not as many records as it says")


def link_of(data: bytes) -> tuple[bytes, int, bytes]:
    """Return an entry's id, and the position and id of the one that it follows."""
    return _LINK.unpack_from(data, _FRONT.size)


_KINDS = {kind.value: kind for kind in Kind}


def pack_batches(batches: Iterable[Batch]) -> bytes:
    """Write batches one after the other."""
    parts = []
    for batch in batches:
        data = encode_batch(batch)
        parts.append(_LENGTH.pack(len(data)))
        parts.append(data)
    return b"".join(parts)


def unpack_batches(body: bytes) -> Iterator[Batch]:
    """Yield the batches of a body.

    Raises:
        Malformed: It is none.
    """
    position, end = 0, len(body)
    while position < end:
        start = position + _LENGTH.size
        if start > end:
            raise Malformed("an entry", "a batch is cut short")
        position = start + _LENGTH.unpack_from(body, position)[0]
        if position > end:
            raise Malformed("an entry", "a batch is cut short")
        yield decode_batch(body[start:position])


@dataclass(frozen=True, slots=True)
class Part:
    """A part of something that is too large for one entry.

    One writer writes them one after the other, so the last one says that all are there.

    Attributes:
        first: The position of the first part; 0 in that part itself.
        index: Which part.
        count: Of how many.
        data: Its octets.
    """

    first: int
    index: int
    count: int
    data: bytes

    @property
    def is_last(self) -> bool:
        """Whether no other follows."""
        return self.index + 1 == self.count

    def to_bytes(self) -> bytes:
        """Write it down."""
        return _PART.pack(self.first, self.index, self.count) + self.data

    @classmethod
    def from_bytes(cls, body: bytes) -> Part:
        """Read it back.

        Raises:
            Malformed: It is none.
        """
        if len(body) < _PART.size:
            raise Malformed("a part", "it is cut short")
        first, index, count = _PART.unpack_from(body)
        if index >= count:
            raise Malformed("a part", "its number is wrong")
        return cls(first, index, count, body[_PART.size :])
