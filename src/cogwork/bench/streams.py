"""Measures an engine of streams: how fast, how soon, how long it is away."""

from __future__ import annotations

import asyncio
import contextlib
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import CaughtUp, Origin
from cogwork.plugin.engine.errors import Busy, Unavailable, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.plugin.engine.contract import Engine, EngineHost

__all__ = ("Figures", "measure", "measure_failover")

RECORD_BYTES = 100
BATCH_RECORDS = 100
OUTSTANDING = 256
"""Appends under way at once."""

PAUSE_S = 0.005
FAILOVER_S = 15.0
"""How long a subscriber is watched after a leader was killed."""


class Figures(msgspec.Struct, kw_only=True, omit_defaults=False):
    """What was measured of an engine.

    Attributes:
        engine: Its name.
        servers: How many servers it ran on; none for one inside this process.
        durability: What the stream declared.
        single_per_s: Records a second, each appended alone, many under way.
        batched_per_s: Records a second in batches of a hundred.
        p50_ms: From an append to its answer, one at a time: the median.
        p99_ms: Ninety-nine in a hundred are faster.
        replay_per_s: Records a second that a late subscriber reads.
        failover_s: The longest gap a subscriber saw when the leader was killed; None where that was
            not measured.
    """

    engine: str
    servers: int
    durability: str
    single_per_s: float
    batched_per_s: float
    p50_ms: float
    p99_ms: float
    replay_per_s: float
    failover_s: float | None = None


async def measure(
    engine: str, host: EngineHost, servers: int, options: Mapping[str, object], seconds: float
) -> Figures:
    """Measure an engine on a stream of its own, which it deletes."""
    name = f"bench-{time.time_ns()}"
    stream = await host.open(name, options)
    try:
        durability = stream.capabilities.durability.value
        batched = await _throughput(stream, BATCH_RECORDS, seconds)
        replay = await _replay(stream)
        single = await _throughput(stream, 1, seconds)
        latencies_s = await _latencies(stream, seconds)
    finally:
        await host.delete(name)
    return Figures(
        engine=engine,
        servers=servers,
        durability=durability,
        single_per_s=single,
        batched_per_s=batched,
        p50_ms=latencies_s[len(latencies_s) // 2] * 1e3,
        p99_ms=latencies_s[len(latencies_s) * 99 // 100] * 1e3,
        replay_per_s=replay,
    )


async def measure_failover(
    host: EngineHost, options: Mapping[str, object], kill: Callable[[str | None], None]
) -> float:
    """Return the longest gap between records that a subscriber sees when a leader is killed.

    Args:
        host: The engine.
        options: The stream's.
        kill: Kills the server of this name, or whichever leads.
    """
    name = f"bench-{time.time_ns()}"
    stream = await host.open(name, options)
    arrivals_s: list[float] = []
    following = asyncio.create_task(_watch(stream, arrivals_s))
    writing = asyncio.create_task(_trickle(stream))
    try:
        await asyncio.sleep(1)
        kill((await stream.members()).leader)
        await asyncio.sleep(FAILOVER_S)
    finally:
        for task in (following, writing):
            task.cancel()
        await asyncio.gather(following, writing, return_exceptions=True)
        with contextlib.suppress(Unavailable):
            await host.delete(name)
    arrivals_s.append(time.monotonic())
    return max(b - a for a, b in pairwise(arrivals_s))


async def _throughput(stream: Engine, count: int, seconds: float) -> float:
    """Append with many under way; return records a second."""
    batch = Batch.of([bytes(RECORD_BYTES)] * count)
    began_s = time.monotonic()
    end_s = began_s + seconds
    done = await asyncio.gather(*(_append(stream, batch, end_s) for _ in range(OUTSTANDING)))
    return sum(done) / (time.monotonic() - began_s)


async def _append(stream: Engine, batch: Batch, end_s: float) -> int:
    """Append until the time is over, however short it is at least once; return how many."""
    records = 0
    while not records or time.monotonic() < end_s:
        try:
            await stream.append(batch)
            records += batch.count
        except Busy:
            await asyncio.sleep(PAUSE_S)
    return records


async def _latencies(stream: Engine, seconds: float) -> list[float]:
    batch = Batch.of([bytes(RECORD_BYTES)])
    found: list[float] = []
    end_s = time.monotonic() + seconds
    while not found or time.monotonic() < end_s:
        began_s = time.monotonic()
        await stream.append(batch)
        found.append(time.monotonic() - began_s)
    return sorted(found)


async def _replay(stream: Engine) -> float:
    subscription = stream.subscribe(Origin.FIRST)
    began_s = time.monotonic()
    records = 0
    try:
        while True:
            found = await anext(subscription)
            if isinstance(found, CaughtUp):
                return records / (time.monotonic() - began_s)
            if isinstance(found, Chunk):
                records += found.batch.count
    finally:
        await subscription.aclose()


async def _watch(stream: Engine, arrivals_s: list[float]) -> None:
    subscription = stream.subscribe(Origin.NEXT)
    try:
        while True:
            if isinstance(await anext(subscription), Chunk):
                arrivals_s.append(time.monotonic())
    finally:
        await subscription.aclose()


async def _trickle(stream: Engine) -> None:
    """Append a record every few milliseconds, each until it is there."""
    sequence = 0
    while True:
        try:
            await stream.append(Batch.of([b"x"], b"bench", sequence))
            sequence += 1
        except (Busy, Unavailable, Unknown):
            pass
        await asyncio.sleep(PAUSE_S)
