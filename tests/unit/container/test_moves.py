"""Waiting until others hold a stream."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from cogwork.container.cluster.cluster import Cluster
from cogwork.container.cluster.moves import Moves
from cogwork.container.cluster.raft import FIRST_GROUP, placement_of
from cogwork.engines.orb import OrbHost
from cogwork.plugin.engine.errors import Unavailable
from cogwork.replication.calls import Bounded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork.plugin.engine.contract import Engine

GROUP = FIRST_GROUP + 1


class Service:
    """Has the one stream, of the cluster."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def open(self, name: str, options: object) -> Engine:
        del name, options
        return self.engine

    @staticmethod
    def now_s() -> float:
        return 0.0

    async def ask(self, *_question: object) -> Bounded:
        return Bounded(1, 0, 0, 0)  # a majority is there

    @staticmethod
    def leads(name: str) -> bool:
        return name == ""


class Nobody:
    """Follows nothing."""

    declared = moved = deleted = current = lambda self, _what: None


@asynccontextmanager
async def moving() -> AsyncIterator[tuple[Cluster, Moves, asyncio.Future[None]]]:
    """Have `a` and `b` hold what `a`, `b` and `c` do: nobody brings that about."""
    service = Service(await OrbHost().open("$cluster", {}))
    cluster = Cluster([*"abc"], service, Nobody())  # type: ignore[arg-type]  # all that is asked
    moves = Moves(
        cluster,
        service,  # type: ignore[arg-type]  # nobody is asked for room
        FIRST_GROUP,
        lambda each: placement_of(cluster, each),
        lambda each: each.name,
    )
    cluster.start()
    declaration = await cluster.declare("stream", "", "orders", {"replicas": [*"abc"]})
    waiting = asyncio.ensure_future(moves.change_members(GROUP, ["a", "b"], []))
    while not placement_of(cluster, declaration).move:
        await asyncio.sleep(0.001)
    try:
        yield cluster, moves, waiting
    finally:
        waiting.cancel()
        moves.close()
        await cluster.close()


def test_it_is_over_when_the_move_is_done() -> None:
    async def story() -> None:
        async with moving() as (_, moves, waiting):
            moves.moved(GROUP, 1, (1, 7))
            await waiting

    asyncio.run(asyncio.wait_for(story(), 5))


def test_another_move_takes_its_place() -> None:
    async def story() -> None:
        async with moving() as (_, moves, waiting):
            again = asyncio.ensure_future(moves.change_members(GROUP, ["b", "a"], []))
            with pytest.raises(Unavailable, match="another move has taken its place"):
                await waiting
            moves.moved(GROUP, 2, (1, 7))
            await again

    asyncio.run(asyncio.wait_for(story(), 5))


def test_what_is_moved_is_deleted() -> None:
    async def story() -> None:
        async with moving() as (cluster, _, waiting):
            await cluster.delete("stream", "", "orders")
            with pytest.raises(Unavailable, match="stream 'orders' was deleted"):
                await waiting

    asyncio.run(asyncio.wait_for(story(), 5))


def test_the_container_stops() -> None:
    async def story() -> None:
        async with moving() as (_, moves, waiting):
            moves.close()
            with pytest.raises(Unavailable, match="the container is stopping"):
                await waiting

    asyncio.run(asyncio.wait_for(story(), 5))
