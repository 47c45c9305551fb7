"""Hostile clients of AMQP 0-9-1 at a whole container: they harm nobody else, and leave nothing."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

import pytest

from fuzz.basic_victim import BasicMutator, BasicVictim

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 300


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("cogwork")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


async def suffer(seed: int, count: int) -> int:
    """Have a container suffer so many connections; return how many had channels in the end."""
    victim = BasicVictim()
    for number in range(count):
        mutator = BasicMutator(random.Random(f"{seed}.{number}"))
        try:
            await victim.suffer_basic(mutator.conversation())
        except BaseException as error:
            error.add_note(f"seed {seed}, connection {number}")
            raise
    victim.check_bystanders()
    return victim.reached


@pytest.mark.parametrize("seed", range(4))
def test_hostile_connections_harm_nobody_else(seed: int) -> None:
    assert asyncio.run(suffer(seed, COUNT)) > 0
