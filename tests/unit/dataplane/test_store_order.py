"""In which order a queue's store gives its items out: priorities, returns, delays, groups."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from stored_queue import Queue
from text_messages import texts

from cogwork.amqp.message import Header, Properties, decode_sections
from cogwork.amqp.outcomes import Modified, Released
from cogwork.amqp.types import Symbol, Timestamp, UInt, ULong
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE

if TYPE_CHECKING:
    from peers import Arrival

RELEASED_CODE = 0x26

# -- order


def test_higher_priorities_go_first_and_each_is_in_order(queue: Queue) -> None:
    for priority, text in ((4, "a"), (9, "b"), (0, "c"), (9, "d"), (200, "e")):
        queue.send(text, header=Header(priority=priority))
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["b", "d", "e", "a", "c"]


def test_fewer_levels_put_the_default_in_the_middle() -> None:
    queue = Queue(priorities=2)
    for priority in (9, 4, 5, 0):
        queue.send(str(priority), header=Header(priority=priority))
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["9", "5", "4", "0"]


def test_what_is_released_goes_back_to_its_old_place(queue: Queue) -> None:
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 3)
    queue.send(*"abcde")
    a, b, c = consumer.take()
    consumer.settle(c, Released())
    consumer.settle(a, Released())
    consumer.settle(b)
    other.consumer(queue.store, 10)
    assert texts(other.take()) == ["a", "c", "d", "e"]


def test_released_is_not_counted_but_a_failure_is(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", header=Header(durable=True, priority=7, first_acquirer=True))
    (first,) = consumer.take()
    consumer.settle(first, Released())
    (second,) = consumer.take()
    assert decode_sections(second.message).header == Header(durable=True, priority=7)
    consumer.settle(second, Modified(delivery_failed=True))
    (third,) = consumer.take()
    assert decode_sections(third.message).header == Header(
        durable=True, priority=7, delivery_count=1
    )
    assert [a.parts.attempt for a in (first, second, third)] == [1, 2, 3]
    assert len({a.parts.item for a in (first, second, third)}) == 1


def test_undeliverable_here_goes_to_others_only(queue: Queue) -> None:
    picky, other = queue.peer(), queue.peer()
    picky.consumer(queue.store, 10)
    queue.send("a", "b")
    a, _b = picky.take()
    picky.settle(a, Modified(undeliverable_here=True))
    assert picky.take() == []
    queue.send("c")
    assert texts(picky.take()) == ["c"]
    other.consumer(queue.store, 10)
    assert texts(other.take()) == ["a"]


def test_one_who_has_refused_very_many_gets_what_is_new(queue: Queue) -> None:
    count = 5_000
    picky, other = queue.peer(), queue.peer()
    link = picky.consumer(queue.store, 0)
    queue.send(*(str(number) for number in range(count)), settled=True)
    refused: list[str] = []
    for _ in range(count // 100 + 20):
        picky.flow(link, 100)
        queue.later(0.0)
        for arrival in picky.take():
            refused.append(*texts([arrival]))
            picky.settle(arrival, Modified(undeliverable_here=True))
    assert refused == [str(number) for number in range(count)]
    queue.send("new")
    assert texts(picky.take()) == ["new"]
    other.consumer(queue.store, 3)
    assert texts(other.take()) == ["0", "1", "2"]


def disorder(queue: Queue) -> list[int]:
    return [queue.count(f"disorder-{each}") for each in ("p50", "p99", "maximum")]


def test_disorder_is_how_many_came_later_and_went_out_before(queue: Queue) -> None:
    assert disorder(queue) == [0, 0, 0]
    for priority in (0, 9, 9, 9, 9, 9, 9, 5):
        queue.send("a", header=Header(priority=priority))
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 7)
    assert disorder(queue) == [0, 0, 0]
    consumer.flow(link, 1)
    assert disorder(queue) == [0, 7, 7]


def test_only_first_attempts_are_counted_in_disorder(queue: Queue) -> None:
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 3)
    queue.send(*"abc")
    first = consumer.take()[0]
    consumer.settle(first, Released())
    consumer.flow(link, 1)
    assert texts(consumer.take()) == ["a"]
    assert disorder(queue) == [0, 0, 0]


def test_a_delayed_item_comes_when_its_time_has_come(queue: Queue) -> None:
    queue.send("a", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    queue.send("b")
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.later(61)
    assert texts(consumer.take()) == ["b", "a"]
    assert disorder(queue) == [0, 0, 0]


def test_what_never_went_out_overtook_nobody(queue: Queue) -> None:
    queue.send("low", header=Header(priority=0))
    queue.send("old", "old", header=Header(ttl=UInt(1_000), priority=9))
    queue.later(2)
    queue.send("high", header=Header(priority=9))
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["high", "low"]
    assert disorder(queue) == [0, 1, 1]


def test_disorder_of_long_ago_is_forgotten(queue: Queue) -> None:
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    for priority in (4, 9):
        queue.send("a", header=Header(priority=priority))
    consumer.flow(link, 2)
    queue.later(61)
    assert disorder(queue) == [0, 1, 1]
    consumer.flow(link, 1)
    queue.send("b")
    queue.later(122)
    assert disorder(queue) == [0, 0, 0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("x-opt-delivery-delay", UInt(5000)),
        ("x-opt-delivery-delay", ULong(5000)),
        ("x-opt-delivery-delay", 5000),
        ("x-opt-delivery-time", lambda: Timestamp(int((time.time() + 5) * 1000))),
    ],
)
def test_a_message_may_ask_to_be_delivered_later(queue: Queue, key: str, value: object) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    asked = value() if callable(value) else value
    queue.send("later", message_annotations={Symbol(key): asked})
    queue.send("now")
    assert texts(consumer.take()) == ["now"]
    queue.later(4)
    assert consumer.take() == []
    queue.later(6)
    assert texts(consumer.take()) == ["later"]


def test_what_is_due_at_one_time_comes_in_the_order_in_which_it_was_sent(queue: Queue) -> None:
    due = Timestamp(int((time.time() + 60) * 1000))
    sent = [str(number) for number in range(200)]
    for each in sent:
        queue.send(each, message_annotations={Symbol("x-opt-delivery-time"): due})
    consumer = queue.peer()
    consumer.consumer(queue.store, 300)
    queue.later(61)
    assert texts(consumer.take()) == sent


# -- groups


def group(name: str) -> Properties:
    return Properties(group_id=name)


def test_a_group_goes_to_one_consumer_at_a_time() -> None:
    queue = Queue(is_ordered=True)
    one, two = queue.peer(), queue.peer()
    one.consumer(queue.store, 2)
    two.consumer(queue.store, 10)
    for text in ("a1", "b1", "a2", "b2", "a3"):
        queue.send(text, properties=group(text[0]))
    mine = one.take()
    assert texts(mine) == ["a1", "a2"]
    assert texts(two.take()) == ["b1", "b2"]
    one.settle(mine[0])
    assert two.take() == []
    one.settle(mine[1])
    assert texts(two.take()) == ["a3"]


def test_a_group_in_doubt_waits() -> None:
    queue = Queue(is_ordered=True)
    queue.store.redelivers_in_doubt = True
    one, two = queue.peer(), queue.peer()
    one.consumer(queue.store, 10)
    queue.send("a1", "a2", properties=group("a"))
    one.take()
    one.vanish(queue.store)
    two.consumer(queue.store, 10)
    queue.send("a3", properties=group("a"))
    assert two.take() == []
    queue.later(31)
    assert texts(two.take()) == ["a1", "a2", "a3"]


def stranded() -> tuple[Queue, Arrival]:
    """Make a queue with an item of a group that stays in doubt for good, and two others of it."""
    queue = Queue(is_ordered=True)
    queue.store.keeps_dead = False
    one = queue.peer()
    one.consumer(queue.store, 1)
    queue.send("a1", "a2", "a3", properties=group("a"))
    (first,) = one.take()
    one.vanish(queue.store)
    queue.later(31)
    assert queue.count("in-doubt") == 1
    return queue, first


def test_a_group_goes_on_without_what_stays_in_doubt_for_good() -> None:
    queue, first = stranded()
    two = queue.peer()
    two.consumer(queue.store, 10)
    second, third = two.take()
    assert texts([second, third]) == ["a2", "a3"]
    assert queue.store.claim(first.parts.item, first.parts.attempt) == SETTLE_CODE
    two.settle(second)
    two.settle(third)
    assert queue.count("groups") == queue.count("depth") == 0


def test_who_waits_for_a_group_gets_it_when_an_item_is_left_in_doubt() -> None:
    queue = Queue(is_ordered=True)
    queue.store.keeps_dead = False
    one, two = queue.peer(), queue.peer()
    one.consumer(queue.store, 1)
    queue.send("a1", "a2", properties=group("a"))
    one.take()
    one.vanish(queue.store)
    two.consumer(queue.store, 10)
    assert two.take() == []
    queue.later(31)
    assert texts(two.take()) == ["a2"]


def test_what_comes_after_an_item_that_stays_in_doubt_for_good_goes_out() -> None:
    queue = Queue(is_ordered=True)
    queue.store.keeps_dead = False
    one, two = queue.peer(), queue.peer()
    one.consumer(queue.store, 1)
    queue.send("a1", properties=group("a"))
    (first,) = one.take()
    one.vanish(queue.store)
    queue.later(31)
    two.consumer(queue.store, 10)
    queue.send("a2", "a3", properties=group("a"))
    second, third = two.take()
    assert texts([second, third]) == ["a2", "a3"]
    assert queue.store.claim(first.parts.item, first.parts.attempt) == SETTLE_CODE
    two.settle(second)
    two.settle(third)
    assert queue.count("groups") == queue.count("depth") == 0


def test_what_was_in_doubt_and_is_given_back_stands_in_its_group_again() -> None:
    queue, first = stranded()
    two = queue.peer()
    link = two.consumer(queue.store, 1)
    (second,) = two.take()
    back, three = queue.peer(), queue.peer()
    resumed = back.consumer(queue.store, 0, marks_received=True)
    assert queue.store.resume(resumed, [first.tag]) == [KEEP_CODE]
    back.vanish(queue.store)
    assert queue.count("in-doubt") == 1
    attempt = first.parts.attempt
    assert queue.store.claim(first.parts.item, attempt, RELEASED_CODE) == SETTLE_CODE
    three.consumer(queue.store, 10)
    queue.later(32)
    assert three.take() == []
    two.flow(link, 10)
    again, third = two.take()
    assert texts([again, third]) == ["a1", "a3"]
    for arrival in (second, again, third):
        two.settle(arrival)
    assert queue.count("groups") == queue.count("depth") == 0


def test_what_a_group_gets_back_goes_before_the_rest_of_it() -> None:
    queue = Queue(is_ordered=True)
    one = queue.peer()
    one.consumer(queue.store, 2)
    queue.send("a1", "a2", "a3", properties=group("a"))
    first, second = one.take()
    one.settle(second, Released())
    one.settle(first, Released())
    two = queue.peer()
    two.consumer(queue.store, 10)
    assert texts(two.take()) == ["a1", "a2", "a3"]
    assert queue.count("groups") == 1
