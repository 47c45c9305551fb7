"""Whatever happens to a queue: after every turn its records make the queue that there was."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.message import Header, Properties
from cogwork.amqp.outcomes import Accepted, Modified, Rejected, Released

if TYPE_CHECKING:
    from peers import Arrival

SEEDS = 40
TURNS = 40
OUTCOMES = (Accepted(), Accepted(), Released(), Modified(delivery_failed=True), Rejected())


def held(queue: KeptQueue, *, restarted: bool) -> dict[object, tuple[object, ...]]:
    """Items by number, as far as a restart keeps what is known of them."""
    found: dict[object, tuple[object, ...]] = {}
    for data, facts in queue.store.peek(1000):
        is_out = facts["state"] in {"out", "in-doubt"}
        assert not (restarted and facts["state"] == "out")
        found[facts["item"]] = (
            text_of(data),
            is_out,
            facts["priority"],
            facts["attempts"],
            facts["failures"],
        )
    return found


def ready(queue: KeptQueue) -> list[str]:
    return [text_of(data) for data, facts in queue.store.peek(1000) if facts["state"] == "ready"]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_records_make_the_queue_again_at_every_cut(seed: int) -> None:
    chance = random.Random(seed)
    queue = KeptQueue(is_ordered=seed % 3 == 0, accepts_dead=seed % 2 == 0)
    queue.store.maximum_delivery_count = 3
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 5)
    arrivals: list[Arrival] = []
    cuts = []
    for turn in range(TURNS):
        for number in range(chance.randrange(4)):
            properties = Properties(group_id=chance.choice("abc")) if seed % 3 == 0 else None
            header = Header(priority=chance.choice((4, 4, 9)))
            queue.send(f"{turn}.{number}", header=header, properties=properties)
        for arrival in arrivals:
            consumer.settle(arrival, chance.choice(OUTCOMES))
        if chance.random() < 0.1:
            queue.store.purge()
        if chance.random() < 0.2:
            numbers: list[int] = []
            queue.store.take_ready(2, numbers)
            chance.choice((queue.store.moved, queue.store.enter_again))(numbers)
            queue.commit()
        queue.core.flush()
        queue.commit()
        queue.commit()
        consumer.hear()
        arrivals = consumer.take()
        consumer.flow(link, chance.randrange(1, 6))
        queue.commit()
        cuts.append((len(queue.records), held(queue, restarted=False), ready(queue)))
    for count, items, in_order in cuts:
        again = KeptQueue(queue.image(count), accepts_dead=queue.accepts_dead, **queue.options)
        assert held(again, restarted=True) == items
        if seed % 3:
            assert ready(again) == in_order
        assert held(again.checkpointed().restarted(), restarted=True) == items
