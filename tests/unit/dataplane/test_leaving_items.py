"""Items that leave a queue stay there until their dead letter is accepted or they have arrived."""

from __future__ import annotations

import time

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import Header, Properties, decode_sections
from cogwork.amqp.outcomes import Modified, Rejected, Released
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.queue.item_history import take_away
from cogwork.dataplane.queue.restoration import restore
from cogwork.dataplane.queue.store import STALE_CODE, UNKNOWN_CODE


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue()


def test_a_dead_item_is_there_until_its_dead_letter_was_accepted() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.send("a", header=Header(ttl=UInt(1)))
    queue.commit()
    queue.store.tick(time.monotonic() + 1)
    queue.core.flush()
    assert queue.dead == ["a"]
    queue.commit()
    assert queue.restarted(flushes=False).count("leaving") == 1
    queue.store.moved([number for number, *_ in queue.dead_letters])
    queue.commit()
    again = queue.restarted(flushes=False)
    assert (again.count("leaving"), again.store.depth) == (0, 0)


def test_the_dead_are_no_more_where_they_have_no_address_any_more() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.send("a", "b", header=Header(ttl=UInt(1)))
    queue.send("c")
    queue.commit()
    queue.store.tick(time.monotonic() + 1)
    queue.core.flush()
    queue.commit()
    again = KeptQueue()
    again.store.keeps_dead = False
    again.store.clear()
    again.store.journal = again.journal
    restore(again.store, queue.image())
    assert (again.texts(), again.count("leaving"), again.count("dropped")) == (["c"], 0, 2)
    again.records = list(queue.records)
    assert again.restarted().count("leaving") == 0


def reject(queue: KeptQueue, reason: str) -> None:
    """Have a consumer reject the first item."""
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    queue.commit()
    consumer.hear()
    error = AmqpError(condition=Symbol("amqp:precondition-failed"), description=reason)
    consumer.settle(consumer.take()[0], Rejected(error=error))
    consumer.detach(queue.store, link)
    queue.core.flush()


def test_a_dead_item_is_dead_after_every_restart_until_its_dead_letter_is_accepted() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.send("a", "b")
    reject(queue, "it is green")
    again = queue.restarted().restarted().checkpointed().restarted()
    assert again.texts() == ["b", "a"]  # who looks sees it, behind those that wait
    assert (again.store.depth, again.count("leaving")) == (1, 1)
    again.core.flush()
    ((number, why, message, error, failures, died_ms),) = again.dead_letters
    assert died_ms == queue.dead_letters[0][5], "since when it is dead"
    assert (why, text_of(message), failures) == ("rejected", "a", 0)
    assert error is not None
    assert b"it is green" in error
    again.store.leave_dead([number])
    assert [each[0] for each in again.store.take_dead(10)] == [number]
    again.store.moved([number])
    again.commit()
    assert again.restarted().count("leaving") == 0


@pytest.mark.parametrize("policy", ["block", "reject", "drop-oldest"])
def test_a_queue_takes_no_more_while_as_many_dead_wait_as_it_may_hold(policy: str) -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.store.policy = policy
    queue.store.maximum_length = 2
    for text in ("a", "b"):
        queue.send(text)
        reject(queue, "no")
    queue.commit()
    queue.publisher.hear()
    queue.publisher.dispositions.clear()
    queue.send("c")
    queue.commit()
    queue.publisher.hear()
    states = [disposition.state for disposition in queue.publisher.dispositions]
    if policy == "reject":
        assert isinstance(states[0], Rejected)
    else:
        assert states == []
    assert queue.store.depth == 0
    queue.store.moved([number for number, *_ in queue.dead_letters])
    queue.core.flush()
    assert queue.store.depth == (0 if policy == "reject" else 1)


def test_what_finds_no_room_is_kept_until_its_dead_letter_is_accepted() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.store.policy = "drop-oldest"
    queue.store.maximum_length = 1
    queue.send("later", message_annotations={Symbol("x-opt-delivery-delay"): 60_000})
    queue.send("dropped")
    again = queue.restarted()
    assert (again.store.depth, again.count("leaving")) == (1, 1)
    again.core.flush()
    ((_, why, message, *_),) = again.dead_letters
    assert (why, text_of(message)) == ("maximum-length", "dropped")


def test_what_is_moved_is_here_until_it_has_arrived(queue: KeptQueue) -> None:
    queue.send("a", "b", "c")
    numbers: list[int] = []
    assert [text_of(each) for each in queue.store.take_ready(2, numbers)] == ["a", "b"]
    assert (queue.store.depth, queue.count("leaving")) == (1, 2)
    assert queue.restarted().texts() == ["a", "b", "c"]
    assert queue.checkpointed().restarted().texts() == ["a", "b", "c"]
    queue.store.moved(numbers[:1])
    queue.store.enter_again(numbers[1:])
    assert queue.texts() == ["c", "b"]
    queue.commit()
    again = queue.restarted()
    assert (again.texts(), again.count("leaving")) == (["c", "b"], 0)


def test_what_was_given_to_another_container_is_in_doubt_after_a_crash(queue: KeptQueue) -> None:
    queue.send("a", "b")
    queue.commit()
    assert queue.core.held_connections == 0
    numbers: list[int] = []
    queue.store.take_ready(1, numbers)
    queue.store.tombstone(numbers)
    assert queue.core.held_connections > 0
    for again in (queue.restarted(), queue.checkpointed().restarted()):
        assert (again.count("in-doubt"), again.count("ready")) == (1, 1)
    queue.store.enter_again(numbers)
    assert queue.restarted().texts() == ["b", "a"]


def test_what_comes_back_from_its_way_is_nobody_elses(queue: KeptQueue) -> None:
    """Its number has gone on, and no consumer was given the attempt: that proves nothing."""
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a")
    queue.commit()
    (first,) = consumer.take()
    consumer.settle(first, Released())
    queue.commit()
    consumer.vanish(queue.store)
    numbers: list[int] = []
    queue.store.take_ready(1, numbers)
    queue.store.tombstone(numbers)
    assert queue.store.claim(first.parts.item, 1) == UNKNOWN_CODE, "on its way"
    queue.store.enter_again(numbers)
    assert queue.store.claim(first.parts.item, 1) == UNKNOWN_CODE, "nobody had it since"
    other.consumer(queue.store, 1)
    queue.commit()
    assert len(other.take()) == 1
    assert queue.store.claim(first.parts.item, 1) == STALE_CODE, "somebody else has it"


@pytest.mark.parametrize("act", ["purge", "expire"])
def test_what_is_on_its_way_is_left_alone(queue: KeptQueue, act: str) -> None:
    queue.send("a", header=Header(ttl=UInt(1)))
    numbers: list[int] = []
    queue.store.take_ready(1, numbers)
    if act == "purge":
        assert queue.store.purge() == 0
    else:
        queue.store.tick(time.monotonic() + 1)
    queue.core.flush()
    assert (queue.count("leaving"), queue.dead) == (1, [])
    queue.store.moved(numbers)
    queue.store.moved(numbers)
    queue.store.enter_again(numbers)
    assert (queue.count("leaving"), queue.store.depth) == (0, 0)


@pytest.mark.parametrize("group", [None, "g"])
def test_what_comes_back_expires_where_its_time_is_over_meanwhile(group: str | None) -> None:
    queue = KeptQueue() if group is None else KeptQueue(is_ordered=True)
    properties = Properties(group_id=group)
    queue.send("a", "b", header=Header(ttl=UInt(1000)), properties=properties)
    queue.send("c", properties=properties)
    numbers: list[int] = []
    assert len(queue.store.take_ready(2, numbers)) == 2
    queue.store.tick(time.monotonic() + 2)
    queue.store.enter_again(numbers)
    queue.core.flush()
    assert (queue.texts(), queue.dead, queue.count("expired")) == (["c"], ["a", "b"], 2)
    assert queue.restarted().texts() == ["c"]


DELAY_S = 1000.0
DELAYED = {Symbol("x-opt-delivery-delay"): UInt(1_000_000)}


def test_a_delayed_item_is_delayed_where_it_goes_and_where_it_comes_back(queue: KeptQueue) -> None:
    queue.send("later", message_annotations=DELAYED)
    sent_s = time.monotonic()
    queue.send("ready")
    assert take_away(queue.store, 0, is_delayed=True) == []
    ((number, _, message, original, history),) = take_away(queue.store, 9, is_delayed=True)
    assert message == original
    other = KeptQueue()
    assert other.store.put(original, 0, history)
    queue.store.tombstone([number])
    queue.store.enter_again([number])
    for each in (queue, other, queue.checkpointed().restarted(), other.restarted()):
        assert each.count("delayed") == 1
        each.store.tick(sent_s + DELAY_S + 1)
        assert (each.count("delayed"), each.texts()[-1]) == (0, "later")


@pytest.mark.parametrize("is_new_account", [False, True])
def test_a_delayed_item_that_was_put_aside_is_delayed_after_a_crash(
    queue: KeptQueue, is_new_account: bool
) -> None:
    queue.send("a", message_annotations=DELAYED)
    take_away(queue.store, 9, is_delayed=True)
    again = (queue.checkpointed() if is_new_account else queue).restarted()
    assert (again.count("delayed"), again.count("leaving")) == (1, 0)


@pytest.mark.parametrize("crashes", ["once", "twice", "in a new account", "after a new account"])
def test_what_was_given_away_before_it_is_due_is_not_due_earlier_after_a_crash(
    crashes: str,
) -> None:
    queue = KeptQueue(redelivers=True)
    queue.send("a", message_annotations=DELAYED)
    ((number, *_),) = take_away(queue.store, 9, is_delayed=True)
    queue.store.tombstone([number])
    again = (queue.checkpointed() if crashes == "in a new account" else queue).restarted()
    if crashes == "twice":
        again = again.restarted()
    if crashes == "after a new account":
        again = again.checkpointed().restarted()
    again.store.tick(time.monotonic() + DELAY_S - 10)
    again.core.flush()
    assert (again.count("delayed"), again.count("in-doubt"), again.count("ready")) == (1, 0, 0)
    again.store.tick(time.monotonic() + DELAY_S + 10)
    consumer = again.peer()
    consumer.consumer(again.store, 1)
    again.commit()
    consumer.hear()
    (item,) = consumer.take()
    header = decode_sections(item.message).header or Header()
    assert (header.first_acquirer, header.delivery_count) == (False, 1), "it may be elsewhere, too"
    assert again.count("disorder-maximum") == 0


def test_what_was_given_away_before_it_is_due_is_parked_where_nothing_is_done_twice(
    queue: KeptQueue,
) -> None:
    queue.send("a", message_annotations=DELAYED)
    ((number, *_),) = take_away(queue.store, 9, is_delayed=True)
    queue.store.tombstone([number])
    for again in (queue.restarted(), queue.checkpointed().restarted()):
        assert (again.count("in-doubt"), again.count("delayed")) == (1, 0)
        again.store.tick(time.monotonic() + DELAY_S)
        again.core.flush()
        assert again.dead == ["a"]


def test_what_is_due_meanwhile_is_ready_when_it_comes_back(queue: KeptQueue) -> None:
    queue.send("a", message_annotations=DELAYED)
    ((number, *_),) = take_away(queue.store, 9, is_delayed=True)
    queue.store.tombstone([number])
    queue.store.tick(time.monotonic() + DELAY_S)
    queue.store.enter_again([number])
    assert (queue.count("ready"), queue.facts()[0]["attempts"]) == (1, 1)


def test_delayed_items_go_in_the_order_in_which_they_are_due(queue: KeptQueue) -> None:
    for text, delay_ms in (("c", 90_000), ("a", 60_000), ("d", 99_000), ("b", 60_000)):
        queue.send(text, message_annotations={Symbol("x-opt-delivery-delay"): UInt(delay_ms)})
    taken = [*take_away(queue.store, 3, True), *take_away(queue.store, 3, True)]
    assert [text_of(message) for _, _, message, _, _ in taken] == ["a", "b", "c", "d"]


def fail(queue: KeptQueue) -> Header:
    """Have a consumer fail with the first item; return the header that it saw."""
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    queue.commit()
    consumer.hear()
    taken = consumer.take()[0]
    consumer.settle(taken, Modified(delivery_failed=True))
    consumer.detach(queue.store, link)
    queue.core.flush()
    return decode_sections(taken.message).header or Header()


@pytest.mark.parametrize("is_restarted", [False, True])
def test_failed_attempts_count_where_an_item_goes(queue: KeptQueue, is_restarted: bool) -> None:
    queue.send("a", header=Header(delivery_count=UInt(5)))
    assert (fail(queue).delivery_count, fail(queue).delivery_count) == (5, 6)
    ((_, _, message, original, history),) = take_away(queue.store, 9)
    assert (decode_sections(message).header or Header()).delivery_count == 7
    assert history[2:] == (2, 2)
    other = KeptQueue()
    assert other.store.put(original, 0, history)
    if is_restarted:
        other = other.restarted()
    other.store.maximum_delivery_count = 3
    assert (other.facts()[0]["attempts"], other.facts()[0]["failures"]) == (2, 2)
    assert other.count("ready") == 1
    header = fail(other)
    assert (header.delivery_count, header.first_acquirer) == (7, False)
    assert (other.dead, other.dead_letters[0][4]) == (["a"], 3)
    assert other.count("redelivered") == 1


@pytest.mark.parametrize("where", ["queue", "message"])
def test_an_item_is_no_younger_where_it_goes(queue: KeptQueue, where: str) -> None:
    if where == "queue":
        queue.store.ttl_s = 100.0
    queue.send("a", header=Header(ttl=UInt(100_000)) if where == "message" else None)
    ((_, _, _, original, (stored_s, due_s, *_)),) = take_away(queue.store, 9)
    old, over = KeptQueue(), KeptQueue()
    for other, age_s in ((old, 90.0), (over, 100.0)):
        other.store.ttl_s = queue.store.ttl_s
        assert other.store.put(original, 0, (stored_s - age_s, due_s, 0, 0))
    assert old.texts() == ["a"]
    for each in (old, old.restarted()):
        left_s = each.facts()[0]["expires_in_s"]
        assert isinstance(left_s, float)
        assert left_s < 10.1
    over.core.flush()
    assert (over.texts(), over.dead, over.count("expired")) == ([], ["a"], 1)


def test_no_consumer_gets_what_is_too_old_when_it_arrives() -> None:
    queue = KeptQueue()
    queue.store.ttl_s = 100.0
    consumer = queue.peer()
    consumer.consumer(queue.store, 9)
    now_s = time.monotonic()
    assert queue.store.put(queue.message("old"), 0, (now_s - 200.0, 0.0, 0, 0))
    assert queue.store.put(queue.message("new"), 0, (now_s - 20.0, 0.0, 0, 0))
    queue.commit()
    consumer.hear()
    assert [text_of(each.message) for each in consumer.take()] == ["new"]
    assert queue.dead == ["old"]


def test_what_is_put_into_another_shard_is_not_delayed_once_more(queue: KeptQueue) -> None:
    queue.send("a", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    queue.store.tick(time.monotonic() + 61)
    numbers: list[int] = []
    (message,) = queue.store.take_ready(1, numbers)
    other = KeptQueue()
    assert other.store.put(message)
    assert (other.count("ready"), other.count("delayed")) == (1, 0)
    assert other.restarted().count("ready") == 1


@pytest.mark.parametrize("is_audited", [False, True])
def test_what_another_queue_had_no_room_for_is_no_more(is_audited: bool) -> None:
    queue = KeptQueue(accepts_dead=False, is_audited=is_audited)
    queue.store.policy = "drop-oldest"
    queue.store.maximum_length = 1
    reason = {Symbol("x-opt-dead-letter-reason"): "maximum-length"}
    queue.send("letter", message_annotations=reason)
    queue.send("a")
    queue.core.flush()
    assert (queue.texts(), queue.dead, queue.count("leaving")) == (["a"], [], 0)
    assert queue.restarted().texts() == ["a"]


def test_a_full_queue_that_drops_its_oldest_goes_on_when_its_dead_have_gone() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.store.policy = "drop-oldest"
    queue.store.maximum_length = 2
    queue.send(*"abcdef")
    queue.core.flush()
    assert (queue.texts()[:2], queue.dead, queue.entry.held) == (["c", "d"], ["a", "b"], 2)
    queue.store.moved([number for number, *_ in queue.dead_letters])
    queue.core.flush()
    assert (queue.texts()[:2], queue.dead[2:], queue.entry.held) == (["e", "f"], ["c", "d"], 0)


def test_a_full_queue_that_drops_its_oldest_goes_on_when_there_is_room_on_disk() -> None:
    queue = KeptQueue()
    queue.store.policy = "drop-oldest"
    queue.store.maximum_length = 1
    queue.send("a")
    queue.journal.is_low = True
    queue.send("b")
    assert queue.entry.held == 1
    queue.journal.is_low = False
    queue.store.reopen()
    queue.core.flush()
    assert (queue.texts(), queue.entry.held) == (["b"], 0)
