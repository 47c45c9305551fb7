"""Dead letters that come to a queue which waits for its own dead to go."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Header
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.partitions import PartitionedInlet

DEAD_LETTER = {
    Symbol("x-opt-dead-letter-reason"): "expired",
    Symbol("x-opt-dead-letter-source"): "queue/b",
}
ROOM = 2


def choked(**options: Any) -> KeptQueue:
    """Make a queue that has as many dead as it may hold, and nothing else."""
    queue = KeptQueue(accepts_dead=False, **options)
    queue.store.maximum_length = ROOM
    die(queue, "ab")
    return queue


def die(queue: KeptQueue, texts: str, after_s: float = 1.0, **sections: object) -> None:
    queue.send(*texts, header=Header(ttl=UInt(1)), **sections)
    queue.store.tick(time.monotonic() + after_s)
    queue.core.flush()
    queue.commit()


def test_a_dead_letter_goes_past_what_waits() -> None:
    queue = choked()
    queue.send("new")
    queue.send("letter", message_annotations=DEAD_LETTER)
    assert (queue.texts()[:1], queue.entry.held) == (["letter"], 1)


def test_a_dead_letter_that_waits_goes_past_the_others_as_soon_as_it_may() -> None:
    queue = choked()
    queue.send("c", "d", message_annotations=DEAD_LETTER)
    queue.send("new")
    queue.send("letter", message_annotations=DEAD_LETTER)
    assert (queue.texts()[:2], queue.entry.held) == (["c", "d"], 2)
    queue.store.purge()
    queue.core.flush()
    queue.store.tick(time.monotonic() + 1)
    assert (queue.texts()[:1], queue.entry.held) == (["letter"], 1)


def test_there_is_no_more_than_three_times_the_room() -> None:
    queue = choked()
    die(queue, "cd", after_s=2.0, message_annotations=DEAD_LETTER)
    die(queue, "ef", after_s=3.0, message_annotations=DEAD_LETTER)
    assert queue.count("leaving") == 3 * ROOM
    queue.send("letter", message_annotations=DEAD_LETTER)
    assert (queue.count("depth"), queue.entry.held) == (0, 1)
    queue.store.moved([queue.dead_letters[0][0]])
    queue.store.tick(time.monotonic() + 3.0)
    assert (queue.count("depth"), queue.entry.held) == (1, 0)


def test_a_dead_letter_is_taken_where_others_are_rejected() -> None:
    queue = choked()
    queue.store.policy = "reject"
    queue.send("new")
    queue.send("letter", message_annotations=DEAD_LETTER)
    assert (queue.texts()[:1], queue.count("refused")) == (["letter"], 1)


@pytest.mark.parametrize("problem", ["is_low", "is_failed", "is_shut"])
def test_no_dead_letter_is_taken_that_cannot_be_written_down(problem: str) -> None:
    queue = choked()
    if problem == "is_shut":
        queue.journal.is_open = False
    else:
        setattr(queue.journal, problem, True)
    queue.send("letter", message_annotations=DEAD_LETTER)
    assert queue.count("depth") == 0


def test_an_inlet_makes_way_where_its_store_does() -> None:
    queue = choked(is_ordered=True)
    queue.entry.remove_outlet(queue.store)
    inlet = PartitionedInlet(queue.store, queue.entry, 1, is_whole=True)
    queue.entry.add_outlet(inlet)
    near = AddressEntry(queue.core, "queue/a", CLOSEST_CODE)
    near.add_outlet(inlet.near)
    queue.store.near_inlet = near
    inlet.set_owners([queue.store])
    queue.send("new")
    queue.send("letter", message_annotations=DEAD_LETTER)
    assert (queue.texts()[:1], queue.entry.held) == (["letter"], 1)
    other = queue.peer()
    link = other.publisher(near)
    other.send(link, queue.message("new"))
    other.send(link, queue.message("far", message_annotations=DEAD_LETTER))
    assert (queue.texts()[:2], near.held) == (["letter", "far"], 1)
