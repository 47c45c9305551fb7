"""Order, and what comes in comes out."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import PRODUCER, promise
from cogwork.plugin.engine.batch import PRODUCER_BYTES_MAX, Batch
from cogwork.plugin.engine.contract import Bounds, FromOffset

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial
    from cogwork.plugin.engine.contract import Engine

__all__ = ("OrderTests",)

ODD_NAMES = ("a/b.c", "a.b.c", "a b*>#", "größe", "x" * 100)


class OrderTests(Kit):
    """Order, and what comes in comes out."""

    @promise
    async def test_what_is_appended_can_be_read(self, trial: Trial) -> None:
        """Offsets count records from 0; chunks say who appended them, and when."""
        assert await trial.engine.bounds() == Bounds(0, 0)
        assert list(await trial.engine.read(0)) == []
        first = await trial.append(b"a", b"b")
        second = await trial.append(b"c", producer=PRODUCER, sequence=0)
        assert (first.first_offset, second.first_offset) == (0, 2)
        assert not first.is_repeated
        assert await trial.engine.bounds() == Bounds(0, 3)
        assert await trial.records() == [(0, b"a"), (1, b"b"), (2, b"c")]
        one, other = await trial.engine.read(0)
        assert (other.batch.producer, other.batch.sequence) == (PRODUCER, 0)
        assert (one.epoch, other.epoch) == (first.epoch, second.epoch)
        assert one.time_ms <= other.time_ms

    @promise
    async def test_everybody_sees_the_same_order(self, trial: Trial) -> None:
        """Many appenders at once, here and elsewhere; subscribers that start before and after."""
        engines = [trial.engine, await trial.open_elsewhere()]
        early = [trial.reader(engine=each) for each in engines]
        for reader in early:
            await reader.catch_up()

        async def append(number: int) -> None:
            for i in range(20):
                records = [b"%d %d %d" % (number, i, j) for j in range(3)]
                await engines[number % 2].append(Batch.of(records, b"%d" % number, i * 3))

        await asyncio.gather(*(append(number) for number in range(6)))
        late = [trial.reader(engine=each) for each in engines]
        for reader in (*early, *late):
            assert await reader.read_to(360) == early[0].records
        records = [record for _, record in early[0].records]
        for number in range(6):
            mine = [each for each in records if each.startswith(b"%d " % number)]
            assert mine == [b"%d %d %d" % (number, i, j) for i in range(20) for j in range(3)]

    @promise
    async def test_calls_take_effect_in_their_order(self, trial: Trial) -> None:
        """The next append may be made before the last one is answered."""
        answers = [trial.engine.append(Batch.of([b"%d" % i])) for i in range(50)]
        # The order in which they are awaited is none of the engine's business.
        offsets = [(await each).first_offset for each in reversed(answers)]
        assert offsets == list(reversed(range(50)))
        assert await trial.records() == [(i, b"%d" % i) for i in range(50)]

    @promise
    async def test_a_page_is_as_large_as_was_asked_for(self, trial: Trial) -> None:
        """At least one chunk, and no more than about so many octets."""
        await trial.fill(20, size_bytes=1000)
        assert len(await trial.engine.read(0, max_bytes=1)) == 1
        page = await trial.engine.read(5, max_bytes=5000)
        assert page[0].offset == 5
        assert 1 <= sum(each.batch.count for each in page) <= 8

    @promise
    async def test_a_batch_may_be_read_from_its_middle(self, trial: Trial) -> None:
        """The first chunk is cut so that it begins where it was asked for."""
        await trial.append(b"a", b"b", b"c", producer=PRODUCER)
        (chunk,) = await trial.engine.read(1)
        assert (chunk.offset, chunk.batch) == (1, Batch.of([b"b", b"c"], PRODUCER, 1))
        reader = await trial.reader(FromOffset(2)).catch_up()
        assert reader.records == [(2, b"c")]

    @promise
    async def test_octets_are_opaque(self, trial: Trial) -> None:
        """Random records, empty ones and large ones among them, come out as they went in."""
        chance = random.Random(5)
        expected: list[bytes] = []
        large = min(1 << 20, trial.engine.capabilities.batch_bytes_max - 1000)
        sizes = [[0], [0, 0, 1], [large], *([chance.randrange(300)] * 9 for _ in range(20))]
        for number, each in enumerate(sizes):
            records = [chance.randbytes(size) for size in each]
            producer = chance.randbytes(chance.randint(1, PRODUCER_BYTES_MAX))
            await trial.append(*records, producer=producer if number % 2 else b"")
            expected += records
        assert [record for _, record in await trial.records()] == expected
        reader = await trial.reader().catch_up()
        assert [record for _, record in reader.records] == expected

    @promise
    async def test_streams_do_not_mix(self, trial: Trial) -> None:
        """Whatever they are called."""
        opened: dict[str, Engine] = {}
        try:
            for odd in ODD_NAMES:
                name = f"{trial.name[-8:]}{odd}"
                opened[name] = await trial.host.open(name, self.options)
            for name, engine in opened.items():
                await engine.append(Batch.of([name.encode()]))
            for name, engine in opened.items():
                (chunk,) = await engine.read(0)
                assert list(chunk.batch.records()) == [name.encode()]
        finally:
            for name in opened:
                await trial.host.delete(name)
