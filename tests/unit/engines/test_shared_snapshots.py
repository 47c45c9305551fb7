"""Snapshots of a stream on a server that several save, trim and load at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from memory_log import MemoryLog

from cogwork.engines.shared.stream import SharedStream
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import CaughtUp, Origin, Snapshot
from cogwork.plugin.engine.errors import Malformed, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LARGE = bytes(range(256)) * 64
"""It has several parts."""


async def filled(log: MemoryLog, count: int, timeout_s: float = 10.0) -> SharedStream:
    stream = SharedStream(log, timeout_s)
    for _ in range(count):
        await stream.append(Batch.of([b"x"]))
    return stream


def hold_the_first(monkeypatch: pytest.MonkeyPatch, stream: SharedStream) -> asyncio.Event:
    """Have the first snapshot that is written wait, as for a slow server, until it may go on."""
    goes_on = asyncio.Event()
    write = stream._writer.snapshot
    calls: list[bytes] = []

    async def held(data: bytes) -> None:
        calls.append(data)
        if len(calls) == 1:
            await goes_on.wait()
        await write(data)

    monkeypatch.setattr(stream._writer, "snapshot", held)
    return goes_on


async def meanwhile(
    doing: Awaitable[None], then: Callable[[], Awaitable[None]], goes_on: asyncio.Event
) -> None:
    """Begin something that is held, begins something else, and have the first go on."""
    first = asyncio.ensure_future(doing)
    await asyncio.sleep(0.05)
    second = asyncio.ensure_future(then())
    await asyncio.sleep(0.05)
    goes_on.set()
    await asyncio.gather(first, second)


def before_fetch(
    monkeypatch: pytest.MonkeyPatch,
    log: MemoryLog,
    position: int,
    happens: Callable[[], Awaitable[None]],
) -> None:
    """Have something happen, once, before the entry at a position is fetched."""
    fetch = log.fetch

    async def fetched(wanted: int) -> tuple[int, bytes] | None:
        if wanted == position:
            monkeypatch.setattr(log, "fetch", fetch)
            await happens()
        return await fetch(wanted)

    monkeypatch.setattr(log, "fetch", fetched)


def test_a_trim_puts_no_old_snapshot_over_one_that_was_saved_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = await filled(log, 20)
        await stream.save_snapshot(Snapshot(10, LARGE))
        await stream.append(Batch.of([b"x"]))
        goes_on = hold_the_first(monkeypatch, stream)
        newer = Snapshot(21, b"newer")
        await meanwhile(stream.trim(20), lambda: stream.save_snapshot(newer), goes_on)
        assert await stream.load_snapshot() == newer
        assert (await stream.bounds()).first == 20
        found = stream.subscribe(Origin.SNAPSHOT)
        assert [await anext(found), await anext(found)] == [newer, CaughtUp(21)]
        await found.aclose()

    asyncio.run(story())


def test_of_two_that_save_at_once_the_newer_snapshot_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        stream = await filled(MemoryLog(), 20)
        goes_on = hold_the_first(monkeypatch, stream)
        newer = Snapshot(20, b"newer")
        older = stream.save_snapshot(Snapshot(10, b"older"))
        await meanwhile(older, lambda: stream.save_snapshot(newer), goes_on)
        assert await stream.load_snapshot() == newer

    asyncio.run(story())


def test_a_trim_leaves_a_snapshot_that_another_container_saves_while_it_loads_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        log = MemoryLog()
        stream, other = await filled(log, 20), SharedStream(log)
        await stream.save_snapshot(Snapshot(10, LARGE))
        load = stream._load_snapshot
        newer = Snapshot(20, b"newer")

        async def loaded() -> Snapshot | None:
            found = await load()
            await other.save_snapshot(newer)
            return found

        monkeypatch.setattr(stream, "_load_snapshot", loaded)
        await stream.trim(20)
        assert await other.load_snapshot() == newer

    asyncio.run(story())


@pytest.mark.parametrize("part", [0, 2])
def test_a_snapshot_that_is_written_anew_and_given_up_while_it_is_loaded_is_found_again(
    monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    async def story() -> None:
        log = MemoryLog()
        stream, other = await filled(log, 20), SharedStream(log)
        first = log.last + 1
        await stream.save_snapshot(Snapshot(10, LARGE))
        await stream.append(Batch.of([b"x"]))
        before_fetch(monkeypatch, log, first + part, lambda: other.trim(20))
        assert await stream.load_snapshot() == Snapshot(10, LARGE)
        assert min(log.entries) > first + part, "it was given up"

    asyncio.run(story())


def test_a_snapshot_of_which_some_is_missing_is_told_of() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = await filled(log, 5)
        await stream.save_snapshot(Snapshot(5, LARGE))
        del log.entries[8]
        with pytest.raises(Malformed):
            await stream.load_snapshot()

    asyncio.run(story())


def test_who_starts_from_a_snapshot_gets_one_that_is_newer_than_his_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        log = MemoryLog()
        stream, other = await filled(log, 5), SharedStream(log)
        load = stream._load_snapshot

        async def loaded() -> Snapshot | None:
            await other.append(Batch.of([b"x"]))
            await other.save_snapshot(Snapshot(6, b"newer"))
            return await load()

        monkeypatch.setattr(stream, "_load_snapshot", loaded)
        found = stream.subscribe(Origin.SNAPSHOT)
        assert await anext(found) == Snapshot(6, b"newer")
        await found.aclose()

    asyncio.run(story())


def test_who_waits_for_too_long_for_another_snapshot_is_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        stream = await filled(MemoryLog(), 20, timeout_s=2.0)
        goes_on = hold_the_first(monkeypatch, stream)
        first = asyncio.ensure_future(stream.save_snapshot(Snapshot(10, b"first")))
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="another snapshot is still being written"):
            await stream.save_snapshot(Snapshot(11, b"second"))
        assert stream.outage is None
        goes_on.set()
        await first
        await stream.save_snapshot(Snapshot(12, b"third"))
        assert await stream.load_snapshot() == Snapshot(12, b"third")

    asyncio.run(asyncio.wait_for(story(), 30))
