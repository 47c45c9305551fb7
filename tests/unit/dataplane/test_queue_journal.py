"""A queue's journal: what is held until it is durable, and what a restart makes of the records."""

from __future__ import annotations

import time

import peers
import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import Header, Properties, decode_sections
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.journal_image import JournalImage
from cogwork.dataplane.restoration import restore
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
    again.store.tick(created_s + 0.25)
    assert again.count("in-doubt") == 1
    again.store.tick(created_s + 0.5)
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


# -- the dead, and what is moved


def test_a_dead_item_is_there_until_its_letter_was_accepted() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.send("a", header=Header(ttl=UInt(1)))
    queue.commit()
    queue.store.tick(time.monotonic() + 1)
    queue.core.flush()
    assert queue.dead == ["a"]
    queue.commit()
    assert queue.restarted(flushes=False).count("leaving") == 1
    queue.store.moved([number for number, *_ in queue.letters])
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
    """Has a consumer reject the first item."""
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    queue.commit()
    consumer.hear()
    error = AmqpError(condition=Symbol("amqp:precondition-failed"), description=reason)
    consumer.settle(consumer.take()[0], Rejected(error=error))
    consumer.detach(queue.store, link)
    queue.core.flush()


def test_a_dead_item_is_dead_after_every_restart_until_its_letter_is_accepted() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.send("a", "b")
    reject(queue, "it is green")
    again = queue.restarted().restarted().checkpointed().restarted()
    assert again.texts() == ["b", "a"]  # who looks sees it, behind those that wait
    assert (again.store.depth, again.count("leaving")) == (1, 1)
    again.core.flush()
    ((number, why, message, error, failures),) = again.letters
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
    queue.store.moved([number for number, *_ in queue.letters])
    queue.core.flush()
    assert queue.store.depth == (0 if policy == "reject" else 1)


def test_what_finds_no_room_is_kept_until_its_letter_is_accepted() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.store.policy = "drop-oldest"
    queue.store.maximum_length = 1
    queue.send("later", message_annotations={Symbol("x-opt-delivery-delay"): 60_000})
    queue.send("dropped")
    again = queue.restarted()
    assert (again.store.depth, again.count("leaving")) == (1, 1)
    again.core.flush()
    ((_, why, message, _, _),) = again.letters
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


# -- what fits the log


RECORD_BYTES_MAX = 6 << 20
"""More than about a part, far less than what the tests here write."""


def test_a_checkpoint_of_large_messages_has_parts_that_fit_the_log(queue: KeptQueue) -> None:
    for _ in range(5):
        assert queue.store.put(queue.message("x" * (5 << 20)))
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.checkpointed(part_bytes=1 << 20)
    assert max(map(len, queue.records)) < RECORD_BYTES_MAX
    again = queue.restarted(flushes=False)
    assert (again.count("depth"), again.count("in-doubt")) == (5, queue.count("unsettled"))


def test_what_a_turn_says_of_many_items_has_parts_that_fit_the_log() -> None:
    queue = KeptQueue(accepts_dead=False)
    consumer = queue.peer()
    consumer.consumer(queue.store, 300)
    queue.send(*map(str, range(300)))
    queue.commit()
    consumer.hear()
    error = AmqpError(condition=Symbol("app:bad"), description="x" * 60_000)
    for arrival in consumer.take():
        consumer.settle(arrival, Rejected(error=error))
    written = queue.journal.take()
    assert sum(map(len, written)) > 2 * RECORD_BYTES_MAX
    assert max(map(len, written)) < RECORD_BYTES_MAX
    queue.records += written
    assert queue.restarted(flushes=False).count("leaving") == 300


@pytest.mark.parametrize(
    "payload",
    [b"\x00", b"\x01" + bytes(20), b"\x02", b"\x63abc", b"\x07" + bytes(12) + b"\x01" + bytes(4)],
)
def test_what_is_no_record_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="no record of a queue"):
        JournalImage().apply(payload)


def test_peers_are_as_before(queue: KeptQueue) -> None:
    """A queue whose journal is taken away is one in memory."""
    queue.store.journal = None
    queue.send("a")
    assert isinstance(queue.publisher, peers.Peer)
    assert [d.state for d in queue.publisher.dispositions] == [Accepted()]
