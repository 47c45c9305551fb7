"""Stores that are emptied, and filled again with what another container has written down."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Header
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.queue.journal import Journal
from cogwork.dataplane.queue.journal_image import JournalImage
from cogwork.dataplane.queue.restoration import restore

DELAY = Symbol("x-opt-delivery-delay")


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ({"header": Header(ttl=UInt(20))}, {}, "ready"),
        (
            {"message_annotations": {DELAY: 20}},
            {"message_annotations": {DELAY: 3_600_000}},
            "delayed",
        ),
    ],
)
def test_no_time_of_what_was_forgotten_counts_for_what_has_its_number(
    before: dict[str, Any], after: dict[str, Any], place: str
) -> None:
    """What an owner did not get written down is not there for the next one, which counts on."""
    first, second = KeptQueue(), KeptQueue()
    for queue in (first, second):
        owned(queue, blank())
    first.send("never written down", **before)
    second.send("another one", **after)
    image = blank()
    for record in second.journal.take():
        image.apply(record)
    owned(first, image)
    first.store.tick(time.monotonic() + 1.0)
    first.core.flush()
    assert (first.count(place), first.count("expired"), first.dead) == (1, 0, [])


def blank() -> JournalImage:
    image = JournalImage(0)
    image.birth_base = 12345
    return image


def owned(queue: KeptQueue, image: JournalImage) -> None:
    """Have a store what is written down, as who owns a replicated queue does."""
    queue.store.clear()
    queue.store.journal = queue.journal = Journal(queue.core, image.sequence_max)
    restore(queue.store, image)
