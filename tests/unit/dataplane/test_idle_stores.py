"""When a store needs no ticks: nothing there waits for a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cogwork.amqp.message import Header
from cogwork.amqp.types import Symbol, UInt

if TYPE_CHECKING:
    from stored_queue import Queue

PERIOD_S = 61
"""After so long what was counted is that of an earlier period."""

DELAY = {Symbol("x-opt-delivery-delay"): UInt(5000)}


def test_what_waits_for_no_time_needs_none(queue: Queue) -> None:
    assert queue.store.is_idle
    queue.send("a", "b")
    assert queue.count("ready") == 2
    assert queue.store.is_idle


@pytest.mark.parametrize(
    "sections",
    [{"header": Header(ttl=UInt(5000))}, {"message_annotations": DELAY}],
    ids=["expiry", "delay"],
)
def test_what_waits_for_a_time_needs_it(queue: Queue, sections: dict[str, Any]) -> None:
    queue.send("a", **sections)
    assert not queue.store.is_idle
    queue.later(6)
    queue.later(6 + PERIOD_S)
    assert queue.store.is_idle


def test_what_is_in_doubt_is_so_until_a_time(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.take()
    consumer.vanish(queue.store)
    queue.later(1)
    assert queue.count("in-doubt") == 1
    assert not queue.store.is_idle
    queue.later(31)
    assert queue.dead == [("in-doubt", "a", None, 0)]
    queue.later(31 + PERIOD_S)
    queue.later(31 + 2 * PERIOD_S)
    assert queue.store.is_idle


def test_what_was_counted_is_of_a_period(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.later(0)
    queue.send("a")
    (a,) = consumer.take()
    consumer.settle(a)
    assert queue.count("depth") == 0
    assert not queue.store.is_idle
    queue.later(PERIOD_S)
    assert queue.store.is_idle
