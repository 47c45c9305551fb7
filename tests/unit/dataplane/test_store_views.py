"""Those who choose from a queue's store, only look at it, or manage it."""

from __future__ import annotations

from stored_queue import Queue
from text_messages import message, text_of, texts

from cogwork.amqp.message import Properties
from cogwork.amqp.outcomes import Released
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.queue.item_history import take_away

# -- those who choose, and those who only look


def test_a_selector_takes_what_it_likes_and_holds_up_nobody(queue: Queue) -> None:
    queue.send("a1", "b1", "a2", "b2")
    choosy, other = queue.peer(), queue.peer()
    link = choosy.consumer(queue.store, 1, selector=lambda data: text_of(data).startswith("b"))
    assert texts(choosy.take()) == ["b1"]
    queue.send("b3")
    choosy.flow(link, 10)
    mine = choosy.take()
    assert texts(mine) == ["b2", "b3"]
    choosy.settle(mine[0], Released())
    assert texts(choosy.take()) == ["b2"]
    queue.send("a3", "b4")
    assert texts(choosy.take()) == ["b4"]
    other.consumer(queue.store, 10)
    assert texts(other.take()) == ["a1", "a2", "a3"]


def test_browsers_see_everything_and_take_nothing(queue: Queue) -> None:
    queue.send("a", "b")
    looker, worker = queue.peer(), queue.peer()
    looker.consumer(queue.store, 10, is_browser=True)
    seen = looker.take()
    assert texts(seen) == ["a", "b"]
    looker.settle(seen[0])
    assert queue.store.depth == 2
    worker.consumer(queue.store, 1)
    (first,) = worker.take()
    queue.send("c")
    worker.settle(first, Released())
    assert texts(looker.take()) == ["c"]


# -- management


def test_peek_shows_and_purge_forgets_what_is_not_out(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send(*"abc")
    queue.send("d", message_annotations={Symbol("x-opt-delivery-delay"): UInt(5000)})
    shown = queue.store.peek(10)
    assert [(text_of(data), facts["state"]) for data, facts in shown] == [
        ("b", "ready"),
        ("c", "ready"),
        ("a", "out"),
        ("d", "delayed"),
    ]
    assert [text_of(data) for data, _ in queue.store.peek(2, 1)] == ["c", "a"]
    assert queue.store.purge() == 3
    assert queue.store.depth == 1
    consumer.settle(consumer.take()[0])
    assert queue.store.depth == 0


def test_purging_goes_step_by_step(queue: Queue) -> None:
    queue.send(*"abcde")
    assert [queue.store.purge(2) for _ in range(4)] == [2, 2, 1, 0]


def test_what_is_put_back_is_no_duplicate() -> None:
    queue = Queue(deduplication_window_s=60.0)
    queue.send("a", properties=Properties(message_id="1"))
    (taken,) = queue.store.take_ready(1, [])
    assert queue.store.put(taken)
    assert queue.store.depth == 1
    queue.send("a", properties=Properties(message_id="1"))
    assert queue.store.depth == 1, "who sends it again is told so as before"


def test_items_can_be_taken_to_move_them(queue: Queue) -> None:
    queue.send(*"abc")
    assert [text_of(data) for data in queue.store.take_ready(2, [])] == ["a", "b"]
    assert queue.store.depth == 1
    assert queue.store.put(message("z"))
    assert [text_of(data) for data in queue.store.take_ready(9, [])] == ["c", "z"]


def test_what_is_put_elsewhere_keeps_its_format(queue: Queue) -> None:
    strange = b"of another format"
    assert queue.store.flaw_of(strange, 7) is None
    assert queue.store.flaw_of(strange, 0) == "its sections are malformed"
    assert not queue.store.put(strange)
    assert queue.store.put(strange, 7)
    ((_, message_format, *taken, _),) = take_away(queue.store, 1)
    assert (message_format, taken) == (7, [strange, strange])


def test_a_store_that_is_closed_settles_for_whatever_is_still_said(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    queue.store.close()
    consumer.settle(consumer.take()[0])
    consumer.vanish(queue.store)
