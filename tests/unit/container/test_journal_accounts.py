"""What a queue on disk writes anew: its account, which makes older records superfluous."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from journal_box import Box, FakeLog
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.container.journals.journals import QueueJournals
from cogwork.container.journals.records import (
    BEGIN,
    CHANGES,
    END,
    FIRST_GROUP,
    PART,
    Begin,
    Replayed,
)

if TYPE_CHECKING:
    from cogwork.log.record import Record


def test_a_checkpoint_makes_older_records_superfluous(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        box.queue.send("a", "b")
        await box.turn()
        box.journals.press(FIRST_GROUP)
        box.queue.send("c")
        await box.turn()
        begin = max(at for at, kind in enumerate(box.log.kinds()) if kind == BEGIN)
        assert box.log.kinds()[begin:] == [BEGIN, PART, END]
        assert box.log.low[FIRST_GROUP] == box.log.records[begin].lsn
        replayed = Replayed()
        for record in box.log.records[begin:]:
            replayed.take(record.kind, record.payload)
        assert replayed.is_complete
        assert replayed.begin.options == {"priorities": 3}
        assert len(replayed.image.items) == 3

    runner.run(story())


async def left() -> Box:
    """A container's journals that go with an item in their queue."""
    box = Box()
    box.queue.send("a")
    await box.turn()
    box.queue.store.journal = None
    return box


def stranded(box: Box) -> tuple[QueueJournals, Any]:
    """What another life makes of a queue that nobody declares, and its log."""
    again = QueueJournals(box.queue.core, "box", has_disk=True)
    for record in box.log.records:
        again.replay(record)
    log: Any = FakeLog()
    log.end_lsn = log.durable_lsn = box.log.end_lsn
    again.start(log, {})
    return again, log


def replayed_of(records: list[Record]) -> Replayed:
    replayed = Replayed()
    for record in records:
        replayed.take(record.kind, record.payload)
    return replayed


def test_a_queue_that_is_not_had_here_does_not_keep_the_log_for_ever(
    runner: asyncio.Runner,
) -> None:
    async def story() -> None:
        box = Box()
        consumer = box.queue.peer()
        consumer.consumer(box.queue.store, 1)
        box.queue.send("a", "b")
        await box.turn()
        box.queue.store.journal = None
        again, log = stranded(box)
        for number in (1, 2):
            again.press(FIRST_GROUP)
            again.press(FIRST_GROUP)
            for _ in range(5):
                await asyncio.sleep(0)
            assert log.kinds() == [BEGIN, PART, END] * number
            begin = log.records[-3]
            assert log.low == {FIRST_GROUP: begin.lsn}
            replayed = replayed_of(log.records)
            assert replayed.begin.address == "queue/a"
            assert replayed.begin.options == {"priorities": 3}
            items = replayed.image.items.values()
            assert sorted((text_of(item.message), item.is_out) for item in items) == [
                ("a", True),
                ("b", False),
            ]

    runner.run(story())


def test_a_queue_that_is_had_again_writes_its_account_alone(runner: asyncio.Runner) -> None:
    async def story() -> None:
        again, log = stranded(await left())
        again.press(FIRST_GROUP)
        store = KeptQueue().store
        again.open("", "queue/a", {"priorities": 3}, store)
        for _ in range(5):
            await asyncio.sleep(0)
        assert END not in log.kinds()
        assert store.depth == 1

    runner.run(story())


def test_an_account_that_is_not_complete_does_not_count() -> None:
    replayed = Replayed()
    head = Begin("", "queue/a", 7, 1).encode()
    replayed.take(BEGIN, head)
    assert not replayed.is_complete
    replayed.take(END, b"")
    replayed.take(BEGIN, head)
    image = replayed.image
    replayed.take(CHANGES, b"\x03" + bytes(8))
    assert replayed.image is image
    replayed.take(END, b"")
    assert replayed.image is not image


def test_an_audit_is_not_told_again_of_what_is_only_remembered() -> None:
    queue = KeptQueue(is_audited=True)
    queue.journal.gathered(1)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    queue.commit()
    consumer.hear()
    for arrival in consumer.take():
        consumer.settle(arrival)
    audit_events: Any = queue.store.audit_events
    audit_events.take(100)
    queue.journal.gathered(2)
    queue.journal.reported(2)
    queue.commit()
    replayed = Replayed()
    head = Begin("", "queue/a", 7, 1).encode()
    replayed.take(BEGIN, head)
    replayed.take(END, b"")
    for payload in queue.records:
        replayed.take(CHANGES, payload)
    assert (replayed.image.unreported, len(replayed.image.commits)) == ([], 2)
    replayed.take(BEGIN, head)
    for payload in queue.checkpointed().records:
        replayed.take(PART, payload)
    replayed.take(END, b"")
    assert replayed.image.is_audited
    assert (replayed.image.unreported, len(replayed.image.commits)) == ([], 2)


@pytest.mark.parametrize("payload", [b"", b"\x02" + bytes(8) + b"{}", b"\x01" + bytes(8) + b"{}"])
def test_a_head_that_is_none_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="queue"):
        Begin.decode(payload)


@pytest.mark.parametrize("options", [{"priorities": 3}, {"priorities": 3, "maximum_length": 7}])
def test_a_queue_with_other_options_than_are_written_down_is_written_anew(
    runner: asyncio.Runner, options: dict[str, object]
) -> None:
    async def story() -> None:
        box = await left()
        again, log = stranded(box)
        again.open("", "queue/a", options, KeptQueue().store)
        for _ in range(5):
            await asyncio.sleep(0)
        if options == {"priorities": 3}:
            assert log.kinds() == []
        else:
            assert log.kinds() == [BEGIN, PART, END]
            assert replayed_of(box.log.records + log.records).begin.options == options

    runner.run(story())
