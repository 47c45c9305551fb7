"""The first act: every flight is published at a, and followed at a and at c."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from flights import TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from calls import Delays
    from flights import Flights
    from triangle import Strike, Triangle

    from cogwork import Message
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.client.receiving.subscription import Subscription
    from cogwork.dataplane.client.dispatches import Batch

    Advance = Callable[[str, int], None]

__all__ = ("Flown", "Follower", "play_topics")

BATCH = 500
BATCHES_AT_ONCE = 20
QUIET_S = 0.3
"""So long a follower that has every flight waits for second copies."""

STALLED_S = 15.0
"""So long one waits that lacks flights: then they are lost, and the count says so."""

PAUSE_S = 0.05


@dataclass
class Follower:
    """A subscriber: counts the flights that it gets, and watches the order.

    Whether a message of doubtful outcome arrived, nobody knows: it is sent again, and a flight may
    come twice then. But no message may: each has a number of its own, higher than the one before.

    Attributes:
        pattern: What it subscribed to.
        place: The container where it is.
        expected: How many flights it must get, as pandas says.
        seen: For each flight, whether it has come.
        count: How many flights have come.
        again: How many came once more.
        in_order: Whether every message had a higher number than the one before it.
    """

    pattern: str
    place: str
    expected: int
    seen: bytearray
    count: int = 0
    again: int = 0
    in_order: bool = True
    _last: int = -1

    async def follow(
        self,
        messages: Subscription,
        learn: Callable[[Message], None] | None,
        advance: Advance,
        published: asyncio.Event,
    ) -> None:
        """Take messages until every flight has come, all are accepted, and no more come."""
        while True:
            has_all = published.is_set() and self.count >= self.expected
            try:
                async with asyncio.timeout(QUIET_S if has_all else STALLED_S):
                    batch = await messages.take()
            except TimeoutError:
                if published.is_set():
                    return
                continue
            before = self.count
            for message in batch:
                if self._is_new(message) and learn is not None:
                    learn(message)
            advance(self.pattern, self.count - before)

    def _is_new(self, message: Message) -> bool:
        row, number = message.properties["row"], message.properties["number"]
        self.in_order = self.in_order and number > self._last
        self._last = number
        if self.seen[row]:
            self.again += 1
            return False
        self.seen[row] = 1
        self.count += 1
        return True


@dataclass
class Flown:
    """What came of the act.

    Attributes:
        took_s: Seconds until every flight was accepted.
        resent: How many messages were sent again, their outcome being in doubt.
        strike: How b was killed.
        direct: Messages that went over the direct link.
    """

    took_s: float
    resent: int
    strike: Strike
    direct: int


async def play_topics(
    triangle: Triangle,
    flights: Flights,
    followers: Sequence[Follower],
    delays: Delays,
    advance: Advance,
) -> Flown:
    """Publish every flight until it is accepted, while the followers listen and b is killed."""
    published = asyncio.Event()
    last = followers[-1]
    async with AsyncExitStack() as stack:
        tasks = []
        for follower in followers:
            topic = f"topic/{follower.pattern}"
            messages = await stack.enter_async_context(
                triangle.clients[follower.place].subscribe(topic)
            )
            learn = delays.learn if follower is last else None
            follow = follower.follow(messages, learn, advance, published)
            tasks.append(asyncio.create_task(follow))
        killing = asyncio.create_task(triangle.kill_b(lambda: 2 * last.count > last.expected))
        started_s = time.perf_counter()
        async with triangle.clients["a"].publisher() as out:
            resent = await _Sender(out, flights, advance).send_all()
        took_s = time.perf_counter() - started_s
        published.set()
        strike = await killing
        await asyncio.gather(*tasks)
        return Flown(took_s, resent, strike, await triangle.messages_over("c"))


@dataclass
class _Sender:
    """Sends flights until each is accepted."""

    out: Publisher
    flights: Flights
    advance: Advance
    numbers: Iterator[int] = field(default_factory=count)

    async def send_all(self) -> int:
        """Return how many messages had to be sent again."""
        resent = 0
        rows: Sequence[int] = range(len(self.flights))
        while rows := await self._send(rows):
            resent += len(rows)
            await asyncio.sleep(PAUSE_S)
        return resent

    async def _send(self, rows: Sequence[int]) -> list[int]:
        """Send some flights; return those that were not accepted."""
        failed: list[int] = []
        posted: deque[tuple[Sequence[int], Batch[Outcome]]] = deque()
        for at in range(0, len(rows), BATCH):
            await self.out.ready()
            some = rows[at : at + BATCH]
            posted.append((some, self.out.post_batch(map(self._message, some))))
            if len(posted) > BATCHES_AT_ONCE:
                failed += await self._failed(*posted.popleft())
        for each in posted:
            failed += await self._failed(*each)
        return failed

    def _message(self, row: int) -> Message:
        return self.flights.message(TOPIC, row, number=next(self.numbers))

    async def _failed(self, rows: Sequence[int], batch: Batch[Outcome]) -> list[int]:
        outcomes = await batch
        failed = [
            row for row, outcome in zip(rows, outcomes, strict=True) if not outcome.is_accepted
        ]
        self.advance("flights published", len(rows) - len(failed))
        return failed
