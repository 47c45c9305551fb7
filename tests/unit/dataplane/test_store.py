"""A queue's store, as its publishers and consumers see it: what goes in and comes out."""

from __future__ import annotations

from stored_queue import Queue
from text_messages import message, text_of, texts

from cogwork.amqp.message import Properties
from cogwork.amqp.outcomes import Accepted, Rejected


def test_messages_wait_in_order_for_a_consumer(queue: Queue) -> None:
    queue.send("a", "b", "c")
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    assert consumer.take() == []
    consumer.flow(link, 2)
    assert texts(consumer.take()) == ["a", "b"]
    consumer.flow(link, 2)
    assert texts(consumer.take()) == ["c"]


def test_taken_is_accepted_at_once(queue: Queue) -> None:
    queue.send("a", "b", "c")
    said = queue.publisher.dispositions
    assert [d.state for d in said] == [Accepted()] * 3
    assert all(d.settled for d in said)


def test_an_accept_frees_the_item_and_confirms_to_those_who_wait_for_it(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    first, second = consumer.take()
    consumer.settle(first, settled=False)
    assert [(d.first, d.settled, d.state) for d in consumer.dispositions] == [
        (first.delivery_id, True, Accepted())
    ]
    consumer.settle(second)
    assert queue.store.depth == 0
    assert queue.count("accepted") == 2


def test_a_tag_names_shard_item_and_attempt(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    first, second = (arrival.parts for arrival in consumer.take())
    assert (first.shard, first.attempt) == (7, 1)
    assert first.item != second.item


def test_presettled_both_ways_leaves_nothing_behind(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, presettles=True)
    queue.send("a", "b", settled=True)
    assert [a.settled for a in consumer.take()] == [True, True]
    assert queue.store.depth == 0
    assert queue.publisher.dispositions == []


def test_consumers_with_credit_are_served_strictly_in_turn(queue: Queue) -> None:
    consumers = [queue.peer() for _ in range(3)]
    for consumer in consumers:
        consumer.consumer(queue.store, 2)
    queue.send(*"abcdefgh")
    assert [texts(consumer.take()) for consumer in consumers] == [
        ["a", "d"],
        ["b", "e"],
        ["c", "f"],
    ]
    assert queue.count("ready") == 2


def test_a_large_message_keeps_its_tag(queue: Queue) -> None:
    consumer = queue.peer(frame_size=512)
    consumer.consumer(queue.store, 10)
    queue.send("x" * 5000)
    (arrival,) = consumer.take()
    assert len(text_of(arrival.message)) == 5000
    assert arrival.parts.attempt == 1


def test_drain_gives_what_there_is_and_takes_the_rest_of_the_credit(queue: Queue) -> None:
    queue.send("a")
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    consumer.flow(link, 10, drain=True)
    assert texts(consumer.take()) == ["a"]
    assert consumer.flows[-1].link_credit == 0
    queue.send("b")
    assert consumer.take() == []


def test_a_run_of_messages_is_answered_in_one_range(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 100)
    texts_sent = [f"{number:60}" for number in range(50)]
    queue.publisher.send_run(queue.link, [message(text) for text in texts_sent])
    assert [(d.first, d.last) for d in queue.publisher.dispositions] == [(0, 49)]
    arrived = consumer.take()
    assert texts(arrived) == texts_sent
    consumer.settle(arrived[0], last=arrived[-1])
    assert queue.store.depth == 0


def test_in_a_run_each_message_gets_its_own_answer() -> None:
    queue = Queue(deduplication_window_s=60.0)
    queue.store.maximum_length = 3
    queue.store.policy = "reject"
    long = "x" * 80
    run = [message(long, properties=Properties(message_id=f"{id_}")) for id_ in "abacdef"]
    run[1] = b"\x00\x53\x70\xc0\xff" + run[1]
    queue.publisher.send_run(queue.link, run)
    said = queue.publisher.outcomes()
    assert [type(said[number]).__name__ for number in range(7)] == [
        *("Accepted", "Rejected", "Accepted", "Accepted", "Accepted"),
        *("Rejected", "Rejected"),
    ]
    assert queue.store.depth == 3


def test_a_run_that_fills_the_store_goes_on_later(queue: Queue) -> None:
    queue.store.maximum_length = 4
    run = [message(f"{number:80}") for number in range(10)]
    queue.publisher.send_run(queue.link, run)
    assert queue.store.depth == 4
    assert len(queue.publisher.outcomes()) == 4
    taken = []
    while queue.store.depth:
        taken += [int(text_of(data)) for data in queue.store.take_ready(3, [])]
        queue.later(0)
    assert taken == list(range(10))
    assert len(queue.publisher.outcomes()) == 10


def test_malformed_sections_are_rejected_by_name(queue: Queue) -> None:
    queue.publisher.send(queue.link, b"\x00\x53\x70\xc0\xff")
    state = queue.publisher.dispositions[-1].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:decode-error"
