"""Nearcast and broadcast pass the same kit, and run the same application."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

import cogwork
from cogwork.cast import CanonicalMessage, Cast
from cogwork.cast.conformance import CastConformance
from cogwork.engines.orb import OrbHost
from cogwork.testing import container


@asynccontextmanager
async def over_an_engine() -> AsyncIterator[Cast]:
    """A broadcast over an engine in this process."""
    engine = await OrbHost().open("stream", {})
    async with cogwork.broadcast(engine) as cast:
        yield cast


STREAMS = 40


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One container for all, with a stream for each test."""
    streams = "".join(f'[[stream]]\naddress = "stream/{i}"\n' for i in range(STREAMS))
    with container(streams) as running:
        yield running


class TestNearcast(CastConformance):
    def cast(self) -> AbstractAsyncContextManager[Cast]:
        return cogwork.nearcast()


class TestBroadcastOverAnEngine(CastConformance):
    def cast(self) -> AbstractAsyncContextManager[Cast]:
        return over_an_engine()


class TestBroadcast(CastConformance):
    url: ClassVar[str]
    numbers: ClassVar[Iterator[int]] = itertools.count(1)

    @pytest.fixture(autouse=True)
    def _running(self, url: str) -> None:
        type(self).url = url

    def cast(self) -> AbstractAsyncContextManager[Cast]:
        return cogwork.broadcast(self.url, f"stream/{next(self.numbers)}")


class Account(cogwork.Cog):
    """Pays what it can."""

    def __init__(self) -> None:
        self.balance = 0

    def on_message(self, message: CanonicalMessage) -> None:
        change = int(message.body)
        if self.balance + change >= 0:
            self.balance += change


async def application(cast: Cast) -> tuple[int, int]:
    """Know nothing of what makes the order."""
    account, copy = Account(), Account()
    cast.add(account)
    cast.send(b"100")
    cast.send(b"-30", b"-80")
    await cast.sync()
    cast.add(copy)
    cast.send(b"-7")
    await cast.sync()
    return account.balance, copy.balance


def test_the_application_changes_one_line(url: str) -> None:
    async def near() -> tuple[int, int]:
        async with cogwork.nearcast() as cast:
            return await application(cast)

    async def broad() -> tuple[int, int]:
        async with cogwork.broadcast(url, "stream/0") as cast:
            return await application(cast)

    assert asyncio.run(near()) == asyncio.run(broad()) == (63, 63)
