"""Where a subscription starts, and that it runs on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import Raises, promise
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin
from cogwork.plugin.engine.errors import BeyondEnd

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Reader, Trial

__all__ = ("StartTests",)


class StartTests(Kit):
    """Where a subscription starts, and that it runs on."""

    @promise
    async def test_starts_without_a_number(self, trial: Trial) -> None:
        """First, last and next, in an empty stream and in one with records."""
        for origin in (Origin.FIRST, Origin.LAST, Origin.NEXT, Origin.SNAPSHOT):
            reader = await trial.reader(origin).catch_up()
            assert (reader.records, reader.caught_up) == ([], [0])
            await reader.close()
        await trial.append(b"a", b"b")
        for origin, expected in (
            (Origin.FIRST, [(0, b"a"), (1, b"b")]),
            (Origin.LAST, [(1, b"b")]),
            (Origin.NEXT, []),
        ):
            reader = await trial.reader(origin).catch_up()
            assert (reader.records, reader.caught_up) == (expected, [2])
        await trial.append(b"c")
        assert (await reader.read_to(3)) == [(2, b"c")]

    @promise
    async def test_an_offset_above_the_end_is_told(self, trial: Trial) -> None:
        """The next offset itself is none."""
        await trial.append(b"a")
        assert list(await trial.engine.read(1)) == []
        assert (await trial.reader(FromOffset(1)).catch_up()).caught_up == [1]
        with Raises(BeyondEnd):
            await trial.engine.read(2)
        with Raises(BeyondEnd):
            await trial.reader(FromOffset(2)).step()

    @promise(needs="seeks_time")
    async def test_starts_at_a_time(self, trial: Trial) -> None:
        """At the first record of that time or later."""
        assert await trial.engine.offset_at(0) == 0
        for i in range(3):
            await trial.append(b"%d" % i)
            await asyncio.sleep(0.02)
        times = [chunk.time_ms for chunk in (await trial.reader().catch_up()).chunks]
        assert times == sorted(times)
        assert times[0] > 1_500_000_000_000
        for time_ms in (0, times[0], times[1], times[2], times[0] + 1, times[2] + 1):
            expected = sum(each < time_ms for each in times)
            assert await trial.engine.offset_at(time_ms) == expected
            reader = await trial.reader(FromTime(time_ms)).catch_up()
            assert [offset for offset, _ in reader.records] == list(range(expected, 3))

    @promise
    async def test_a_late_start_runs_on_as_if_it_had_always_been_there(self, trial: Trial) -> None:
        """History and live tail without a gap or a repetition, while others append."""
        early = await trial.reader().catch_up()
        await trial.fill(50)

        async def go_on() -> None:
            for i in range(100):
                await trial.append(b"live %d" % i, b"and %d" % i)

        going_on = asyncio.create_task(go_on())
        late: list[Reader] = []
        for start in (Origin.FIRST, FromOffset(10), Origin.FIRST, FromOffset(49)):
            late.append(trial.reader(start))
            await late[-1].step()
        await going_on
        expected = await early.read_to(250)
        for reader in late:
            await reader.read_to(250)
            assert reader.records == expected[reader.records[0][0] :]
            assert reader.records[0][0] in (0, 10, 49)

    @promise
    async def test_catching_up_is_told_once(self, trial: Trial) -> None:
        """After the last record there was, and never again."""
        await trial.append(b"a", b"b")
        reader = await trial.reader().catch_up()
        assert reader.caught_up == [2]
        assert reader.records == [(0, b"a"), (1, b"b")]
        for i in range(3):
            await trial.append(b"later")
            await reader.read_to(3 + i)
        assert reader.caught_up == [2]
