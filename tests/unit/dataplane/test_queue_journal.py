"""A queue's journal: what is held until it is durable, and what is written down."""

from __future__ import annotations

import struct
import time

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.codec import encode
from cogwork.amqp.errors import AmqpError
from cogwork.amqp.outcomes import Accepted, Rejected
from cogwork.amqp.types import Symbol
from cogwork.dataplane.queue.journal_image import JournalImage


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue()


def test_an_acceptance_is_held_until_the_message_is_durable(queue: KeptQueue) -> None:
    queue.send("a")
    queue.publisher.hear()
    assert queue.publisher.dispositions == []
    queue.commit()
    queue.publisher.hear()
    assert [d.state for d in queue.publisher.dispositions] == [Accepted()]


def test_a_delivery_is_held_until_its_attempt_is_durable(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    assert consumer.take() == []
    queue.commit()
    consumer.hear()
    assert [text_of(arrival.message) for arrival in consumer.take()] == ["a"]


def test_a_confirmation_is_held_until_the_claim_is_durable(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    queue.commit()
    consumer.hear()
    consumer.settle(consumer.take()[0], settled=False)
    consumer.hear()
    assert consumer.dispositions == []
    queue.commit()
    consumer.hear()
    assert [d.state for d in consumer.dispositions] == [Accepted()]


def test_others_are_not_held(queue: KeptQueue) -> None:
    other = queue.peer()
    queue.send("a")
    assert other.wire.sendable_bytes == other.wire.unsent_bytes


def test_a_queue_that_cannot_write_gives_and_takes_nothing_until_it_can(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert queue.journal is not None
    queue.journal.is_open = False
    queue.send("a")
    queue.commit()
    assert (queue.store.depth, queue.publisher.dispositions) == (0, [])
    queue.journal.is_open = True
    queue.store.reopen()
    queue.core.flush()
    queue.commit()
    consumer.hear()
    assert [text_of(arrival.message) for arrival in consumer.take()] == ["a"]


def test_a_full_disk_rejects_where_the_policy_says_so(queue: KeptQueue) -> None:
    assert queue.journal is not None
    queue.store.policy = "reject"
    queue.journal.is_open = False
    queue.send("a")
    assert isinstance(queue.publisher.dispositions[0].state, Rejected)


def test_a_failed_disk_rejects_at_once(queue: KeptQueue) -> None:
    assert queue.journal is not None
    queue.journal.is_open = False
    queue.journal.is_failed = True
    queue.send("a")
    state = queue.publisher.dispositions[0].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == Symbol("cogwork:disk-failed")


RECORD_BYTES_MAX = 6 << 20
"""More than about a part, far less than what the tests here write."""


def test_a_checkpoint_of_large_messages_has_parts_that_fit_the_log(queue: KeptQueue) -> None:
    for _ in range(5):
        assert queue.store.put(queue.message("x" * (5 << 20)))
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.checkpointed(part_bytes=1 << 20)
    assert max(map(len, queue.records)) < RECORD_BYTES_MAX
    again = queue.restarted(flushes=False)
    assert (again.count("depth"), again.count("in-doubt")) == (5, queue.count("unsettled"))


def test_what_a_turn_says_of_many_items_has_parts_that_fit_the_log() -> None:
    queue = KeptQueue(accepts_dead=False)
    consumer = queue.peer()
    consumer.consumer(queue.store, 300)
    queue.send(*map(str, range(300)))
    queue.commit()
    consumer.hear()
    error = AmqpError(condition=Symbol("app:bad"), description="x" * 60_000)
    for arrival in consumer.take():
        consumer.settle(arrival, Rejected(error=error))
    written = queue.journal.take()
    assert sum(map(len, written)) > 2 * RECORD_BYTES_MAX
    assert max(map(len, written)) < RECORD_BYTES_MAX
    queue.records += written
    assert queue.restarted(flushes=False).count("leaving") == 300


def test_a_death_that_an_earlier_version_wrote_is_read() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.send("a")
    queue.commit()
    (number,) = queue.image().items
    reason, error = b"rejected", encode(Rejected().to_described())
    head = struct.pack(">BQIBI", 7, number, 3, len(reason), len(error))
    queue.records.append(head + reason + error)
    before_ms = time.time_ns() // 1_000_000 - 1
    again = queue.restarted()
    again.core.flush()
    ((same, why, message, said, failures, died_ms),) = again.dead_letters
    assert (same, why, text_of(message), said, failures) == (number, "rejected", "a", error, 3)
    assert before_ms <= died_ms <= time.time_ns() // 1_000_000 + 1, "it says since now"
    assert again.checkpointed().image().items[number].died_ms == died_ms


@pytest.mark.parametrize(
    "payload",
    [b"\x00", b"\x01" + bytes(20), b"\x02", b"\x63abc", b"\x07" + bytes(12) + b"\x01" + bytes(4)],
)
def test_what_is_no_record_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="no record of a queue"):
        JournalImage().apply(payload)


def test_a_queue_whose_journal_is_taken_away_is_one_in_memory(queue: KeptQueue) -> None:
    queue.store.journal = None
    queue.send("a")
    assert [d.state for d in queue.publisher.dispositions] == [Accepted()]
