"""Items of a queue's store that are too old."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from text_messages import texts

from cogwork.amqp.message import Header, decode_sections
from cogwork.amqp.outcomes import Released
from cogwork.amqp.types import UInt

if TYPE_CHECKING:
    from stored_queue import Queue


def test_what_is_too_old_is_dead(queue: Queue) -> None:
    queue.send("a", header=Header(ttl=UInt(60_000)))
    queue.send("b")
    queue.later(59)
    assert queue.dead == []
    queue.later(61)
    assert queue.dead == [("expired", "a", None, 0)]
    queue.store.ttl_s = 10
    queue.send("c", header=Header(ttl=UInt(100_000)))
    queue.later(61 + 11)
    assert [text for _, text, *_ in queue.dead] == ["a", "c"]


def test_what_is_too_old_never_goes_out(queue: Queue) -> None:
    queue.send("a", header=Header(ttl=UInt(1)))
    queue.send("b")
    time.sleep(0.005)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["b"]
    assert queue.count("expired") == 1


def test_an_item_out_at_a_consumer_expires_only_when_it_comes_back(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", header=Header(ttl=UInt(1000)))
    (a,) = consumer.take()
    queue.later(5)
    assert queue.dead == []
    consumer.settle(a, Released())
    assert [why for why, *_ in queue.dead] == ["expired"]


def test_the_ttl_is_shortened_by_the_time_that_was_spent_here(queue: Queue) -> None:
    queue.send("a", header=Header(ttl=UInt(60_000)))
    queue.later(20)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    header = decode_sections(consumer.take()[0].message).header
    assert header is not None
    assert header.ttl is not None
    assert 39_000 < header.ttl <= 40_000
