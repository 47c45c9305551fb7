"""Streams on a server whose log is not what it was: it lost entries, or was trimmed meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from memory_log import MemoryLog

from cogwork.engines.shared.chain import Gap
from cogwork.engines.shared.entry import link_of
from cogwork.engines.shared.server import Moved
from cogwork.engines.shared.stream import SharedStream
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import Unavailable, Unknown

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from cogwork.plugin.engine.contract import Appended


def run(story: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 20))


async def append(stream: SharedStream, record: bytes) -> Appended:
    return await stream.append(Batch.of([record]))


async def records(log: MemoryLog) -> list[bytes]:
    """Read all with a new reader."""
    stream = SharedStream(log)
    try:
        return [each for chunk in await stream.read(0) for each in chunk.batch.records()]
    finally:
        await stream.close()


def lose(log: MemoryLog, position: int) -> None:
    """Lose all that is newer."""
    for each in [each for each in log.entries if each > position]:
        del log.entries[each]
    log.last = position


class HastyLog(MemoryLog):
    """Compares with what it is about to store, and says only then that it has it."""

    def __init__(self) -> None:
        super().__init__()
        self.hasty: bytes | None = None
        self.looks = 3

    async def append(self, expected: int, entry: bytes) -> int:
        if self.hasty is not None:
            raise Moved(self.last + 1)
        return await super().append(expected, entry)

    async def ends(self) -> tuple[int, int]:
        found = await super().ends()
        self.looks -= self.hasty is not None
        if self.hasty is not None and self.looks < 0:
            self.put(self.hasty)
            self.hasty = None
        return found


def test_what_a_server_has_told_of_and_not_stored_yet_is_no_hole() -> None:
    async def story() -> None:
        log = HastyLog()
        stream, other = SharedStream(log), SharedStream(log)
        for record in (b"0", b"1"):
            await append(stream, record)
        await append(other, b"2")
        await stream._writer.refreshed()
        await append(other, b"3")
        log.hasty = log.entries[4]
        lose(log, 3)
        assert (await append(stream, b"4")).first_offset == 4
        assert (await append(other, b"5")).first_offset == 5
        assert await records(log) == [b"0", b"1", b"2", b"3", b"4", b"5"]

    run(story())


@pytest.mark.parametrize("compares", [True, False])
def test_what_was_lost_and_filled_up_again_is_noticed_after_an_outage(compares: bool) -> None:
    async def story() -> None:
        log = MemoryLog(compares)
        stream = SharedStream(log)
        for i in range(5):
            await append(stream, b"%d" % i)
        lose(log, 3)
        other = SharedStream(log)
        for i in range(2):
            await append(other, b"other %d" % i)
        stream._writer.suspect()
        assert (await append(stream, b"mine")).first_offset == 5
        assert (await append(other, b"more")).first_offset == 6
        assert await records(log) == [b"0", b"1", b"2", b"other 0", b"other 1", b"mine", b"more"]

    run(story())


def test_where_a_server_lost_entries_nothing_is_sent_to_follow_them() -> None:
    async def story() -> None:
        log = MemoryLog(compares=False)
        stream = SharedStream(log)
        for i in range(5):
            await append(stream, b"%d" % i)
        lose(log, 3)
        stream._writer.suspect()
        assert (await append(stream, b"more")).first_offset == 3
        assert (log.last, await records(log)) == (4, [b"0", b"1", b"2", b"more"])

    run(story())


def test_what_follows_an_entry_of_another_log_is_passed_over() -> None:
    async def story() -> None:
        log = MemoryLog(compares=False)
        stream = SharedStream(log)
        for i in range(5):
            await append(stream, b"%d" % i)
        stray = await stray_entry(log)
        lose(log, 0)
        log.put(stray)
        other = SharedStream(log)
        assert (await append(other, b"new 0")).first_offset == 0
        assert (await append(stream, b"mine")).first_offset == 1
        assert (await append(other, b"new 1")).first_offset == 2
        assert await records(log) == [b"new 0", b"mine", b"new 1"]
        assert (await append(SharedStream(log), b"new 2")).first_offset == 3

    run(story())


async def stray_entry(log: MemoryLog) -> bytes:
    """Return an entry that would follow all there are."""
    await append(SharedStream(log), b"stray")
    entry = log.entries[log.last]
    lose(log, log.last - 1)
    return entry


class TippedLog(MemoryLog):
    """Compares the last entry's id, too."""

    async def append(self, expected: int, entry: bytes) -> int:
        if self.last and link_of(entry)[2] != link_of(self.entries[self.last])[0]:
            raise Moved(self.last)
        return await super().append(expected, entry)


def test_who_follows_another_entry_of_the_same_position_goes_back() -> None:
    async def story() -> None:
        log = TippedLog()
        stream = SharedStream(log, timeout_s=3)
        for i in range(3):
            await append(stream, b"%d" % i)
        lose(log, 2)
        other = SharedStream(log)
        await append(other, b"other")
        assert (await append(stream, b"mine")).first_offset == 3
        assert await records(log) == [b"0", b"1", b"other", b"mine"]

    run(story())


def test_what_may_count_where_entries_were_lost_is_in_doubt_and_not_sent_again() -> None:
    async def story() -> None:
        log = MemoryLog(compares=False)
        stream = SharedStream(log)
        await append(stream, b"0")
        log.put(b"not ours")
        await stream._writer.refreshed()
        lose(log, 1)
        with pytest.raises(Unknown, match="the server has lost entries"):
            await append(stream, b"1")
        assert (await append(stream, b"2")).first_offset == 2
        assert await records(log) == [b"0", b"1", b"2"]

    run(story())


def test_a_gap_says_what_it_is() -> None:
    assert str(Gap()) == "an entry that another one follows is missing or damaged"


class TrimmedLog(MemoryLog):
    """Is trimmed by somebody before one of the fetches of somebody else."""

    def __init__(self) -> None:
        super().__init__()
        self.fetches = -1
        self.trimmer: SharedStream | None = None

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        self.fetches -= 1
        trimmer = self.trimmer
        if self.fetches == 0 and trimmer is not None:
            self.trimmer = None
            await trimmer.trim((await trimmer.bounds()).next - 1)
        return await super().fetch(position)


@pytest.mark.parametrize(
    ("fetches", "checkpoints"),
    [*((each, 0) for each in range(1, 8)), *((i, 1) for i in range(1, 5))],
)
def test_who_appended_what_is_known_to_who_opens_while_others_trim(
    fetches: int, checkpoints: int
) -> None:
    async def story() -> None:
        log = TrimmedLog()
        stream = SharedStream(log)
        await stream.append(Batch.of([b"x"], b"p", 0))
        for _ in range(5):
            await append(stream, b"filler")
        for _ in range(checkpoints):
            await stream.trim(3)
            await append(stream, b"filler")
        log.trimmer, log.fetches = stream, fetches
        opened = SharedStream(log)
        assert (await opened.append(Batch.of([b"x"], b"p", 0))).is_repeated
        assert log.trimmer is None, "it was trimmed meanwhile"
        assert (await append(opened, b"more")).first_offset == 6 + checkpoints

    run(story())


def test_who_appended_what_is_known_to_who_opens_right_after_a_trim() -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        await stream.append(Batch.of([b"x"], b"p", 0))
        for _ in range(5):
            await append(stream, b"filler")
        await stream.trim(3)
        opened = SharedStream(log)
        assert (await opened.append(Batch.of([b"x"], b"p", 0))).is_repeated

    run(story())


def test_a_log_that_is_trimmed_without_end_is_begun_again_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        log = MemoryLog()
        stream = SharedStream(log)
        for i in range(5):
            await append(stream, b"%d" % i)
        firsts = itertools.cycle(range(1, 5))
        fetch = log.fetch

        async def ends() -> tuple[int, int]:
            return next(firsts), log.last

        async def lack(position: int) -> tuple[int, bytes] | None:
            return await fetch(position) if position >= log.last else None

        monkeypatch.setattr(log, "ends", ends)
        monkeypatch.setattr(log, "fetch", lack)
        with pytest.raises(Unavailable, match="trimmed faster than it can be read"):
            await append(SharedStream(log, timeout_s=3.0), b"more")

    run(story())
