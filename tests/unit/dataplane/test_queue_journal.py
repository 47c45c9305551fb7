"""A queue's journal: what is held until it is durable, and what a restart makes of the records."""

from __future__ import annotations

import time

import peers
import pytest
from kept_queues import KeptQueue, text_of

from cogwork.amqp.message import Header, Properties, decode_sections
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.journal_image import JournalImage
from cogwork.dataplane.store import KEEP_CODE, SETTLE_CODE, STALE_CODE

RECEIVED = Received(section_number=0, section_offset=0)


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue()


# -- output commit


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


# -- restarts


def test_items_are_ready_in_their_old_order(queue: KeptQueue) -> None:
    queue.send("a", "b", "c")
    queue.send("first", header=Header(priority=9))
    again = queue.restarted()
    assert again.texts() == ["first", "a", "b", "c"]
    again.send("d")
    assert again.restarted().texts() == ["first", "a", "b", "c", "d"]


def test_a_client_that_comes_back_goes_on_with_its_attempt(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    queue.commit()
    consumer.hear()
    first, second = consumer.take()
    consumer.settle(second, RECEIVED, settled=False)
    consumer.settle(second, settled=False)
    again = queue.restarted()
    assert (again.count("in-doubt"), again.count("ready")) == (1, 0)
    link = again.peer().consumer(again.store)
    stale = first.tag[:12] + bytes(4)
    assert again.store.resume(link, [first.tag, stale]) == [KEEP_CODE, STALE_CODE]


def test_a_claim_whose_confirmation_was_lost_is_confirmed_again(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    queue.commit()
    consumer.hear()
    (item,) = consumer.take()
    consumer.settle(item, settled=False)
    again = queue.restarted().checkpointed()
    link = again.peer().consumer(again.store)
    assert again.store.resume(link, [item.tag]) == [SETTLE_CODE]


def test_new_items_get_numbers_that_none_had(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    queue.commit()
    consumer.hear()
    (old,) = consumer.take()
    consumer.settle(old)
    again = queue.restarted().checkpointed()
    other = again.peer()
    other.consumer(again.store, 10)
    again.send("b")
    again.commit()
    other.hear()
    (new,) = other.take()
    assert new.parts.item >> 32 > old.parts.item >> 32


def test_failed_attempts_count_after_a_restart(queue: KeptQueue) -> None:
    queue.store.maximum_delivery_count = 2
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a")
    queue.commit()
    consumer.hear()
    consumer.settle(consumer.take()[0], Modified(delivery_failed=True))
    again = queue.restarted()
    assert again.facts()[0]["failures"] == 1
    assert again.count("ready") == 1
    other = again.peer()
    other.consumer(again.store, 1)
    again.commit()
    other.hear()
    header = decode_sections(other.take()[0].message).header
    assert header is not None
    assert (header.delivery_count, header.first_acquirer) == (1, False)


def test_a_released_item_is_not_in_doubt(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a")
    queue.commit()
    consumer.hear()
    consumer.settle(consumer.take()[0], Released())
    again = queue.restarted()
    assert (again.count("ready"), again.count("in-doubt")) == (1, 0)


def test_ttl_and_delay_run_on(queue: KeptQueue) -> None:
    queue.send("short", header=Header(ttl=UInt(50)))
    queue.send("long", header=Header(ttl=UInt(60_000)))
    queue.send("late", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    time.sleep(0.06)
    again = queue.restarted()
    assert again.count("delayed") == 1
    again.store.tick(time.monotonic())
    assert again.texts() == ["long", "late"]
    again.store.tick(time.monotonic() + 61)
    assert again.texts() == ["late"]


def test_a_message_id_is_remembered_when_its_message_has_gone() -> None:
    queue = KeptQueue(deduplication_window_s=60.0, deduplication_count=10)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", properties=Properties(message_id="1"))
    queue.commit()
    consumer.hear()
    consumer.settle(consumer.take()[0])
    again = queue.restarted().checkpointed().restarted()
    again.send("a", properties=Properties(message_id="1"))
    again.send("b", properties=Properties(message_id="2"))
    assert again.texts() == ["b"]
    assert again.count("duplicates") == 1


def test_a_group_in_doubt_goes_to_nobody_else() -> None:
    queue = KeptQueue(is_ordered=True)
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a1", "a2", properties=Properties(group_id="a"))
    queue.send("b1", properties=Properties(group_id="b"))
    queue.commit()
    again = queue.restarted()
    other = again.peer()
    other.consumer(again.store, 10)
    again.commit()
    other.hear()
    assert [text_of(arrival.message) for arrival in other.take()] == ["b1"]


def test_a_dead_item_is_done_a_turn_after_its_letter(queue: KeptQueue) -> None:
    queue.send("a", header=Header(ttl=UInt(1)))
    queue.commit()
    queue.store.tick(time.monotonic() + 1)
    queue.core.flush()
    queue.commit()
    assert queue.restarted(flushes=False).store.depth == 1
    queue.commit()
    assert queue.restarted(flushes=False).store.depth == 0


@pytest.mark.parametrize("payload", [b"\x00", b"\x01" + bytes(20), b"\x02", b"\x63abc"])
def test_what_is_no_record_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="no record of a queue"):
        JournalImage().apply(payload)


def test_peers_are_as_before(queue: KeptQueue) -> None:
    """A queue whose journal is taken away is one in memory."""
    queue.store.journal = None
    queue.send("a")
    assert isinstance(queue.publisher, peers.Peer)
    assert [d.state for d in queue.publisher.dispositions] == [Accepted()]
