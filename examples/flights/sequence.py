"""The fourth act: every flight is a record of a replicated stream, read at a, at b and at c.

The container that leads the stream is killed. Whoever was connected to it goes on at another one.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from flights import STREAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from flights import Flights
    from triangle import Triangle

    from cogwork import Client
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.dataplane.client.dispatches import Batch

    Advance = Callable[[str, int], None]

__all__ = ("PLACES", "Kept", "Sequence", "append_and_read")

PLACES = ("a", "b", "c")
LATE = "c"
"""The reader there starts when half of the flights are in the stream."""

BATCH = 500
BATCHES_AT_ONCE = 10
LEADERLESS_S = 1.0
"""So long the dead leader stays away."""

_octets = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode


@dataclass
class Sequence:
    """Records in their order, as somebody has them.

    Attributes:
        count: How many there are.
    """

    count: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, offset: int, body: object) -> None:
        """Take the next one."""
        self.count += 1
        self._hash.update(_octets((offset, body)))

    @property
    def digest(self) -> str:
        """The SHA-256 of all of them, offsets and contents."""
        return self._hash.hexdigest()

    @classmethod
    def of(cls, flights: Flights) -> Sequence:
        """Return the table's: each flight once, in its order."""
        made = cls()
        for row in range(len(flights)):
            made.add(row, _body(flights, row))
        return made


def _body(flights: Flights, row: int) -> bytes:
    """Write a flight as JSON, which every engine that looks into the stream can read."""
    return _json(flights.flight(row))


@dataclass
class Kept:
    """What came of the act.

    Attributes:
        read: By place, what was read there.
        killed: The container that led and was killed.
        followed: The one that led after it.
        before: How many flights were in the stream by then.
        gap_s: How long at most nothing was confirmed.
        took_s: Seconds until every flight was confirmed.
    """

    read: dict[str, Sequence]
    killed: str = ""
    followed: str = ""
    before: int = 0
    gap_s: float = 0.0
    took_s: float = 0.0


async def append_and_read(triangle: Triangle, flights: Flights, advance: Advance) -> Kept:
    """Append every flight, first at a, and has three read them while the leader is killed."""
    kept = Kept({place: Sequence() for place in PLACES})
    appended = _Appended(flights, advance)
    stream = {"type": "stream", "name": STREAM}
    await triangle.clients["a"].manage("CREATE", stream, {"engine": "raft"})
    async with AsyncExitStack() as stack:
        readers = []
        for place in PLACES:
            client = await stack.enter_async_context(triangle.roam(place))
            await triangle.leader_of(STREAM, as_seen=client)
            start = appended.half if place == LATE else None
            reading = _read(client, kept.read[place], len(flights), start, advance)
            readers.append(asyncio.create_task(reading))
        killing = asyncio.create_task(_kill_the_leader(triangle, appended, kept))
        publisher = await stack.enter_async_context(triangle.roam("a"))
        started_s = time.perf_counter()
        await appended.send_all(publisher)
        kept.took_s = time.perf_counter() - started_s
        kept.gap_s = appended.gap_s
        await killing
        await asyncio.gather(*readers)
    return kept


async def _read(
    client: Client,
    sequence: Sequence,
    expected: int,
    start: asyncio.Event | None,
    advance: Advance,
) -> None:
    """Read from the first record on, once it is time, until all are there."""
    if start is not None:
        await start.wait()
    async for batch in client.stream(STREAM).read_batches("first"):
        for record in batch:
            sequence.add(record.offset, record.body)
        advance("records read", len(batch))
        if sequence.count >= expected:
            return


async def _kill_the_leader(triangle: Triangle, appended: _Appended, kept: Kept) -> None:
    """Kill the leader when half of the flights are appended; start it again later."""
    await appended.half.wait()
    kept.killed = await triangle.leader_of(STREAM)
    kept.before = appended.count
    triangle.kill(kept.killed)
    await asyncio.sleep(LEADERLESS_S)
    kept.followed = await triangle.leader_of(STREAM, other_than=kept.killed)
    await triangle.bring_back(kept.killed)


@dataclass
class _Appended:
    """Appends the flights, each once."""

    flights: Flights
    advance: Advance
    half: asyncio.Event = field(default_factory=asyncio.Event)
    count: int = 0
    gap_s: float = 0.0
    _confirmed_s: float = 0.0

    async def send_all(self, client: Client) -> None:
        """Return once every flight is confirmed: two of the three disks have it."""
        posted: deque[Batch[Outcome]] = deque()
        total = len(self.flights)
        self._confirmed_s = time.perf_counter()
        async with client.stream(STREAM).publisher() as out:
            for at in range(0, total, BATCH):
                await out.ready()
                rows = range(at, min(at + BATCH, total))
                posted.append(out.post_batch(_body(self.flights, row) for row in rows))
                if len(posted) > BATCHES_AT_ONCE:
                    self._confirm(await posted.popleft())
            for each in posted:
                self._confirm(await each)

    def _confirm(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if (error := outcome.error()) is not None:
                raise error
        now_s = time.perf_counter()
        self.gap_s = max(self.gap_s, now_s - self._confirmed_s)
        self._confirmed_s = now_s
        self.count += len(outcomes)
        self.advance("records appended", len(outcomes))
        if 2 * self.count >= len(self.flights):
            self.half.set()
