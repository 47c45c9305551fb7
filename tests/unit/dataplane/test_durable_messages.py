"""What waits for the disk, and what does not: messages, deliveries, claims."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import peers
import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Header
from cogwork.amqp.outcomes import Accepted, Rejected, Released
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import Store

if TYPE_CHECKING:
    from cogwork.dataplane.transport.outgoing import OutgoingLink

DURABLE, OTHER = Header(durable=True), Header(durable=False)
AHEAD, JUMP = 1024, 4096


def auto(*, redelivers: bool = False, delivers_ahead: bool = False) -> KeptQueue:
    return KeptQueue(waits_for_all=False, redelivers=redelivers, delivers_ahead=delivers_ahead)


def accepted(queue: KeptQueue) -> int:
    return len(queue.publisher.outcomes())


# --- messages ---


def test_with_auto_only_a_durable_message_waits() -> None:
    queue = auto()
    queue.send("other", header=OTHER)
    queue.send("none said")
    assert accepted(queue) == 2
    queue.send("durable", header=DURABLE)
    assert accepted(queue) == 2
    queue.commit()
    assert accepted(queue) == 3


def test_with_disk_each_message_waits() -> None:
    queue = KeptQueue()
    queue.send("other", header=OTHER)
    assert accepted(queue) == 0
    queue.commit()
    assert accepted(queue) == 1


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_run_waits_where_one_of_its_messages_is_durable(at: int) -> None:
    queue = auto()
    run = [queue.message(str(n), header=DURABLE if n == at else OTHER) for n in range(3)]
    queue.publisher.send_run(queue.link, run)
    assert accepted(queue) == 0
    queue.commit()
    assert accepted(queue) == 3
    queue.publisher.send_run(queue.link, [queue.message(str(n)) for n in range(3)])
    assert accepted(queue) == 6


def test_a_settled_durable_message_has_no_other_one_wait() -> None:
    queue = auto()
    queue.publisher.send(queue.link, queue.message("settled", header=DURABLE), settled=True)
    queue.commit()
    queue.send("other")
    assert accepted(queue) == 1


def test_what_did_not_wait_is_written_all_the_same() -> None:
    queue = auto()
    queue.send("durable", header=DURABLE)
    queue.send("other", header=OTHER)
    assert queue.restarted().texts() == ["durable", "other"]


# --- deliveries ---


def test_a_queue_that_redelivers_delivers_before_that_is_durable() -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", header=DURABLE)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert len(consumer.take()) == 1
    assert accepted(queue) == 0, "the publisher still waits"


def test_a_queue_that_parks_waits_before_it_delivers() -> None:
    queue = auto()
    queue.send("a", header=OTHER)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert consumer.take() == []
    queue.commit()
    assert len(consumer.take()) == 1


@pytest.mark.parametrize(("header", "waits"), [(DURABLE, True), (OTHER, False)])
def test_the_claim_on_a_durable_item_is_confirmed_once_that_is_durable(
    header: Header, waits: bool
) -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", header=header)
    queue.commit()
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    (arrival,) = consumer.take()
    consumer.settle(arrival, Accepted(), settled=False)
    queue.core.flush()
    assert len(consumer.outcomes()) == (0 if waits else 1)
    queue.commit()
    assert consumer.outcomes() == {arrival.delivery_id: Accepted()}


def test_what_follows_a_settled_outcome_does_not_wait() -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", "b", header=DURABLE)
    queue.commit()
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    (arrival,) = consumer.take()
    consumer.settle(arrival, Accepted())
    consumer.flow(link, 1)
    assert len(consumer.take()) == 1


# --- attempts ---


def again_and_again(queue: KeptQueue, consumer: peers.Peer, link: OutgoingLink, count: int) -> int:
    """Take an item and give it back, so often; return how often it came."""
    for came in range(count):
        consumer.flow(link, 1)
        arrivals = consumer.take()
        if not arrivals:
            return came
        consumer.settle(arrivals[0], Released())
        queue.core.flush()
    return count


def test_only_some_attempts_wait_for_the_disk() -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", header=DURABLE)
    queue.commit()
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    assert again_and_again(queue, consumer, link, 2 * AHEAD) == AHEAD - 1
    queue.commit()
    (arrival,) = consumer.take()
    assert arrival.parts.attempt == AHEAD


def test_attempts_of_a_new_life_are_above_all_earlier_ones() -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", header=DURABLE)
    queue.commit()
    attempts = []
    for _ in range(4):
        consumer = queue.peer()
        consumer.consumer(queue.store, 1)
        queue.core.flush()
        (arrival,) = consumer.take()
        attempts.append(arrival.parts.attempt)
        queue = queue.restarted(flushes=False)  # as after kill -9: nobody knows of this attempt
        queue.commit()
    assert attempts == [1, JUMP + 1, 2 * JUMP + 1, 3 * JUMP + 1]


def test_nothing_leaves_before_the_new_base_is_durable() -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", header=DURABLE)
    again = queue.restarted()
    consumer = again.peer()
    consumer.consumer(again.store, 1)
    assert consumer.take() == []
    again.commit()
    assert len(consumer.take()) == 1


def test_a_queue_that_parks_counts_attempts_on() -> None:
    queue = KeptQueue()
    queue.send("a")
    queue.commit()
    again = queue.restarted()
    consumer = again.peer()
    consumer.consumer(again.store, 1)
    again.commit()
    (arrival,) = consumer.take()
    assert arrival.parts.attempt == 1


def test_a_rewritten_account_keeps_the_base() -> None:
    queue = auto(redelivers=True, delivers_ahead=True)
    queue.send("a", header=DURABLE)
    queue = queue.restarted()
    assert queue.store.attempt_base == JUMP
    queue.commit()
    assert queue.checkpointed().restarted().store.attempt_base == 2 * JUMP


@pytest.mark.parametrize("seed", range(30))
def test_no_two_deliveries_share_a_tag_whenever_it_crashes(seed: int) -> None:
    chance = random.Random(seed)
    queue = auto(redelivers=True, delivers_ahead=True)
    seen: set[bytes] = set()
    for _ in range(12):
        consumer = queue.peer()
        link = consumer.consumer(queue.store)
        for _ in range(30):
            step = chance.choice(("send", "take", "take", "take", "commit", "rewrite"))
            if step == "send":
                queue.send("x", header=chance.choice((DURABLE, OTHER)))
            elif step == "take":
                consumer.flow(link, 1)
                for arrival in consumer.take():
                    assert arrival.tag not in seen, f"seed {seed}"
                    seen.add(arrival.tag)
                    outcome = chance.choice((Released(), Released(), Accepted(), Rejected()))
                    consumer.settle(arrival, outcome)
            elif step == "commit":
                queue.commit()
            elif chance.random() < 0.1:
                queue.checkpointed()
            queue.core.flush()
        queue = queue.restarted(flushes=chance.random() < 0.3)
    assert seen


# --- without a disk ---


def test_a_durable_message_in_memory_is_counted_and_told_once() -> None:
    core = Core()
    store = Store(core, 1)
    told: list[bool] = []
    store.on_durable = lambda: told.append(True)
    entry = AddressEntry(core, "queue/a", BALANCED_CODE)
    entry.add_outlet(store)
    client = peers.Peer(core)
    link = client.publisher(entry)
    message = KeptQueue().message
    client.send_run(link, [message("a"), message("b", header=DURABLE)])
    client.send(link, message("c", header=DURABLE), settled=True)
    assert store.durable_in_memory == store.counts()["durable-in-memory"] == 2
    assert told == [True]
