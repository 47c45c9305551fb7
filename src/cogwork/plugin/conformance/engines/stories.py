"""Random stories: producers that repeat themselves, readers that come at any time."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import promise
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import FromOffset
from cogwork.plugin.engine.errors import Busy

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Reader, Trial
    from cogwork.plugin.engine.contract import Engine

__all__ = ("StoryTests",)

SEEDS = 4
RECORDS = 60
"""Of each producer."""


class StoryTests(Kit):
    """Random stories: producers that repeat themselves, readers that come at any time."""

    @promise
    async def test_stories_end_well(self, trial: Trial) -> None:
        """Every record once, each producer's in order, everybody's readers equal."""
        engines = [trial.engine, await trial.open_elsewhere()]
        for seed in range(SEEDS):
            await _tell(trial, engines, seed)


async def _tell(trial: Trial, engines: list[Engine], seed: int) -> None:
    chance = random.Random(seed)
    start = (await trial.engine.bounds()).next
    names = [b"%d of %d" % (i, seed) for i in range(3)]
    writers = [_write(chance.choice(engines), name, random.Random(name)) for name in names]
    reading = asyncio.ensure_future(_come_and_go(trial, engines, chance, start))
    places: dict[bytes, int] = {}
    for found in await asyncio.gather(*writers):
        places.update(found)
    readers = await reading
    following = (await trial.engine.bounds()).next
    expected = await trial.records(start)
    for reader in readers:
        records = await reader.read_to(following)
        assert records == expected[records[0][0] - start :]
    for name in names:
        mine = [record for _, record in expected if record.startswith(name)]
        assert mine == [_record(name, i) for i in range(RECORDS)]
    assert len(expected) == RECORDS * len(names)
    if trial.engine.capabilities.deduplicates:
        real = {record: offset for offset, record in expected}
        assert {record: real[record] for record in places} == places


def _record(name: bytes, sequence: int) -> bytes:
    return b"%s: %d" % (name, sequence)


async def _write(engine: Engine, name: bytes, chance: random.Random) -> dict[bytes, int]:
    """Append everything, some of it more than once; return what it was told of the places."""
    places: dict[bytes, int] = {}
    following = 0
    while following < RECORDS:
        first = max(0, following - chance.choice((0, 0, 0, 1, 2, 5, 20)))
        count = min(chance.randint(1, 6), RECORDS - first)
        records = [_record(name, first + i) for i in range(count)]
        try:
            answer = await engine.append(Batch.of(records, name, first))
        except Busy:
            await asyncio.sleep(0.01)
            continue
        if answer.first_offset is not None:
            places[records[0]] = answer.first_offset
        following = max(following, first + count)
    return places


async def _come_and_go(
    trial: Trial, engines: list[Engine], chance: random.Random, start: int
) -> list[Reader]:
    """Subscribe now and then, somewhere in what is there; some leave again."""
    staying: list[Reader] = []
    while len(staying) < 4:
        following = (await trial.engine.bounds()).next
        begin = FromOffset(chance.randint(start, following))
        reader = trial.reader(begin, chance.choice(engines))
        await reader.step()
        if chance.random() < 0.3:
            await reader.close()
        else:
            staying.append(reader)
        await asyncio.sleep(0)
    return staying
