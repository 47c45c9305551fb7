"""Nobody stalls anybody, and memory is bounded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import PRODUCER, promise
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Appended, Origin
from cogwork.plugin.engine.errors import Busy, Unavailable, Unknown

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("LimitTests",)


class LimitTests(Kit):
    """Nobody stalls anybody, and memory is bounded."""

    @promise
    async def test_a_slow_subscriber_stalls_nobody(self, trial: Trial) -> None:
        """It reads everything later, in order."""
        slow, fast = trial.reader(), trial.reader()
        await asyncio.gather(slow.catch_up(), fast.catch_up())
        for _ in range(8):
            await trial.append(*[bytes(1000)] * 250)
        await fast.read_to(2000)
        assert slow.records == []
        assert await slow.read_to(2000) == fast.records

    @promise
    async def test_what_is_too_much_is_refused(self, trial: Trial) -> None:
        """An append that is not refused is there, one that is refused is not.

        A server that takes too long to answer leaves some in doubt: these may be there.
        """
        size_bytes = min(256 << 10, trial.engine.capabilities.batch_bytes_max // 2)
        batches = [Batch.of([b"%03d" % i + bytes(size_bytes)]) for i in range(100)]
        calls = [asyncio.ensure_future(trial.engine.append(each)) for each in batches]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        expected: dict[int, bytes] = {}
        doubtful: set[bytes] = set()
        for batch, answer in zip(batches, answers, strict=True):
            record = next(batch.records())
            if isinstance(answer, Appended):
                assert answer.first_offset is not None
                expected[answer.first_offset] = record
            elif isinstance(answer, Unknown):
                doubtful.add(record)
            else:
                assert isinstance(answer, Busy | Unavailable), answer
        found = dict(await trial.records())
        assert {at: found[at] for at in found if found[at] not in doubtful} == expected
        await trial.append(b"goes on")

    @promise
    async def test_cancelling_harms_nobody(self, trial: Trial) -> None:
        """An append that is cancelled has happened or not; a subscriber that is, is gone."""
        reader = await trial.reader().catch_up()
        waiting = asyncio.ensure_future(trial.reader(Origin.NEXT).catch_up())
        gone = asyncio.ensure_future(trial.reader().read_to(1))
        appending = asyncio.ensure_future(trial.engine.append(Batch.of([b"x"], PRODUCER)))
        await waiting
        for each in (gone, appending):
            each.cancel()
        await asyncio.gather(gone, appending, return_exceptions=True)
        await trial.append(b"x", producer=PRODUCER)
        await trial.append(b"y", producer=PRODUCER, sequence=1)
        assert await reader.read_to(2) == [(0, b"x"), (1, b"y")]
