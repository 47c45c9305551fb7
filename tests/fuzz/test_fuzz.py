"""Some seconds of hostile connections in every test run; `make fuzz` has a million."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from fuzz import seeds
from fuzz.__main__ import suffer
from fuzz.victim import Victim

SEED = 20131
COUNT = 1500


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("cogwork")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def test_the_corpus_is_what_its_code_makes() -> None:
    assert seeds.load() == seeds.conversations()


def test_the_corpus_gets_as_far_as_it_is_meant_to() -> None:
    async def said() -> Victim:
        victim = Victim()
        for chunks in corpus.values():
            await victim.suffer(chunks, politely=False)
        victim.check_bystanders()
        victim.check_nothing_left()
        return victim

    corpus = seeds.load()
    victim = asyncio.run(said())
    assert victim.identities == {None, seeds.USER, "bearer"}
    mesh = {name for name in corpus if name.startswith("mesh_")}
    ended = {"mesh_hellos", "mesh_replays"}  # in the end the neighbour hears nothing any more
    assert victim.linked == len(mesh - ended)


def test_hostile_connections_harm_nobody_else() -> None:
    asyncio.run(suffer(SEED, range(COUNT)))
