"""What a start makes of records of queues that it does not understand."""

from __future__ import annotations

import pytest

from cogwork.container.journals.journals import QueueJournals
from cogwork.container.journals.records import BEGIN, CHANGES, FIRST_GROUP
from cogwork.dataplane.core import Core
from cogwork.log.errors import UnreadableRecord
from cogwork.log.position import lsn_of
from cogwork.log.record import Record


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        (BEGIN, b"\x02" + bytes(8) + b"something else", "of version 2; 1 is known"),
        (BEGIN, b"\x01", "no account of a queue begins with"),
        (CHANGES, b"\x63", "no record of a queue at octet 0 of 1"),
        (9, b"", "a queue's record of kind 9"),
    ],
)
def test_a_record_that_is_not_understood_is_named(kind: int, payload: bytes, reason: str) -> None:
    journals = QueueJournals(Core(), "box", has_disk=True)
    head = b"\x01" + bytes(8) + b'{"vhost":"","address":"queue/a","options":{}}'
    journals.replay(Record(lsn_of(3, 128), FIRST_GROUP, BEGIN, 0, 0, head))
    journals.replay(Record(lsn_of(3, 200), FIRST_GROUP, 4, 0, 0, b""))
    record = Record(lsn_of(3, 240), FIRST_GROUP, kind, 0, 0, payload)
    with pytest.raises(UnreadableRecord, match=reason) as caught:
        journals.replay(record)
    assert str(caught.value).startswith("0000000003.wal has a record at position 240 that")
