"""Nearcast and broadcast pass the same kit, and run the same application."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from cogwork.cast import Cast, broadcast, nearcast
from cogwork.cast.conformance import CastConformance
from cogwork.consensus.orb import OrbHost


class TestNearcast(CastConformance):
    def cast(self) -> AbstractAsyncContextManager[Cast]:
        return nearcast()


class TestBroadcast(CastConformance):
    @asynccontextmanager
    async def cast(self) -> AsyncIterator[Cast]:
        engine = await OrbHost().open("stream", {})
        async with broadcast(engine) as cast:
            yield cast
