"""Marks: records of the log itself, which say what can be relied on.

Theory of operation. After a power cut, pages that were written and not synchronised may be there or
not, in any mixture: a broken record with whole ones behind it need not mean damage. So each flush
ends with a mark, which says up to which LSN everything was durable when it was written, and which
is the oldest file that is needed. A log may end at any LSN that no mark says was durable; a record
below it that cannot be read is damage. The newest mark that is whole tells both, wherever it is,
for it says nothing but what was true before it was written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.record import OVERHEAD_BYTES, Record, encode_record, read_record, record_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("KIND_END", "KIND_MARK", "LOG_GROUP", "MARK_BYTES", "Mark", "find_newest_mark")

LOG_GROUP = 0
KIND_MARK = 1
KIND_END = 2
"""A mark that is the last record of its file."""

_MAGIC = bytes.fromhex("c06a3e81f4d92b57")
MARK_BYTES = OVERHEAD_BYTES + len(_MAGIC)

_NOTHING = bytes(OVERHEAD_BYTES)
"""What stands behind the last record: a record without octets has a checksum."""


class Mark(NamedTuple):
    """What can be relied on.

    Attributes:
        durable_lsn: Everything below was durable.
        oldest_number: Of the oldest file that is needed.
    """

    durable_lsn: int
    oldest_number: int

    @classmethod
    def of(cls, record: Record) -> Mark | None:
        """Reads a record that may be one."""
        if record.group != LOG_GROUP or record.payload != _MAGIC:
            return None
        return cls(record.index, record.term)

    def encode(self, lsn: int, kind: int) -> tuple[bytes, bytes, bytes]:
        """Returns its form on disk, in pieces to be joined."""
        return encode_record(lsn, LOG_GROUP, kind, self.durable_lsn, self.oldest_number, _MAGIC)


def find_newest_mark(data: bytes, number: int) -> Mark | None:
    """Finds the last mark that is whole, behind a place that is not, too.

    What looks like one within a record that is whole is what somebody has sent.

    Args:
        data: All that the file holds.
        number: The file's.
    """
    starts = _starts(data)
    for position in reversed(list(_places(data))):
        record = read_record(data, position, number) if position >= 0 else None
        mark = Mark.of(record) if record is not None else None
        if mark is not None and not _is_within(data, position, number, starts):
            return mark
    return None


def _starts(data: bytes) -> list[int]:
    """Lists where records begin, as far as each says itself how long it is."""
    starts: list[int] = []
    position = HEADER_BYTES
    while (head := data[position : position + OVERHEAD_BYTES]) != _NOTHING:
        size_bytes = record_bytes(head)
        if not size_bytes:
            break
        starts.append(position)
        position += size_bytes
    return starts


def _is_within(data: bytes, position: int, number: int, starts: list[int]) -> bool:
    """Says whether a place is in the middle of a record that is whole."""
    found = bisect_right(starts, position) - 1
    if found < 0 or starts[found] == position:
        return False
    record = read_record(data, starts[found], number)
    return record is not None and position < starts[found] + record.size_bytes


def _places(data: bytes) -> Iterator[int]:
    for match in re.finditer(re.escape(_MAGIC), data):
        yield match.start() - OVERHEAD_BYTES
