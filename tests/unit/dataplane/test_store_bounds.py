"""What a queue's store does not take: duplicates, and what it has no room for."""

from __future__ import annotations

import pytest
from stored_queue import Queue
from text_messages import message, text_of, texts

from cogwork.amqp.message import Properties
from cogwork.amqp.outcomes import Accepted, Rejected, Released
from cogwork.amqp.types import Symbol, UInt, ULong

# -- duplicates


def test_a_message_id_is_stored_once_within_the_window() -> None:
    queue = Queue(deduplication_window_s=60.0)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    for message_id in (ULong(1), ULong(1), "1", b"1", ULong(300), ULong(300)):
        queue.send(repr(message_id), properties=Properties(message_id=message_id))
    arrived = consumer.take()
    assert len(arrived) == 4
    for arrival in arrived:
        consumer.settle(arrival)
    queue.send("again", properties=Properties(message_id="1"))
    assert consumer.take() == []
    assert queue.publisher.dispositions[-1].state == Accepted()
    assert queue.count("duplicates") == 3


def test_the_window_is_bounded_by_time_and_count() -> None:
    queue = Queue(deduplication_window_s=60.0, deduplication_count=100)
    for number in range(200):
        queue.send("x", properties=Properties(message_id=f"id-{number}"))
    queue.send("x", properties=Properties(message_id="id-150"))
    assert queue.count("duplicates") == 1
    queue.send("x", properties=Properties(message_id="id-10"))
    assert queue.count("duplicates") == 1
    queue.later(61)
    queue.send("x", properties=Properties(message_id="id-199"))
    assert queue.count("duplicates") == 1


@pytest.mark.parametrize("key", ["x-opt-moved", "x-opt-dead-letter-source"])
@pytest.mark.parametrize("delays", [True, False])
def test_what_was_moved_or_is_dead_is_no_duplicate(key: str, *, delays: bool) -> None:
    queue = Queue(deduplication_window_s=60.0, delays=delays)
    properties = Properties(message_id="1")
    annotations = {Symbol("a"): 1, Symbol(key): True, Symbol("x-opt-delivery-delay"): UInt(0)}
    queue.send("a", properties=properties)
    for _ in range(2):
        queue.send("b", properties=properties, message_annotations=annotations)
    queue.send("c", properties=properties)
    assert (queue.store.depth, queue.count("duplicates")) == (3, 1)
    queue.send("d", properties=Properties(message_id="2"), message_annotations=annotations)
    queue.send("e", properties=Properties(message_id="2"))
    assert (queue.store.depth, queue.count("duplicates")) == (4, 2)


# -- bounds


def test_a_full_store_blocks_its_publishers_until_there_is_room(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.send(*"abcd")
    assert queue.store.depth == 2
    assert len(queue.publisher.dispositions) == 2
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    for arrival in consumer.take():
        consumer.settle(arrival)
    assert texts(consumer.take()) == ["c", "d"]
    queue.publisher.hear()
    assert sum(1 + (d.last or d.first) - d.first for d in queue.publisher.dispositions) == 4


def test_or_it_rejects(queue: Queue) -> None:
    queue.store.maximum_length = 1
    queue.store.policy = "reject"
    queue.send("a", "b")
    state = queue.publisher.dispositions[-1].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:resource-limit-exceeded"
    assert queue.count("refused") == 1


def test_or_it_drops_the_oldest(queue: Queue) -> None:
    queue.store.maximum_bytes = 3 * len(message("a"))
    queue.store.policy = "drop-oldest"
    queue.send(*"abcde")
    assert [text for _, text, *_ in queue.dead] == ["a", "b"]
    assert [text_of(data) for data, _ in queue.store.peek(10)] == ["c", "d", "e"]


def test_but_not_what_waits_for_its_time(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.store.policy = "drop-oldest"
    queue.send("a", "b", message_annotations={Symbol("x-opt-delivery-delay"): UInt(5000)})
    queue.send("c")
    assert queue.dead == [("maximum-length", "c", None, 0)]
    assert queue.store.depth == 2


def test_what_is_out_does_not_keep_new_messages_away(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.store.policy = "drop-oldest"
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.send(*"abcde")
    assert texts(consumer.take()) == ["a", "b"]
    assert [text for _, text, *_ in queue.dead] == ["c"]
    assert [text_of(data) for data, _ in queue.store.peek(2)] == ["d", "e"]


@pytest.mark.parametrize("bound", ["maximum_length", "maximum_bytes"])
def test_nor_is_anything_refused_for_what_is_out(queue: Queue, bound: str) -> None:
    setattr(queue.store, bound, 2 if bound == "maximum_length" else 2 * len(message("a")))
    queue.store.policy = "reject"
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.send(*"abcde")
    assert texts(consumer.take()) == ["a", "b"]
    assert [text_of(data) for data, _ in queue.store.peek(2)] == ["c", "d"]
    assert (queue.store.depth, queue.count("refused")) == (4, 1)
    assert queue.store.bounded == (2, 2 * len(message("a")))


def test_what_comes_back_has_the_oldest_dropped(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.store.policy = "drop-oldest"
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.send(*"abcd")
    arrivals = consumer.take()
    consumer.settle(arrivals[1], Released())
    queue.core.flush()
    assert [text for _, text, *_ in queue.dead] == ["b"]
    consumer.settle(arrivals[0], Released())
    queue.core.flush()
    assert [text for _, text, *_ in queue.dead] == ["b", "a"]
    assert [text_of(data) for data, _ in queue.store.peek(3)] == ["c", "d"]
    assert queue.store.bounded == (2, 2 * len(message("a")))


def test_publishers_wait_for_what_is_out(queue: Queue) -> None:
    queue.store.maximum_length = 2
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.send(*"abc")
    assert texts(consumer.take()) == ["a", "b"]
    assert queue.store.bounded == (2, 2 * len(message("a")))


def test_what_a_full_queue_rejects_is_not_taken_for_put_back(queue: Queue) -> None:
    queue.store.policy = "reject"
    queue.store.maximum_length = 1
    assert queue.store.put(message("a"))
    assert not queue.store.put(message("b"))
    assert queue.store.depth == 1


def test_a_policy_that_is_none_is_named(queue: Queue) -> None:
    with pytest.raises(ValueError, match="expected one of block, drop-oldest, reject"):
        queue.store.policy = "explode"


@pytest.mark.parametrize("reason", ["maximum-length", "expired", None])
@pytest.mark.parametrize("delays", [True, False])
def test_what_another_queue_had_no_room_for_dies_for_good(
    reason: str | None, *, delays: bool
) -> None:
    queue = Queue(delays=delays)
    queue.store.maximum_length = 2
    queue.store.policy = "drop-oldest"
    annotations = {Symbol("a"): 1, Symbol("x-opt-dead-letter-reason"): reason}
    queue.send("letter", message_annotations=annotations)
    queue.send("a", "b", "c")
    queue.core.flush()
    assert [text_of(data) for data, _ in queue.store.peek(9)] == ["b", "c"]
    died = [text for _, text, _, _ in queue.dead]
    assert died == (["a"] if reason == "maximum-length" else ["letter", "a"])


def test_a_dead_letter_dies_for_good_that_no_room_can_be_made_for() -> None:
    queue = Queue()
    queue.store.maximum_length = 1
    queue.store.policy = "drop-oldest"
    queue.send("later", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    queue.send("letter", message_annotations={Symbol("x-opt-dead-letter-reason"): "maximum-length"})
    queue.send("a")
    queue.core.flush()
    assert [text for _, text, _, _ in queue.dead] == ["a"]
    assert (queue.store.depth, queue.count("dropped")) == (1, 2)
