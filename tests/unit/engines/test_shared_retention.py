"""What a stream on a server's log gives up by its retention, and what is told when that fails."""

from __future__ import annotations

import asyncio

import pytest
from memory_log import MemoryHost, MemoryLog

from cogwork.engines.shared.server import ServerDown, ServerRefused
from cogwork.engines.shared.stream import SharedStream
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.errors import Malformed
from cogwork.plugin.engine.retention import Retention


def test_retention_gives_up_by_records_and_by_octets() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        for _ in range(50):
            await stream.append(Batch.of([bytes(100)]))
        kept = SharedStream(log, retention=Retention(records=10))
        await kept.retain()
        assert (await stream.bounds()).first == 40
        kept = SharedStream(log, retention=Retention(size_bytes=1200))
        await kept.retain()
        assert 40 < (await stream.bounds()).first < 50
        kept = SharedStream(log, retention=Retention(age_s=3600))
        before = await stream.bounds()
        await kept.retain()
        assert await stream.bounds() == before

    asyncio.run(story())


def test_retention_goes_on_once_a_damaged_log_is_whole_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.engines.shared.retaining.RETENTION_INTERVAL_S", 0.01)

    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        for _ in range(50):
            await stream.append(Batch.of([bytes(100)]))
        whole = log.entries[30]
        log.entries[30] = whole[:-1] + b"?"
        kept = SharedStream(log, retention=Retention(records=10))
        with pytest.raises(Malformed):
            await kept.trim(40)
        await asyncio.sleep(0.1)
        assert (await stream.bounds()).first == 0
        log.entries[30] = whole
        async with asyncio.timeout(30):
            while (await stream.bounds()).first < 40:
                await asyncio.sleep(0.01)
        await kept.close()

    asyncio.run(story())


def test_retention_that_fails_is_told_once_and_so_is_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.engines.shared.retaining.RETENTION_INTERVAL_S", 0.01)
    warnings: list[str] = []
    reports: list[str] = []

    async def story() -> None:
        log = MemoryLog()
        host = MemoryHost(EngineContext(report=reports.append, warn=warnings.append))
        host.logs = {"orders": log}
        kept = await host.open("orders", {"retention_records": 10})

        async def refuse(before: int) -> None:
            raise ServerRefused(f"no permission to trim below {before}")

        trim = log.trim
        monkeypatch.setattr(log, "trim", refuse)
        for _ in range(50):
            await kept.append(Batch.of([bytes(100)]))
        async with asyncio.timeout(30):
            while not warnings:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        (text,) = warnings
        assert text.startswith("stream orders on the engine memory: retention fails")
        assert "no permission to trim below" in text
        assert reports == []
        monkeypatch.setattr(log, "trim", trim)
        async with asyncio.timeout(30):
            while not reports or (await kept.bounds()).first < 40:
                await asyncio.sleep(0.01)
        assert (await kept.bounds()).first == 40
        await asyncio.sleep(0.1)
        assert reports == ["stream orders on the engine memory: retention works again"]
        assert len(warnings) == 1
        await host.close()

    asyncio.run(story())


def test_retention_says_nothing_of_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.engines.shared.retaining.RETENTION_INTERVAL_S", 0.01)
    warnings: list[str] = []

    async def story() -> None:
        log = MemoryLog()
        context = EngineContext(warn=warnings.append)
        kept = SharedStream(log, 0.05, Retention(records=10), context=context)

        async def fail() -> tuple[int, int]:
            raise ServerDown("no answer")

        monkeypatch.setattr(log, "ends", fail)
        async with asyncio.timeout(30):
            while kept.outage is None:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert warnings == [], "the outage is told of by who has the stream open"
        await kept.close()

    asyncio.run(story())
