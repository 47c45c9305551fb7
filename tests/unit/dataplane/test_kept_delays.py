"""What waits in a queue on disk, and what it remembers, over a restart: in order, and no longer."""

from __future__ import annotations

import struct
import time

import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Header, Properties
from cogwork.amqp.performatives import Transfer
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.queue.store import KEEP_CODE


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue()


def delayed(delay_ms: int) -> dict[str, object]:
    return {"message_annotations": {Symbol("x-opt-delivery-delay"): UInt(delay_ms)}}


@pytest.mark.parametrize("is_rewritten", [False, True])
def test_what_is_due_at_once_comes_in_the_order_it_was_sent(
    queue: KeptQueue, is_rewritten: bool
) -> None:
    gone = [str(number) for number in range(100)]
    queue.send(*gone)
    assert queue.store.purge(70) == 70  # free slots are used again before those behind them
    sent = [str(number) for number in range(100, 200)]
    queue.send(*sent, **delayed(60_000))
    again = (queue.checkpointed() if is_rewritten else queue).restarted()
    again.send("last", **delayed(60_000))
    again = (again.checkpointed() if is_rewritten else again).restarted()
    for each in (queue, again):
        each.store.tick(time.monotonic() + 61)
        assert each.texts()[30 : 30 + len(sent)] == sent
    assert again.texts()[-1] == "last"


def written_ahead(record: bytes, ahead_ms: int) -> bytes:
    """The record of one new item as a clock that is ahead has it written."""
    times = list(struct.unpack_from(">3Q", record, 17))
    times = [each + ahead_ms if each else 0 for each in times]
    return record[:17] + struct.pack(">3Q", *times) + record[41:]


def test_a_clock_that_was_set_back_makes_nothing_wait_longer(queue: KeptQueue) -> None:
    queue.send("late", **delayed(60_000))
    queue.commit()
    queue.send("mortal", header=Header(ttl=UInt(90_000)))
    queue.commit()
    queue.records = [written_ahead(each, 30 * 86_400_000) for each in queue.records]
    again = queue.restarted()
    again.store.tick(time.monotonic() + 61)
    assert again.texts() == ["mortal", "late"]
    again.store.tick(time.monotonic() + 91)
    again.core.flush()
    assert again.texts() == ["late"]


def test_what_was_out_is_in_doubt_though_a_clock_that_was_set_back_has_it_delayed(
    queue: KeptQueue,
) -> None:
    queue.send("late", **delayed(60_000))
    queue.commit()
    queue.store.tick(time.monotonic() + 61)
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.commit()
    consumer.hear()
    (item,) = consumer.take()
    queue.records[0] = written_ahead(queue.records[0], 86_400_000)
    again = queue.restarted()
    assert (again.count("in-doubt"), again.count("delayed")) == (1, 0)
    link = again.peer().consumer(again.store)
    assert again.store.resume(link, [item.tag]) == [KEEP_CODE]


def test_a_message_id_that_is_too_long_for_a_record_is_left_out_of_an_account() -> None:
    queue = KeptQueue(deduplication_window_s=60.0)
    queue.send("a", properties=Properties(message_id="1"))
    publisher = queue.peer()
    link = publisher.publisher(queue.entry)
    long = queue.message("b", properties=Properties(message_id="x" * 70_000))
    first = Transfer(handle=link.handle, delivery_id=0, delivery_tag=b"0", more=True)
    publisher.say(first, long[:60_000])
    publisher.say(Transfer(handle=link.handle), long[60_000:])
    assert queue.store.purge() == 2
    again = queue.checkpointed().restarted()
    again.send("a", properties=Properties(message_id="1"))
    assert (again.store.depth, again.count("duplicates")) == (0, 1)
