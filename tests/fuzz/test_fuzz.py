"""Some seconds of hostile connections in every test run; `make fuzz` has a million."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from fuzz import seeds
from fuzz.__main__ import suffer

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


def test_hostile_connections_harm_nobody_else() -> None:
    asyncio.run(suffer(SEED, range(COUNT)))
