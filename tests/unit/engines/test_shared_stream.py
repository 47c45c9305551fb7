"""Streams on a server's log, on a server that has every trouble there is."""

from __future__ import annotations

import asyncio
import random

import pytest
from memory_log import MemoryHost, MemoryLog

from cogwork.engines.shared.server import Gone, Moved, ServerDown, ServerRefused
from cogwork.engines.shared.stream import SharedStream
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import CaughtUp, FromOffset, Origin, Snapshot
from cogwork.plugin.engine.errors import Malformed, RecordsLost, Unavailable, Unknown

BATCHES = 25
SEEDS = 30


class TestComparing(EngineConformance):
    compares = True

    @pytest.fixture(autouse=True)
    def _logs(self) -> None:
        self.logs: dict[str, MemoryLog] = {}

    def make_host(self) -> MemoryHost:
        host = MemoryHost()
        host.compares = self.compares
        host.logs = self.logs
        return host


class TestNotComparing(TestComparing):
    compares = False


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that lost the last entry notices soon."""
    monkeypatch.setattr("cogwork.engines.shared.stream.WAIT_S", 0.02)
    for module in ("stream", "writer"):
        for name in ("BACK_OFF_FIRST_S", "BACK_OFF_MAX_S"):
            monkeypatch.setattr(f"cogwork.engines.shared.{module}.{name}", 0.001)


async def write(stream: SharedStream, producer: bytes, chance: random.Random) -> None:
    for index in range(BATCHES):
        records = [b"%s/%d" % (producer, index * 3 + i) for i in range(3)]
        while True:
            try:
                await stream.append(Batch.of(records, producer, index * 3))
                break
            except (Unavailable, Unknown):
                await asyncio.sleep(0)
        if chance.random() < 0.1:
            await asyncio.sleep(0.001)


async def read(stream: SharedStream, start: int, end: int) -> list[bytes]:
    subscription = stream.subscribe(FromOffset(start))
    records: list[bytes] = []
    while len(records) < end - start:
        found = await anext(subscription)
        if isinstance(found, Chunk):
            assert found.offset == start + len(records)
            records.extend(found.batch.records())
    await subscription.aclose()
    return records


@pytest.mark.parametrize("compares", [True, False])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_troubled_server_loses_and_repeats_nothing(seed: int, compares: bool) -> None:
    async def story() -> None:
        chance = random.Random(seed)
        log = MemoryLog(compares, chance)
        streams = [SharedStream(log, timeout_s=5.0) for _ in range(3)]
        log.trouble = 0.15
        total = 3 * BATCHES * 3
        readers = [asyncio.create_task(read(each, 0, total)) for each in streams]
        names = [b"a", b"b", b"c"]
        await asyncio.gather(
            *(write(each, name, chance) for each, name in zip(streams, names, strict=True))
        )
        early = await asyncio.gather(*readers)
        for stream in streams:
            start = chance.randrange(total)
            assert await read(stream, start, total) == early[0][start:]
        assert early[0] == early[1] == early[2]
        for name in names:
            mine = [each for each in early[0] if each.startswith(name)]
            assert mine == [b"%s/%d" % (name, i) for i in range(BATCHES * 3)]
        log.trouble = 0.0
        assert (await streams[0].bounds()).next == total
        for stream in streams:
            await stream.close()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_nothing_is_refused_for_a_state_that_could_not_be_refreshed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        log = MemoryLog()
        stream, other = SharedStream(log), SharedStream(log)
        await stream.append(Batch.of([b"0"], b"p", 0))
        await other.append(Batch.of([b"1"], b"p", 1))
        ends, failures = log.ends, [ServerDown("no answer in time")]

        async def fail_once() -> tuple[int, int]:
            if failures:
                raise failures.pop()
            return await ends()

        monkeypatch.setattr(log, "ends", fail_once)
        assert (await stream.append(Batch.of([b"2"], b"p", 2))).first_offset == 2
        assert failures == []

    asyncio.run(asyncio.wait_for(story(), 60))


class ForgetfulLog(MemoryLog):
    """Appends one entry without an answer, and then has a trouble of another kind once."""

    def __init__(self, trouble: Exception | None) -> None:
        super().__init__()
        self.is_lossy = False
        self._trouble = trouble
        self._is_stale = False

    async def append(self, expected: int, entry: bytes) -> int:
        if self.is_lossy:
            self.is_lossy = False
            self.put(entry)
            self._is_stale = True
            raise ServerDown("the answer was lost")
        if self._is_stale:
            self._is_stale = False
            raise self._trouble or Moved(1)
        return await super().append(expected, entry)


@pytest.mark.parametrize("trouble", [ServerRefused("no"), None], ids=["refused", "outdated"])
def test_what_is_in_doubt_is_told_so_and_not_appended_again(trouble: Exception | None) -> None:
    async def story() -> None:
        log = ForgetfulLog(trouble)
        stream = SharedStream(log)
        for record in (b"0", b"1"):
            await stream.append(Batch.of([record]))
        log.is_lossy = True
        answers = await asyncio.gather(
            *(stream.append(Batch.of([record])) for record in (b"2", b"3")),
            return_exceptions=True,
        )
        assert [type(each) for each in answers] == [Unknown, Unknown]
        assert (await stream.append(Batch.of([b"4"]))).first_offset == 4
        assert await read(stream, 0, 5) == [b"0", b"1", b"2", b"3", b"4"]
        await stream.close()

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize("compares", [True, False])
def test_what_strangers_write_and_what_comes_twice_is_passed_over(compares: bool) -> None:
    async def story() -> None:
        log = MemoryLog(compares)
        stream = SharedStream(log)
        for i in range(5):
            await stream.append(Batch.of([b"%d" % i], b"p", i))
            log.put(b"not ours")
            log.put(log.entries[1])
            log.put(log.entries[log.last - 2])
        assert await read(stream, 0, 5) == [b"0", b"1", b"2", b"3", b"4"]
        assert await read(SharedStream(log), 3, 5) == [b"3", b"4"]
        other = SharedStream(log)
        assert (await other.append(Batch.of([b"4"], b"p", 4))).is_repeated
        assert (await other.bounds()).next == 5

    asyncio.run(story())


def test_a_damaged_entry_is_told_and_not_passed_over() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        for i in range(5):
            await stream.append(Batch.of([b"%d" % i]))
        log.entries[3] = log.entries[3][:-1] + b"?"
        subscription = stream.subscribe(Origin.FIRST)
        for _ in range(2):
            await anext(subscription)
        with pytest.raises(Malformed, match="behind position 2 is damaged"):
            await anext(subscription)

    asyncio.run(story())


def test_a_server_that_has_lost_what_was_read_is_told() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        for i in range(5):
            await stream.append(Batch.of([b"%d" % i]))
        subscription = stream.subscribe(Origin.FIRST)
        while not isinstance(await anext(subscription), CaughtUp):
            pass
        del log.entries[5]
        log.last = 4
        other = SharedStream(log)
        await other.append(Batch.of([b"another"]))
        await other.append(Batch.of([b"and one more"]))
        with pytest.raises(RecordsLost, match="lost records from offset 4 on") as told:
            await anext(subscription)
        assert told.value.end == 4
        assert (await stream.append(Batch.of([b"more"]))).first_offset == 6
        assert await read(stream, 4, 7) == [b"another", b"and one more", b"more"]

    asyncio.run(story())


def lose(log: MemoryLog, position: int) -> None:
    """Lose all that is newer."""
    for each in [each for each in log.entries if each > position]:
        del log.entries[each]
    log.last = position


def test_how_much_of_what_was_read_is_lost_is_known_where_it_is_little_and_told_to_all() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        subscription = stream.subscribe(Origin.NEXT)
        assert isinstance(await anext(subscription), CaughtUp)
        for i in range(300):
            await stream.append(Batch.of([b"%d" % i]))
            await anext(subscription)
        for position, known in ((280, 280), (270, 270), (40, 1)):
            lose(log, position)
            with pytest.raises(RecordsLost) as told:
                await anext(subscription)
            assert known <= told.value.end <= position, "all below is as it was"
            with pytest.raises(StopAsyncIteration):
                await anext(subscription)
            subscription = stream.subscribe(Origin.FIRST)
            while not isinstance(await anext(subscription), CaughtUp):
                pass

    asyncio.run(story())


def test_a_loss_behind_which_entries_lost_their_race_is_no_damage() -> None:
    async def story() -> None:
        log = MemoryLog(compares=False)
        stream = SharedStream(log)
        for i in range(5):
            await stream.append(Batch.of([b"%d" % i]))
        subscription = stream.subscribe(Origin.FIRST)
        while not isinstance(await anext(subscription), CaughtUp):
            pass
        lose(log, 3)
        other = SharedStream(log)
        await other.append(Batch.of([b"another"]))
        log.put(log.entries[4])
        for _ in range(2):
            await other.append(Batch.of([b"and one more"]))
        with pytest.raises(RecordsLost, match="lost records from offset 3 on"):
            await anext(subscription)

    asyncio.run(story())


def test_a_stream_that_was_lost_is_not_begun_anew_behind_its_users() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        await stream.append(Batch.of([b"x"]))
        log.entries.clear()
        log.last = 0
        with pytest.raises(Unavailable, match="deleted, or lost"):
            await stream.append(Batch.of([b"y"]))

    asyncio.run(story())


def test_producers_are_remembered_by_the_checkpoint_when_all_else_is_trimmed() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        # So many that their checkpoint has several parts.
        for i in range(300):
            await stream.append(Batch.of([b"x"], b"producer %d" % i))
        await stream.save_snapshot(Snapshot(7, bytes(range(256)) * 40))
        await stream.trim(300)
        assert (await stream.bounds()).first == 300
        assert len(log.entries) < 40
        later = SharedStream(log)
        assert (await later.append(Batch.of([b"x"], b"producer 17"))).is_repeated
        assert (await later.append(Batch.of([b"y"], b"producer 17", 1))).first_offset == 300
        assert await later.load_snapshot() == Snapshot(7, bytes(range(256)) * 40)

    asyncio.run(story())


def test_a_server_that_refuses_what_is_appended_is_told_of_while_somebody_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.engines.shared.writer.REFUSAL_S", 0.1)

    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        await stream.append(Batch.of([b"x"]))
        append = log.append

        async def refuse(expected: int, entry: bytes) -> int:
            raise ServerRefused(f"no permission to write {len(entry)} octets behind {expected}")

        monkeypatch.setattr(log, "append", refuse)
        for _ in range(3):
            with pytest.raises(Unavailable, match="no permission"):
                await stream.append(Batch.of([b"x"]))
            assert stream.outage is not None
            assert stream.outage.startswith("no permission to write")
        await asyncio.sleep(0.15)
        assert stream.outage is None, "nobody knows whether it still does"
        with pytest.raises(Unavailable):
            await stream.append(Batch.of([b"x"]))
        monkeypatch.setattr(log, "append", append)
        await stream.append(Batch.of([b"y"]))
        assert stream.outage is None
        await stream.close()

    asyncio.run(story())


def test_a_server_that_is_back_without_the_stream_is_not_said_to_be_away() -> None:
    async def story() -> None:
        log = AwayLog()
        stream = SharedStream(log, 1.0)
        await stream.append(Batch.of([b"x"]))
        log.fault = ServerDown("no answer")
        with pytest.raises(Unavailable, match="no answer"):
            await stream.bounds()
        assert stream.outage is not None
        assert "no answer; start the server" in stream.outage
        log.fault = Gone()
        with pytest.raises(Unavailable, match="deleted, or lost"):
            await stream.bounds()
        assert stream.outage is None, "whoever asks is told"
        await stream.close()

    asyncio.run(story())


class AwayLog(MemoryLog):
    """Has a fault, as long as a test says so."""

    fault: Exception | None = None

    async def ends(self) -> tuple[int, int]:
        if self.fault is not None:
            raise self.fault
        return await super().ends()
