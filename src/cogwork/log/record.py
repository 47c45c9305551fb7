"""A record of the write-ahead log, and its form on disk; `docs/internals/log.md` has the table.

Theory of operation. A record's checksum also covers where it is: what an earlier life of a recycled
file left behind, at whatever place, is never taken for a record of now.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

import msgspec
from google_crc32c import extend, value

from cogwork.log.position import lsn_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = (
    "GROUP_MAX",
    "OVERHEAD_BYTES",
    "Record",
    "encode_record",
    "read_record",
    "record_bytes",
    "scan_records",
)

GROUP_MAX = (1 << 32) - 1

_HEAD = Struct(">QIIBQQ")
"""The LSN, which is not stored, and what follows the checksum."""

_STORED = Struct(">IIIBQQ")
_CHECKSUM = Struct(">I")
_LENGTH = Struct(">I")

CHECKSUM_BYTES = _CHECKSUM.size
LSN_BYTES = 8
HEAD_BYTES = _HEAD.size - LSN_BYTES

OVERHEAD_BYTES = CHECKSUM_BYTES + HEAD_BYTES
"""What a record takes besides its payload."""


class Record(msgspec.Struct, gc=False):
    """What was appended.

    Attributes:
        lsn: Where it is.
        group: Whose it is; 0 is the log's own.
        kind: What it is, as its group sees it.
        index: The group's number of it.
        term: The group's, too.
        payload: The group's, too.
    """

    lsn: int
    group: int
    kind: int
    index: int
    term: int
    payload: bytes

    @property
    def size_bytes(self) -> int:
        """What it takes in a file."""
        return OVERHEAD_BYTES + len(self.payload)

    @property
    def end_lsn(self) -> int:
        """Where the next one is."""
        return self.lsn + self.size_bytes


def encode_record(  # noqa: PLR0917  # a record's fields, on the hot path
    lsn: int, group: int, kind: int, index: int, term: int, payload: bytes
) -> tuple[bytes, bytes, bytes]:
    """Return a record's form on disk, in pieces to be joined."""
    head = _HEAD.pack(lsn, len(payload), group, kind, index, term)
    return _CHECKSUM.pack(extend(value(head), payload)), head[LSN_BYTES:], payload


def read_record(data: bytes, position: int, number: int, base: int = 0) -> Record | None:
    """Read the record at a place of a file.

    Args:
        data: What the file holds, or a part of it.
        position: Where in the file.
        number: The file's.
        base: Where in the file `data` begins.

    Returns:
        None where there is none that is whole.
    """
    start = position - base
    end = start + OVERHEAD_BYTES
    if end > len(data):
        return None
    checksum, length, group, kind, index, term = _STORED.unpack_from(data, start)
    body = data[start + CHECKSUM_BYTES : end + length]
    lsn = lsn_of(number, position)
    if extend(value(lsn.to_bytes(LSN_BYTES, "big")), body) != checksum or end + length > len(data):
        return None
    return Record(lsn, group, kind, index, term, body[HEAD_BYTES:])


def record_bytes(data: bytes) -> int:
    """Return how much a record takes that begins here, as it says itself; 0 at the end of all."""
    if len(data) < OVERHEAD_BYTES:
        return 0
    return OVERHEAD_BYTES + int(_LENGTH.unpack_from(data, CHECKSUM_BYTES)[0])


def scan_records(data: bytes, position: int, number: int) -> Iterator[Record]:
    """Yield the records of a file from a position on, up to the first place where none is whole.

    Args:
        data: All that the file holds.
        position: Where the first one is.
        number: The file's.
    """
    while (record := read_record(data, position, number)) is not None:
        yield record
        position += OVERHEAD_BYTES + len(record.payload)
