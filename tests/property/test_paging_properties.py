"""Whether an item is in memory or on disk changes nothing that anybody can see.

Two queues have the same done to them: one of them writes runs of its items to page files whenever
chance has it, at any moment between two steps, and begins anew from what its journal says.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from kept_queues import KeptQueue
from paged_queues import PagedQueue
from text_messages import text_of, texts

from cogwork.amqp.message import Header
from cogwork.amqp.outcomes import Accepted, Modified, Rejected, Released

SEEDS = 60
STEPS = 120
OUTCOMES = (
    Accepted(),
    Accepted(),
    Accepted(),
    Released(),
    Modified(delivery_failed=True),
    Rejected(),
)


class Side:
    """A queue with one consumer."""

    def __init__(self, queue: KeptQueue) -> None:
        self.queue = queue
        self.got: list[str] = []
        self.attach()

    def attach(self) -> None:
        self.peer = self.queue.peer()
        self.link = self.peer.consumer(self.queue.store, 0)
        self.out: list[int] = []

    def hear(self) -> None:
        self.queue.commit()
        for arrival in self.peer.take():
            self.got += texts([arrival])
            self.out.append(arrival.delivery_id)


class Twins:
    """The two queues, and what is done to both."""

    def __init__(self, chance: random.Random, **options: Any) -> None:
        self.chance = chance
        self.paged = Side(PagedQueue(redelivers=True, **options))
        self.plain = Side(KeptQueue(redelivers=True, **options))
        self.sides = (self.paged, self.plain)
        self.sent = 0
        self.most_paged = 0

    def page(self) -> None:
        """Perhaps begin to write, or end it, or give it up."""
        queue = self.paged.queue
        assert isinstance(queue, PagedQueue)
        choice = self.chance.random()
        if choice < 0.5:
            queue.gather()
        elif choice < 0.95:
            queue.settle()
        else:
            queue.pages.give_up()
        self.most_paged = max(self.most_paged, queue.pages.count)

    def step(self) -> None:
        self.chance.choice(
            (
                self.send,
                self.send,
                self.send,
                self.flow,
                self.flow,
                self.outcome,
                self.outcome,
                self.purge,
                self.restart,
                self.expire,
                self.peek,
            )
        )()
        self.follow()

    def follow(self) -> None:
        """Have both come to rest, and compare."""
        queue = self.paged.queue
        assert isinstance(queue, PagedQueue)
        for side in self.sides:
            side.hear()
            queue.fetch(self.chance.choice)
            side.hear()
        assert self.paged.got == self.plain.got
        assert self.paged.out == self.plain.out
        for name in ("depth", "bytes", "ready", "unsettled", "dropped", "expired"):
            assert self.paged.queue.count(name) == self.plain.queue.count(name), name
        assert sorted(self.paged.queue.dead) == sorted(self.plain.queue.dead)

    def send(self) -> None:
        names = [f"m{self.sent + at}" for at in range(self.chance.randrange(1, 40))]
        self.sent += len(names)
        level = self.chance.choice([4, 4, 4, 9, 1])
        ttl_ms = self.chance.choice([None] * 9 + [50_000])
        for side in self.sides:
            side.queue.send(*names, header=Header(durable=True, priority=level, ttl=ttl_ms))

    def flow(self) -> None:
        credit = self.chance.randrange(30)
        for side in self.sides:
            side.peer.flow(side.link, credit)

    def outcome(self) -> None:
        count = self.chance.randrange(10)
        chosen = self.chance.sample(range(len(self.plain.out)), min(count, len(self.plain.out)))
        outcome = self.chance.choice(OUTCOMES)
        for side in self.sides:
            ids = [side.out[at] for at in chosen]
            for each in ids:
                side.peer.settle(each, outcome)
                side.out.remove(each)

    def purge(self) -> None:
        if self.chance.random() < 0.1:
            for side in self.sides:
                side.queue.store.purge()

    def expire(self) -> None:
        if self.chance.random() < 0.2:
            for side in self.sides:
                # What is on disk is told of when it is there again.
                for _ in range(3):
                    side.queue.store.tick(time.monotonic() + 60.0)
                    side.queue.core.flush()
                    if isinstance(side.queue, PagedQueue):
                        side.queue.fetch()

    def peek(self) -> None:
        offset = self.chance.randrange(50)
        ready = self.plain.queue.count("ready")
        count = max(0, min(20, ready - offset))
        shown = [side.queue.store.peek(count, offset) for side in self.sides]
        # Of a ttl less is left with each look.
        assert [text_of(data) for data, _ in shown[0]] == [text_of(data) for data, _ in shown[1]]

    def restart(self) -> None:
        if self.chance.random() < 0.3:
            writes_anew = self.chance.random() < 0.5
            for side in self.sides:
                if isinstance(side.queue, PagedQueue):
                    side.queue.pages.give_up()
                if writes_anew:
                    side.queue.checkpointed()
                side.queue = side.queue.restarted()
                for _ in range(2):  # what is in doubt goes back
                    side.queue.store.tick(time.monotonic() + 40.0)
                side.queue.core.flush()
                side.attach()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_on_disk_is_what_it_would_be_in_memory(seed: int) -> None:
    chance = random.Random(seed)
    options: dict[str, Any] = chance.choice([{}, {"priorities": 1}, {"priorities": 3}])
    twins = Twins(chance, **options)
    if chance.random() < 0.3:
        for side in twins.sides:
            side.queue.store.maximum_length = 150
            side.queue.store.policy = "drop-oldest"
    for _ in range(STEPS):
        twins.page()
        twins.step()
        twins.page()
    for side in twins.sides:
        side.peer.flow(side.link, 10_000)
    twins.follow()
    assert twins.most_paged > 20, f"seed {seed} has had too little on disk"
