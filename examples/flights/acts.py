"""What the demo does: topics, a work queue, a service; each act counts for itself."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flights import TOPIC, WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flights import Flights

    from cogwork import Mesh, Message
    from cogwork.client.consumer import Consumer
    from cogwork.client.subscription import Subscription

    Advance = Callable[[str, int], None]

__all__ = ("Delays", "Follower", "Shift", "ask_delays", "do_the_work", "play_topics")

BATCH = 500
PAUSES_S = (0.0, 0.001, 0.002, 0.004)
"""What each worker waits after a batch: the four are of unequal speed."""

CALLS_OF_EACH_ROUTE = 20
CALLS_AT_ONCE = 32
SERVICE = "service/delays"


@dataclass
class Follower:
    """A subscriber: counts what it gets, and watches the order.

    Attributes:
        pattern: What it subscribed to.
        expected: How many it must get, as pandas says.
        count: How many it got.
        in_order: Whether every row came after the one before it.
    """

    pattern: str
    expected: int
    count: int = 0
    in_order: bool = True
    last_row: int = -1

    async def follow(self, messages: Subscription, advance: Advance, delays: Delays | None) -> None:
        """Takes messages until all that were expected have come, and a moment longer."""
        while self.count < self.expected:
            self._take(await messages.take(), advance, delays)
        try:
            async with asyncio.timeout(0.3):
                self._take(await messages.take(), advance, delays)
        except TimeoutError:
            return

    def _take(self, batch: list[Message], advance: Advance, delays: Delays | None) -> None:
        for message in batch:
            row = message.properties["row"]
            self.in_order = self.in_order and row > self.last_row
            self.last_row = row
            if delays is not None:
                delays.learn(message)
        self.count += len(batch)
        advance(self.pattern, len(batch))


@dataclass
class Delays:
    """The service: learns from the topic, answers by route."""

    minutes: Mapping[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, message: Message) -> None:
        """Notes a flight's delay."""
        row = message.body
        if row["arr_delay"] is not None:
            self.minutes[f"{row['origin']}-{row['dest']}"].append(row["arr_delay"])

    def answer(self, request: Message) -> dict[str, float]:
        """Answers with the mean delay of the route that the request names."""
        known = self.minutes[request.body]
        return {"flights": len(known), "mean_delay_min": sum(known) / len(known)}


async def play_topics(
    mesh: Mesh, flights: Flights, followers: list[Follower], delays: Delays, advance: Advance
) -> float:
    """Publishes every flight once while the followers listen; returns the seconds it took."""
    async with AsyncExitStack() as stack:
        tasks = []
        for follower in followers:
            messages = await stack.enter_async_context(mesh.subscribe(f"topic/{follower.pattern}"))
            learner = delays if follower.pattern == "flights.#" else None
            tasks.append(asyncio.create_task(follower.follow(messages, advance, learner)))
        started_s = time.perf_counter()
        async with mesh.publisher() as out:
            for batch in flights.batches(TOPIC, BATCH):
                await out.ready()
                out.post_batch(batch)
                advance("published", len(batch))
            await out.flush()
        took_s = time.perf_counter() - started_s
        await asyncio.wait_for(asyncio.gather(*tasks), timeout=60)
        return took_s


@dataclass
class Shift:
    """What the workers have done.

    Attributes:
        confirmed: For each flight, how often an attempt at it was confirmed.
        by_worker: How many each worker got.
        took_s: Seconds from the first item posted to the last one confirmed.
    """

    confirmed: bytearray
    by_worker: list[int]
    took_s: float = 0.0
    count: int = 0


async def do_the_work(mesh: Mesh, flights: Flights, advance: Advance) -> Shift:
    """Posts every flight as a work item, and has four workers of unequal speed take them."""
    shift = Shift(bytearray(len(flights)), [0] * len(PAUSES_S))
    async with AsyncExitStack() as stack:
        workers = []
        for number, pause_s in enumerate(PAUSES_S):
            items = await stack.enter_async_context(mesh.consume(WORK, credit=2 * BATCH))
            workers.append(asyncio.create_task(_work(items, shift, number, pause_s, advance)))
        started_s = time.perf_counter()
        async with mesh.publisher(WORK) as out:
            for batch in flights.batches(WORK, BATCH):
                await out.ready()
                out.post_batch(batch)
                advance("posted", len(batch))
            await out.flush()
        while shift.count < len(flights) and not any(worker.done() for worker in workers):
            await asyncio.sleep(0.01)
        shift.took_s = time.perf_counter() - started_s
        for worker in workers:
            worker.cancel()
        for ended in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
    return shift


async def _work(
    items: Consumer, shift: Shift, number: int, pause_s: float, advance: Advance
) -> None:
    while True:
        batch = await items.take(BATCH)
        await items.accept(batch)
        for item in batch:
            shift.confirmed[item.properties["row"]] += 1
        shift.count += len(batch)
        shift.by_worker[number] += len(batch)
        advance("confirmed", len(batch))
        await asyncio.sleep(pause_s)


async def ask_delays(
    mesh: Mesh, delays: Delays, expected: Mapping[str, float], advance: Advance
) -> tuple[int, list[float]]:
    """Asks the service for every route; returns how many answers were right, and their times."""
    right = 0
    times_s: list[float] = []
    routes = iter(list(expected) * CALLS_OF_EACH_ROUTE)

    async def caller() -> None:
        nonlocal right
        for route in routes:
            started_s = time.perf_counter()
            reply = await mesh.call(SERVICE, route)
            times_s.append(time.perf_counter() - started_s)
            right += abs(reply.body["mean_delay_min"] - expected[route]) < 1e-9
            advance("answered", 1)

    async with mesh.serve(SERVICE, delays.answer):
        await asyncio.gather(*(caller() for _ in range(CALLS_AT_ONCE)))
    return right, times_s
