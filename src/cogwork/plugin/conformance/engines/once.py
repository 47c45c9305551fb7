"""Once, and one producer's in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import PRODUCER, Raises, promise
from cogwork.plugin.engine.batch import PRODUCER_BYTES_MAX, Batch
from cogwork.plugin.engine.contract import Bounds
from cogwork.plugin.engine.errors import InvalidAppend, OutOfSequence, SequenceReused

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("OnceTests",)


class OnceTests(Kit):
    """Once, and one producer's in order."""

    @promise
    async def test_without_a_producer_nobody_counts(self, trial: Trial) -> None:
        """The same records twice are twice there."""
        assert [(await trial.append(b"x")).first_offset for _ in range(2)] == [0, 1]
        assert await trial.records() == [(0, b"x"), (1, b"x")]

    @promise
    async def test_a_record_is_given_out_once(self, trial: Trial) -> None:
        """Whatever a producer repeats, here or elsewhere, at once or later."""
        elsewhere = await trial.open_elsewhere()
        for i in range(3):
            batch = Batch.of([b"%d" % i, b"%d'" % i], PRODUCER, i * 2)
            await asyncio.gather(trial.engine.append(batch), elsewhere.append(batch))
            await trial.append(b"between")
        await elsewhere.append(Batch.of([b"0", b"0'"], PRODUCER, 0))
        await trial.append(b"last")
        bounds = await trial.engine.bounds()
        reader = trial.reader()
        await reader.read_to(bounds.next)
        mine = [each for _, each in reader.records if each not in (b"between", b"last")]
        assert mine == [b"0", b"0'", b"1", b"1'", b"2", b"2'"]

    @promise(needs="deduplicates")
    async def test_a_repetition_gets_the_old_answer(self, trial: Trial) -> None:
        """Also after the stream was closed and opened again."""
        await trial.append(b"other")
        first = await trial.append(b"a", b"b", producer=PRODUCER)
        again = await trial.append(b"a", b"b", producer=PRODUCER)
        assert (again.first_offset, again.is_repeated) == (first.first_offset, True) == (1, True)
        await trial.restart()
        again = await trial.append(b"a", b"b", producer=PRODUCER)
        assert (again.first_offset, again.is_repeated) == (1, True)
        assert (await trial.append(b"c", producer=PRODUCER, sequence=2)).first_offset == 3
        assert await trial.engine.bounds() == Bounds(0, 4)

    @promise
    async def test_a_producer_need_not_wait_for_answers(self, trial: Trial) -> None:
        """Many appends under way at once, and all of them again, are there once and in order."""
        batches = [Batch.of([b"%d" % i, b"%d'" % i], PRODUCER, i * 2) for i in range(30)]
        expected = [(i, b"%d" % (i // 2) + b"'" * (i % 2)) for i in range(60)]
        answers = await asyncio.gather(*[trial.engine.append(each) for each in batches])
        assert [each.first_offset for each in answers] == list(range(0, 60, 2))
        again = await asyncio.gather(*[trial.engine.append(each) for each in batches])
        reader = trial.reader()
        await reader.read_to(60)
        await trial.append(b"end")
        following = (await trial.engine.bounds()).next
        records = await reader.read_to(following)
        assert [record for _, record in records] == [record for _, record in expected] + [b"end"]
        if trial.engine.capabilities.deduplicates:
            for answer, first in zip(again, answers, strict=True):
                assert answer.is_repeated
                assert answer.first_offset in (None, first.first_offset)

    @promise(needs="deduplicates")
    async def test_a_batch_may_be_partly_a_repetition(self, trial: Trial) -> None:
        """Only what is new of it is appended."""
        await trial.append(b"a", b"b", producer=PRODUCER)
        answer = await trial.append(b"b", b"c", b"d", producer=PRODUCER, sequence=1)
        assert not answer.is_repeated
        assert await trial.records() == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]

    @promise(needs="deduplicates")
    async def test_a_sequence_is_not_used_twice(self, trial: Trial) -> None:
        """The same sequence with another payload is refused and changes nothing."""
        await trial.append(b"a", b"b", producer=PRODUCER)
        for _ in range(2):
            with Raises(SequenceReused):
                await trial.append(b"a", b"x", producer=PRODUCER)
        assert (await trial.append(b"c", producer=PRODUCER, sequence=2)).first_offset == 2
        assert await trial.records() == [(0, b"a"), (1, b"b"), (2, b"c")]

    @promise(needs="deduplicates")
    async def test_what_is_missing_has_to_come_first(self, trial: Trial) -> None:
        """A gap in a producer's sequence is refused; a new producer begins at 0."""
        with Raises(OutOfSequence) as caught:
            await trial.append(b"x", producer=PRODUCER, sequence=1)
        assert caught.found.expected == 0
        await trial.append(b"a", b"b", producer=PRODUCER)
        with Raises(OutOfSequence) as caught:
            await trial.append(b"x", producer=PRODUCER, sequence=3)
        assert caught.found.expected == 2
        assert await trial.records() == [(0, b"a"), (1, b"b")]

    @promise
    async def test_what_is_no_batch_is_refused(self, trial: Trial) -> None:
        """Empty ones, too large ones, and producer ids that are too long."""
        size_bytes = trial.engine.capabilities.batch_bytes_max + 1
        for batch in (
            Batch(b"", 0),
            Batch.of([b"x"], bytes(PRODUCER_BYTES_MAX + 1)),
            Batch.of([b"x"], PRODUCER, -1),
            Batch.of([bytes(size_bytes)]),
        ):
            with Raises(InvalidAppend):
                await trial.engine.append(batch)
        assert await trial.engine.bounds() == Bounds(0, 0)
