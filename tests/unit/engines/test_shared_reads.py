"""Reads of a stream on a server that go on where one was left, and what the server lost between."""

from __future__ import annotations

import asyncio

import pytest
from memory_log import MemoryLog

from cogwork.engines.shared import scan as scan_module
from cogwork.engines.shared.scan import Scan
from cogwork.engines.shared.search import Search
from cogwork.engines.shared.stream import SharedStream
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import RecordsLost, Truncated

RECORD_BYTES = len(Batch.of([b"0"]).payload)


@pytest.fixture(autouse=True)
def _distrust(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment is a while."""
    monkeypatch.setattr(scan_module, "TRUSTED_S", 0.0)


async def filled(log: MemoryLog, count: int) -> SharedStream:
    stream = SharedStream(log)
    for i in range(count):
        await stream.append(Batch.of([b"%d" % i]))
    return stream


async def lose(log: MemoryLog, position: int, *others: bytes) -> None:
    """Have the log lose all that is newer, and get other records."""
    for each in [each for each in log.entries if each > position]:
        del log.entries[each]
    log.last = position
    for other in others:
        await SharedStream(log).append(Batch.of([other]))


async def read(stream: SharedStream, offset: int, count: int) -> list[bytes]:
    chunks = await stream.read(offset, count * RECORD_BYTES)
    return [record for chunk in chunks for record in chunk.batch.records()]


def test_who_goes_on_reading_gets_nothing_that_was_lost_meanwhile() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = await filled(log, 5)
        assert await read(stream, 0, 1) == [b"0"]
        await lose(log, 3, b"another")
        assert await read(stream, 1, 9) == [b"1", b"2", b"another"]

    asyncio.run(story())


def test_who_has_read_what_was_lost_is_told_as_he_goes_on() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = await filled(log, 5)
        assert await read(stream, 0, 4) == [b"0", b"1", b"2", b"3"]
        await lose(log, 2, b"a", b"b", b"c")
        with pytest.raises(RecordsLost) as told:
            await read(stream, 4, 9)
        assert told.value.end == 2
        assert await read(stream, 2, 9) == [b"a", b"b", b"c"]

    asyncio.run(story())


def test_what_is_there_as_it_was_is_read_on_from_where_it_was_left() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = await filled(log, 5)
        assert await read(stream, 0, 1) == [b"0"]
        (kept,) = stream._scans.values()
        assert await read(stream, 1, 2) == [b"1", b"2"]
        assert list(stream._scans.values()) == [kept]

    asyncio.run(story())


def test_what_was_given_up_meanwhile_is_not_taken_for_lost() -> None:
    async def story() -> None:
        log = MemoryLog()
        await filled(log, 8)
        scan = Scan(log, Search(log), 0)
        await scan.more(0.1)
        assert scan.ready
        await scan.check()
        await log.trim(7)
        with pytest.raises(Truncated) as told:
            await scan.check()
        assert told.value.first == 6

    asyncio.run(story())
