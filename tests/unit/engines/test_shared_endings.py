"""What becomes of what waits for a server when its stream ends here, or its container does."""

from __future__ import annotations

import asyncio

import pytest
from memory_log import MemoryLog

from cogwork.engines.shared import writer
from cogwork.engines.shared.entry import Entry, Kind
from cogwork.engines.shared.server import ServerDown
from cogwork.engines.shared.stream import SharedStream
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import ReleasingEngine
from cogwork.plugin.engine.errors import Unavailable, Unknown


class SilentLog(MemoryLog):
    """One that takes what is appended, once it is away, and says nothing any more."""

    is_silent = False

    async def append(self, expected: int, entry: bytes) -> int:
        if self.is_silent:
            await asyncio.sleep(3600)
        return await super().append(expected, entry)


class AbsentLog(MemoryLog):
    """One that is away."""

    async def ends(self) -> tuple[int, int]:
        raise ServerDown("no route")


def test_what_was_never_sent_is_given_up_and_what_was_is_in_doubt() -> None:
    async def story() -> None:
        log = SilentLog()
        stream = SharedStream(log)
        await stream.append(Batch.of([b"0"]))
        log.is_silent = True
        sent = stream.append(Batch.of([b"1"]))
        await asyncio.sleep(0.01)
        unsent = [stream.append(Batch.of([b"2"])), stream.append(Batch.of([b"3"]))]
        assert isinstance(stream, ReleasingEngine)
        stream.release_unsent("it stops")
        for each in unsent:
            with pytest.raises(Unavailable, match="it stops"):
                await asyncio.wait_for(each, 1)
        await stream.end("it was closed")
        with pytest.raises(Unknown, match="it was closed"):
            await sent

    asyncio.run(story())


def test_what_waits_for_a_server_that_is_away_is_given_up() -> None:
    async def story() -> None:
        stream = SharedStream(AbsentLog())
        answer = stream.append(Batch.of([b"1"]))
        await asyncio.sleep(0.05)
        stream.release_unsent("it stops")
        with pytest.raises(Unavailable, match="it stops"):
            await asyncio.wait_for(answer, 1)
        await stream.close()

    asyncio.run(story())


class LeavingLog(MemoryLog):
    """One that goes away once it has a checkpoint."""

    is_gone = is_closed = False

    async def append(self, expected: int, entry: bytes) -> int:
        if self.is_gone:
            raise ServerDown("no route")
        position = await super().append(expected, entry)
        if Entry.from_bytes(entry).kind is Kind.CHECKPOINT:
            self.is_gone = True
        return position

    async def ends(self) -> tuple[int, int]:
        if self.is_gone:
            raise ServerDown("no route")
        return await super().ends()

    async def close(self) -> None:
        self.is_closed = True


def test_a_checkpoint_that_failed_keeps_no_stream_from_being_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 1)
        log = LeavingLog()
        stream = SharedStream(log)
        await stream.append(Batch.of([b"1"]))
        while not log.is_gone:
            await asyncio.sleep(0.001)
        waiting = stream.append(Batch.of([b"2"]))
        await asyncio.sleep(0.05)
        await stream.close()
        assert log.is_closed
        with pytest.raises((Unavailable, Unknown), match="closed here"):
            await asyncio.wait_for(waiting, 1)

    asyncio.run(story())


class DoubtfulLog(MemoryLog):
    """One that answers everything but an append, of which it is not known what becomes."""

    async def append(self, expected: int, entry: bytes) -> int:
        del expected, entry
        raise ServerDown("no answer")


def test_what_was_given_up_is_not_kept_while_a_server_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "BACK_OFF_FIRST_S", 0.001)

    async def story() -> None:
        stream = SharedStream(DoubtfulLog(), timeout_s=0.01)
        for number in range(10):
            with pytest.raises((Unavailable, Unknown), match=r"no answer|does not answer"):
                await stream.append(Batch.of([b"%d" % number]))
        await asyncio.sleep(0.01)
        assert not stream._writer._flights
        await stream.close()

    asyncio.run(story())
