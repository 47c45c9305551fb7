"""Attempts that are marked as sent before the log has them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from wires import Broker

from cogwork.amqp.message import Header
from cogwork.dataplane.queue.journal_image import JournalImage
from cogwork.dataplane.queue.sent_marks import SIZE_BYTES, SentMarks, read_marks

if TYPE_CHECKING:
    import peers

MARK = struct.Struct("=QIIQ")


def mark(number: int, attempt: int, group: int) -> bytes:
    check = 0x6B72_6F77_676F_6373 ^ number ^ (group << 32 | attempt)
    return MARK.pack(number, attempt, group, check)


def test_marks_are_read_by_group() -> None:
    data = mark(7, 1, 2) + mark(8, 3, 2) + mark(7, 1, 5)
    assert read_marks(data) == {2: [(7, 1), (8, 3)], 5: [(7, 1)]}


@pytest.mark.parametrize("at", range(MARK.size))
def test_a_torn_mark_is_none(at: int) -> None:
    torn = bytearray(mark(0x0102030405060708, 0x01020304, 0x80000001))
    torn[at] ^= 0x10
    assert read_marks(bytes(torn)) == {}


def test_what_was_never_written_is_no_mark() -> None:
    assert read_marks(bytes(SIZE_BYTES)) == {}
    assert read_marks(mark(1, 1, 1)[:-1]) == {}


def test_the_room_has_one_size() -> None:
    with pytest.raises(ValueError, match=f"8 octets for marks; {SIZE_BYTES} are needed"):
        SentMarks(Broker().core, memoryview(bytearray(8)))


def put(number: int) -> bytes:
    head = struct.pack(">BQQQQQIBBI", 1, number, 1, 0, 0, 0, 0, 4, 0, 1)
    return head + b"m"


def image_with(*records: bytes) -> JournalImage:
    image = JournalImage()
    image.apply(b"".join(records))
    return image


@pytest.mark.parametrize(
    ("records", "attempt", "is_out"),
    [
        ([], 1, True),
        ([struct.pack(">BQI", 2, 9, 1)], 1, True),
        ([struct.pack(">BQII", 5, 9, 1, 0)], 1, False),
        ([struct.pack(">BQII", 5, 9, 1, 0)], 2, True),
    ],
    ids=["never recorded", "recorded", "given back since", "sent again since"],
)
def test_the_records_are_newer_where_they_know_the_attempt(
    records: list[bytes], attempt: int, *, is_out: bool
) -> None:
    image = image_with(put(9), *records)
    was_out = image.items[9].is_out
    image.note_sent(9, attempt)
    assert image.items[9].is_out is is_out
    assert image.items[9].is_unrecorded is (is_out and not was_out)


def test_an_item_that_is_no_more_stays_so() -> None:
    image = image_with(put(9), struct.pack(">BQ", 3, 9))
    image.note_sent(9, 1)
    assert image.items == {}


ROOM = SIZE_BYTES // MARK.size


def taken(consumer: peers.Peer) -> int:
    """Take all that comes; return how much that was."""
    count = 0
    while arrivals := consumer.take():
        count += len(arrivals)
    return count


def test_without_room_for_marks_deliveries_wait_for_the_log() -> None:
    """Marks go out of use with the records that they stand for, and never before."""
    queue = KeptQueue(waits_for_all=False, redelivers=True, delivers_ahead=True)
    memory = bytearray(SIZE_BYTES)
    assert queue.store.journal is not None
    queue.store.journal.mark_sent(SentMarks(queue.core, memoryview(memory)), 1)
    more = 10
    run = [queue.message("a", header=Header(durable=False))] * 64
    for _ in range(ROOM // 64):
        queue.publisher.send_run(queue.link, run)
    for _ in range(more):
        queue.send("a", header=Header(durable=False))
    queue.commit()
    consumer = queue.peer()
    consumer.consumer(queue.store, ROOM + more)
    assert taken(consumer) == ROOM
    assert len(read_marks(bytes(memory))[1]) == ROOM
    queue.commit()
    assert taken(consumer) == more
