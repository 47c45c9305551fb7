"""Marks: records of the log itself, which say what can be relied on.

Theory of operation. After a power cut, pages that were written and not synchronised may be there or
not, in any mixture: a broken record with whole ones behind it need not mean damage. So each flush
ends with a mark, which says up to which LSN everything was durable when it was written, and which
is the oldest file that is needed. A log may end at any LSN that no mark says was durable; a record
below it that cannot be read is damage. The newest mark that is whole tells both, wherever it is,
for it says nothing but what was true before it was written. What stands in the middle of a torn
record may be anything that somebody has sent: so marks are known by a key that only the log has.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cogwork.log.file_header import KEY_BYTES
from cogwork.log.record import OVERHEAD_BYTES, Record, encode_record, read_record

__all__ = ("KIND_END", "KIND_MARK", "LOG_GROUP", "MARK_BYTES", "Mark", "find_newest_mark")

LOG_GROUP = 0
KIND_MARK = 1
KIND_END = 2
"""A mark that is the last record of its file."""

MARK_BYTES = OVERHEAD_BYTES + KEY_BYTES


class Mark(NamedTuple):
    """What can be relied on.

    Attributes:
        durable_lsn: Everything below was durable.
        oldest_number: Of the oldest file that is needed.
    """

    durable_lsn: int
    oldest_number: int

    @classmethod
    def of(cls, record: Record, key: bytes) -> Mark | None:
        """Read a record that may be one of a log with such a key."""
        if record.group != LOG_GROUP or record.payload != key:
            return None
        return cls(record.index, record.term)

    def encode(self, lsn: int, kind: int, key: bytes) -> tuple[bytes, bytes, bytes]:
        """Return its form on disk, in pieces to be joined."""
        return encode_record(lsn, LOG_GROUP, kind, self.durable_lsn, self.oldest_number, key)


def find_newest_mark(data: bytes, number: int, key: bytes) -> Mark | None:
    """Find the last mark that is whole, behind a place that is not, too.

    Args:
        data: All that the file holds.
        number: The file's.
        key: The log's.
    """
    for match in reversed(list(re.finditer(re.escape(key), data))):
        position = match.start() - OVERHEAD_BYTES
        record = read_record(data, position, number) if position >= 0 else None
        mark = Mark.of(record, key) if record is not None else None
        if mark is not None:
            return mark
    return None
