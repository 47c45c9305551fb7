"""Attempts that fail and consumers that vanish: a queue's store loses nothing, and says so."""

from __future__ import annotations

from stored_queue import RECEIVED, Queue
from text_messages import text_of

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import Header, decode_sections
from cogwork.amqp.outcomes import Accepted, Modified, Rejected, Released
from cogwork.amqp.types import Symbol
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE, UNKNOWN_CODE

# -- attempts that fail


def test_a_rejected_item_is_dead_with_the_error(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    error = AmqpError(condition=Symbol("app:broken"), description="no such customer")
    consumer.settle(consumer.take()[0], Rejected(error=error))
    ((why, text, state, failures),) = queue.dead
    assert (why, text, failures) == ("rejected", "a", 0)
    assert state is not None
    assert b"no such customer" in state
    assert queue.store.depth == 0


def test_an_item_that_failed_too_often_is_dead(queue: Queue) -> None:
    queue.store.maximum_delivery_count = 2
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    for _ in range(2):
        consumer.settle(consumer.take()[0], Modified(delivery_failed=True))
    assert consumer.take() == []
    assert queue.dead == [("delivery-count-exceeded", "a", None, 2)]


def test_the_dead_are_only_counted_where_nobody_wants_them(queue: Queue) -> None:
    queue.store.keeps_dead = False
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.settle(consumer.take()[0], Rejected())
    assert queue.dead == []
    assert queue.count("rejected") == 1


# -- consumers that vanish


def test_what_the_application_never_had_goes_back_uncounted(queue: Queue) -> None:
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a", "b")
    first, _ = consumer.take()
    consumer.settle(first, RECEIVED, settled=False)
    consumer.vanish(queue.store)
    other.consumer(queue.store, 10)
    (again,) = other.take()
    assert text_of(again.message) == "b"
    assert (decode_sections(again.message).header or Header()) == Header(first_acquirer=False)
    assert queue.count("in-doubt") == 1


def test_a_doubtful_item_is_parked_with_the_dead_after_a_while(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.take()
    consumer.vanish(queue.store)
    queue.later(29)
    assert queue.count("in-doubt") == 1
    queue.later(31)
    assert queue.dead == [("in-doubt", "a", None, 0)]
    assert queue.store.depth == 0


def test_or_it_is_delivered_again_and_says_so(queue: Queue) -> None:
    queue.store.redelivers_in_doubt = True
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    (first,) = consumer.take()
    consumer.vanish(queue.store)
    other.consumer(queue.store, 10)
    queue.later(31)
    (again,) = other.take()
    assert decode_sections(again.message).header == Header(delivery_count=1)
    assert queue.store.claim(first.parts.item, 1) == STALE_CODE
    assert queue.store.claim(again.parts.item, 2) == SETTLE_CODE
    assert queue.count("stale-claims") == 1
    assert queue.count("accepted") == 1


def test_with_nowhere_to_park_it_an_item_stays_in_doubt(queue: Queue) -> None:
    queue.store.keeps_dead = False
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    a, b = consumer.take()
    consumer.vanish(queue.store)
    queue.later(31)
    assert queue.count("in-doubt") == queue.count("doubts-parked") == 2
    assert queue.store.claim(a.parts.item, 1) == SETTLE_CODE
    other.consumer(queue.store, 10)
    queue.later(62)
    assert other.take() == []
    assert queue.count("in-doubt") == 1
    assert queue.store.claim(b.parts.item, 1) == SETTLE_CODE
    assert queue.store.depth == 0


def test_no_time_to_come_back_decides_at_once(queue: Queue) -> None:
    queue.store.in_doubt_timeout_s = 0
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.take()
    consumer.vanish(queue.store)
    assert [why for why, *_ in queue.dead] == ["in-doubt"]


def test_who_comes_back_late_goes_on_where_nobody_else_was_given_it(queue: Queue) -> None:
    queue.store.redelivers_in_doubt = True
    consumer, back = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a", "b")
    a, b = consumer.take()
    for arrival in (a, b):
        consumer.settle(arrival, RECEIVED, settled=False)
    consumer.vanish(queue.store)
    queue.later(31)
    assert queue.count("in-doubt") == 0
    assert queue.count("ready") == 2
    link = back.consumer(queue.store, marks_received=True)
    assert queue.store.resume(link, [a.tag, b.tag]) == [KEEP_CODE] * 2
    assert queue.count("unsettled") == 2
    assert queue.count("ready") == 0
    back.flow(link, 10)
    again = back.take()
    assert [(each.tag, text_of(each.message)) for each in again] == [(a.tag, "a"), (b.tag, "b")]
    back.settle(again[0], settled=False)
    back.vanish(queue.store)
    assert queue.count("accepted") == 1
    assert queue.count("in-doubt") == 1, "it is at the application as before"


def test_and_not_where_somebody_was_given_it_and_gave_it_back(queue: Queue) -> None:
    queue.store.redelivers_in_doubt = True
    consumer, other, back = queue.peer(), queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    (a,) = consumer.take()
    consumer.vanish(queue.store)
    queue.later(31)
    other.consumer(queue.store, 10)
    other.settle(other.take()[0], Released())
    link = back.consumer(queue.store)
    assert queue.store.resume(link, [a.tag]) == [STALE_CODE]


def test_a_consumer_that_comes_back_keeps_its_attempts(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a", "b", "c")
    a, b, c = consumer.take()
    for arrival in (a, b, c):
        consumer.settle(arrival, RECEIVED, settled=False)
    consumer.settle(c, settled=False)
    consumer.vanish(queue.store)
    back = queue.peer()
    link = back.consumer(queue.store, marks_received=True)
    strange = (8).to_bytes(4, "big") + bytes(12)
    assert queue.store.resume(link, [a.tag, c.tag, strange, b"short"]) == [
        KEEP_CODE,
        SETTLE_CODE,
        UNKNOWN_CODE,
        UNKNOWN_CODE,
    ]
    queue.send("d")
    back.flow(link, 10)
    again, d = back.take()
    assert (again.tag, text_of(again.message)) == (a.tag, "a")
    assert d.parts.attempt == 1
    back.settle(again, settled=False)
    assert back.dispositions[-1].state == Accepted()
    queue.later(31)
    assert [text for _, text, *_ in queue.dead] == ["b"]
    assert queue.store.depth == 1


def test_what_was_resumed_may_be_lost_again(queue: Queue) -> None:
    consumer, back = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    (a,) = consumer.take()
    consumer.vanish(queue.store)
    link = back.consumer(queue.store)
    assert queue.store.resume(link, [a.tag]) == [KEEP_CODE]
    back.vanish(queue.store)
    assert queue.count("in-doubt") == 1
    assert queue.store.claim(a.parts.item, 1) == SETTLE_CODE


def test_a_claim_that_comes_again_is_confirmed_again(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    (a,) = consumer.take()
    consumer.settle(a, RECEIVED, settled=False)
    consumer.settle(a, settled=False)
    consumer.vanish(queue.store)
    assert queue.store.claim(a.parts.item, 1) == SETTLE_CODE
    assert queue.store.claim(a.parts.item, 2) == STALE_CODE
    assert queue.count("accepted") == 1


def test_the_old_link_of_a_consumer_that_came_back_is_not_listened_to(queue: Queue) -> None:
    old, new = queue.peer(), queue.peer()
    old.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    (a,) = old.take()
    link = new.consumer(queue.store, marks_received=True)
    assert queue.store.resume(link, [a.tag]) == [KEEP_CODE]
    old.settle(a, settled=False)
    state = old.dispositions[-1].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "cogwork:claim-in-doubt", "nobody else has it"
    old.vanish(queue.store)
    assert queue.count("in-doubt") == 0
    new.vanish(queue.store)
    assert queue.count("in-doubt") == 1


def test_a_large_delivery_that_was_cut_off_is_not_lost(queue: Queue) -> None:
    for presettles in (False, True):
        consumer = queue.peer(frame_size=512, window=3)
        consumer.consumer(queue.store, 10, presettles=presettles, marks_received=True)
        queue.send("x" * 5000)
        assert consumer.take() == []
        consumer.vanish(queue.store)
        assert queue.store.take_ready(1, []) != []
        assert queue.store.depth == 0
