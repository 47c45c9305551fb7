"""Giving up old records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import Raises, promise
from cogwork.plugin.engine.contract import FromOffset, Origin
from cogwork.plugin.engine.errors import Truncated

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("TrimmingTests",)


class TrimmingTests(Kit):
    """Giving up old records."""

    @promise(needs="trims")
    async def test_what_is_trimmed_is_gone(self, trial: Trial) -> None:
        """And says where the stream begins; offsets go on."""
        count = self.records_to_trim
        await trial.fill(count, size_bytes=1024)
        await trial.engine.trim(0)
        before = await trial.engine.bounds()
        assert before.first == 0
        await trial.engine.trim(count)
        bounds = await trial.engine.bounds()
        assert 0 < bounds.first <= count
        assert bounds.next == count
        if before.size_bytes is not None:
            assert bounds.size_bytes is not None
            assert bounds.size_bytes < before.size_bytes
            assert before.size_bytes >= count * 1024
        with Raises(Truncated) as caught:
            await trial.engine.read(0)
        assert caught.found.first == bounds.first
        with Raises(Truncated) as caught:
            await trial.reader(FromOffset(bounds.first - 1)).step()
        assert caught.found.first == bounds.first
        await trial.restart()
        assert await trial.engine.bounds() == bounds
        assert (await trial.append(b"next")).first_offset == count
        reader = await trial.reader().catch_up()
        assert [each for each, _ in reader.records] == list(range(bounds.first, count + 1))
        if trial.engine.capabilities.seeks_time:
            assert await trial.engine.offset_at(0) == bounds.first

    @promise(needs="trims")
    async def test_a_batch_of_which_some_is_kept_stays_readable(self, trial: Trial) -> None:
        """Be it the first of all: what retention still wants is there after a restart, too."""
        records = [b"%d" % number for number in range(10)]
        await trial.append(*records)
        await trial.engine.trim(6)
        await trial.restart()
        bounds = await trial.engine.bounds()
        assert bounds.first <= 6
        assert bounds.next == len(records)
        reader = await trial.reader().catch_up()
        assert reader.records[-4:] == list(enumerate(records))[-4:]

    @promise(needs="trims")
    async def test_what_has_given_up_everything_goes_on(self, trial: Trial) -> None:
        """Where nothing is left there is no last record, and the next one comes to everybody."""
        count = self.records_to_trim
        await trial.fill(count, size_bytes=1024)
        await trial.engine.trim(count + 1000)
        bounds = await trial.engine.bounds()
        assert bounds.next == count
        readers = [trial.reader(origin) for origin in (Origin.FIRST, Origin.LAST, Origin.NEXT)]
        for reader in readers:
            await reader.catch_up()
        if bounds.first == count:
            assert [reader.records for reader in readers] == [[], [], []]
        assert (await trial.append(b"next")).first_offset == count
        for reader in readers:
            assert (await reader.read_to(count + 1))[-1] == (count, b"next")

    @promise(needs="trims")
    async def test_a_subscriber_that_was_too_slow_is_told(self, trial: Trial) -> None:
        """It never skips what was given up in silence."""
        count = max(self.records_to_trim, 10)
        await trial.fill(count, size_bytes=1024)
        reader = trial.reader()
        await reader.step()
        await trial.engine.trim(count)
        await trial.append(b"after")
        first = (await trial.engine.bounds()).first
        told: Truncated | None = None
        try:
            await reader.read_to(count + 1)
        except Truncated as truncated:
            told = truncated
        if told is not None:
            assert told.first == first
            assert (reader.next or 0) < first
