"""What a restart makes of a queue's journal: the items, their attempts, and their times."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.message import Header, Properties, decode_sections
from cogwork.amqp.outcomes import Modified, Received, Released
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.queue.journal import recovered_entry
from cogwork.dataplane.queue.restoration import restore
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE, UNKNOWN_CODE

if TYPE_CHECKING:
    from peers import Arrival, Peer

RECEIVED = Received(section_number=0, section_offset=0)


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue()


def test_items_are_ready_in_their_old_order(queue: KeptQueue) -> None:
    queue.send("a", "b", "c")
    queue.send("first", header=Header(priority=9))
    again = queue.restarted()
    assert again.texts() == ["first", "a", "b", "c"]
    again.send("d")
    assert again.restarted().texts() == ["first", "a", "b", "c", "d"]


@pytest.mark.parametrize(("before", "after"), [(1, 10), (10, 1), (3, 10), (200, 3)])
def test_items_stand_by_the_priorities_that_the_queue_has_now(before: int, after: int) -> None:
    queue = KeptQueue(priorities=before)
    queue.send("old")
    queue.send("urgent", header=Header(priority=9))
    queue.options["priorities"] = after
    again = queue.restarted()
    again.send("new")
    assert again.texts() == (["old", "urgent", "new"] if after == 1 else ["urgent", "old", "new"])


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


def test_another_attempt_of_what_was_confirmed_is_stale_after_a_restart(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    queue.commit()
    consumer.hear()
    (first,) = consumer.take()
    consumer.settle(first, Modified(delivery_failed=True))
    queue.commit()
    consumer.hear()
    (second,) = consumer.take()
    consumer.settle(second, settled=False)
    again = queue.restarted().checkpointed().restarted()
    link = again.peer().consumer(again.store)
    unknown = second.tag[:8] + b"\xff" * 4 + second.tag[12:]
    answers = again.store.resume(link, [first.tag, second.tag, unknown])
    assert answers == [STALE_CODE, SETTLE_CODE, UNKNOWN_CODE]


def test_confirmations_that_an_earlier_version_wrote_are_known(queue: KeptQueue) -> None:
    queue.send("a")
    queue.commit()
    (number,) = queue.image().items
    queue.records.append(struct.pack(">BQI", 4, number, 3))
    again = queue.restarted()
    assert again.store.depth == 0
    assert again.store.claim(number, 3) == SETTLE_CODE
    assert again.store.claim(number, 2) == STALE_CODE
    once_more = again.checkpointed().restarted()
    assert once_more.store.claim(number, 3) == SETTLE_CODE
    ((_, _, at_s),) = once_more.image().commits.remembered(int(time.time()))
    assert abs(at_s - time.time()) < 60, "known from the restart on"


def test_confirmations_are_forgotten_after_a_day(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    queue.commit()
    consumer.hear()
    (item,) = consumer.take()
    consumer.settle(item, settled=False)
    day_s = 24 * 3600
    queue.store.tick(time.monotonic() + day_s - 60)
    assert queue.store.claim(item.parts.item, 1) == SETTLE_CODE
    queue.store.tick(time.monotonic() + day_s + 60)
    assert queue.store.claim(item.parts.item, 1) == UNKNOWN_CODE
    assert queue.checkpointed().image().commits.remembered(0) == []


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


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_acquisitions_count_after_a_restart(queue: KeptQueue, is_checkpointed: bool) -> None:
    queue.store.maximum_acquisitions = 3
    queue.send("a")
    queue.commit()
    for _ in range(2):
        consumer = queue.peer()
        link = consumer.consumer(queue.store, 1)
        queue.commit()
        consumer.hear()
        assert len(consumer.take()) == 1
        consumer.end(queue.store, link)
    again = (queue.checkpointed() if is_checkpointed else queue).restarted()
    again.store.maximum_acquisitions = 3
    other = again.peer()
    link = other.consumer(again.store, 1)
    again.commit()
    other.hear()
    assert len(other.take()) == 1
    other.end(again.store, link)
    assert again.dead == ["a"]
    assert again.dead_letters[0][1] == "acquisitions-exceeded"


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
    again.core.flush()
    assert again.texts() == ["long", "late"]
    again.store.tick(time.monotonic() + 61)
    again.core.flush()
    assert again.texts() == ["late"]


def test_an_item_stands_where_its_delay_ended(queue: KeptQueue) -> None:
    queue.send("first", "second")
    for text, delay_ms in (("third", 20), ("last", 60_000), ("fourth", 25)):
        queue.send(text, message_annotations={Symbol("x-opt-delivery-delay"): UInt(delay_ms)})
    time.sleep(0.03)
    queue.core.tick()
    queue.store.tick(time.monotonic())
    queue.send("fifth", "sixth")
    expected = ["first", "second", "third", "fourth", "fifth", "sixth", "last"]
    assert queue.texts() == expected
    again = queue.restarted()
    assert again.texts() == expected
    assert again.checkpointed().restarted().texts() == expected


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


def test_every_remembered_message_id_survives_a_checkpoint() -> None:
    queue = KeptQueue(deduplication_window_s=60.0)
    consumer = queue.peer()
    consumer.consumer(queue.store, queue.seen_max // 2)
    numbers = range(queue.seen_max)
    for number in numbers:
        queue.send("x", properties=Properties(message_id=str(number)))
    queue.commit()
    consumer.hear()
    for arrival in consumer.take():
        consumer.settle(arrival)
    queue.commit()
    again = queue.checkpointed().restarted()
    for number in numbers:
        again.send("x", properties=Properties(message_id=str(number)))
    assert again.count("duplicates") == len(numbers)


def test_the_newest_message_ids_are_remembered() -> None:
    queue = KeptQueue(deduplication_window_s=60.0)
    for number in range(2 * queue.seen_max + 10):
        queue.send("x", properties=Properties(message_id=f"{number:04}"))
    queue.commit()
    seen = [message_id[2:].decode() for _, message_id in queue.image().seen]
    assert len(seen) == queue.seen_max
    assert f"{2 * queue.seen_max + 9:04}" in seen


def test_a_doubt_does_not_begin_before_the_log_was_read() -> None:
    queue = KeptQueue()
    queue.peer().consumer(queue.store, 1)
    queue.send("a")
    queue.commit()
    again = KeptQueue()
    again.store.in_doubt_timeout_s = 0.2
    created_s = time.monotonic()
    time.sleep(0.1)
    restore(again.store, queue.image())
    restored_s = time.monotonic()
    again.store.tick(created_s + 0.25)
    assert again.count("in-doubt") == 1
    again.store.tick(restored_s + 0.25)
    assert again.count("in-doubt") == 0


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


def _given(queue: KeptQueue, consumer: Peer) -> list[Arrival]:
    queue.core.flush()
    queue.commit()
    consumer.hear()
    return consumer.take()


@pytest.mark.parametrize("outcome", [Released(), Modified(delivery_failed=True)])
def test_what_came_back_of_a_group_waits_for_what_is_in_doubt(
    outcome: Released | Modified,
) -> None:
    queue = KeptQueue(is_ordered=True)
    queue.send("a", "b", "c", properties=Properties(group_id="g"))
    queue.send("other", properties=Properties(group_id="h"))
    one = queue.peer()
    one.consumer(queue.store, 2)
    first, _ = _given(queue, one)
    one.settle(first, outcome)
    queue.commit()
    again = queue.restarted()
    two = again.peer()
    two.consumer(again.store, 10)
    assert [text_of(each.message) for each in _given(again, two)] == ["other"]
    assert again.texts() == ["a", "b", "c", "other"]


def test_annotations_leave_an_item_in_its_place_however_often_it_is_restarted() -> None:
    queue = KeptQueue()
    queue.send("a", "b", "c")
    again = queue.restarted()
    consumer = again.peer()
    consumer.consumer(again.store, 1)
    (item,) = _given(again, consumer)
    why: dict[Symbol, object] = {Symbol("x-opt-why"): "busy"}
    consumer.settle(item, Modified(delivery_failed=True, message_annotations=why))
    again.commit()
    assert again.texts() == ["a", "b", "c"]
    last = again.restarted()
    assert last.texts() == ["a", "b", "c"]
    assert last.restarted().texts() == ["a", "b", "c"]


def test_annotations_leave_an_item_that_was_delayed_behind_what_came_before_it() -> None:
    queue = KeptQueue()
    queue.send("a", "b", "c")
    queue.send("late", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    queue.send("e", "f")
    queue.store.tick(time.monotonic() + 61)
    queue.send("z")
    order = queue.texts()
    assert order == ["a", "b", "c", "e", "f", "late", "z"]
    consumer = queue.peer()
    consumer.consumer(queue.store, 6)
    items = _given(queue, consumer)
    why: dict[Symbol, object] = {Symbol("x-opt-why"): "busy"}
    for item in items:
        is_late = text_of(item.message) == "late"
        consumer.settle(item, Modified(message_annotations=why) if is_late else Released())
    queue.commit()
    assert queue.texts() == order
    assert queue.restarted().texts() == order


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("redelivers", [False, True])
def test_what_may_have_been_settled_where_it_is_lost_is_parked_or_marked(
    redelivers: bool,
) -> None:
    queue = KeptQueue(redelivers=redelivers)
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("out", "ready")
    queue.send("later", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    (held,) = _given(queue, consumer)
    queue.commit()
    queue.records.append(recovered_entry(_now_ms()))
    again = queue.restarted()
    assert again.store.claim(*_parts_of(held)) == UNKNOWN_CODE, "not stale: nobody else has it"
    again.core.flush()
    assert again.count("in-doubt") == 0
    assert again.count("delayed") == 1, "what is due later was given to nobody"
    once_more = again.checkpointed().restarted()
    if not redelivers:
        assert sorted(again.dead) == ["out", "ready"]
        assert {reason for _, reason, *_ in again.dead_letters} == {"in-doubt"}
        assert once_more.texts() == ["later"]
        return
    assert once_more.texts() == ["out", "ready", "later"]
    other = once_more.peer()
    other.consumer(once_more.store, 10)
    given = _given(once_more, other)
    counts = [decode_sections(each.message).header for each in given]
    assert [count.delivery_count if count else 0 for count in counts] == [1, 1]
    assert min(_parts_of(each)[1] for each in given) > _parts_of(held)[1] + 4096
    assert once_more.store.claim(*_parts_of(held)) == STALE_CODE, "by now somebody else has it"


def test_what_is_new_after_a_recovery_has_no_number_of_before(queue: KeptQueue) -> None:
    queue.send("a")
    queue.commit()
    (before,) = queue.image().items
    queue.records.append(recovered_entry(_now_ms()))
    again = queue.restarted()
    again.send("b")
    again.commit()
    fresh = max(again.image().items)
    assert (fresh >> 32) > (before >> 32) + 4096


def test_what_came_back_since_a_recovery_is_as_ever(queue: KeptQueue) -> None:
    queue.send("a")
    queue.commit()
    queue.records.append(recovered_entry(_now_ms()))
    queue.redelivers = True
    again = queue.restarted()
    consumer = again.peer()
    consumer.consumer(again.store, 1)
    (item,) = _given(again, consumer)
    once_more = again.restarted()
    assert once_more.count("in-doubt") == 1, "its consumer may come back"
    assert once_more.store.claim(*_parts_of(item)) == SETTLE_CODE


def _parts_of(item: Arrival) -> tuple[int, int]:
    """Return an item's number and attempt, by its tag."""
    _, number, attempt = struct.unpack(">IQI", item.tag)
    return number, attempt
