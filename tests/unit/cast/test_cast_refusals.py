"""What a cast refuses: a cog that is in one already, and what is no octets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cogwork import Orb, Origin, broadcast, nearcast
from cogwork.cast.conformance import Listener
from cogwork.engines.orb import OrbHost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.cast import Cast


async def near() -> Cast:
    """Make a nearcast."""
    return nearcast()


async def broad() -> Cast:
    """Make a broadcast on an engine of this process."""
    return broadcast(await OrbHost().open("s", {}))


both = pytest.mark.parametrize("made", [near, broad])


@both
def test_a_cog_is_in_one_cast_once(made: Callable[[], Awaitable[Cast]]) -> None:
    async def test() -> None:
        async with await made() as cast:
            cog = Listener()
            cast.add(cog)
            assert cog in cast
            with pytest.raises(ValueError, match="this Listener is in this cast already"):
                cast.add(cog)
            with pytest.raises(ValueError, match="this Listener is in another cast already"):
                Orb().add(cog)
            cast.send(b"once")
            await cast.sync()
            assert cog.bodies == [b"once"]

    asyncio.run(test())


@both
def test_a_cog_that_was_taken_out_may_come_back(made: Callable[[], Awaitable[Cast]]) -> None:
    async def test() -> None:
        async with await made() as cast:
            cog = Listener()
            cast.add(cog)
            cast.send(b"before")
            await cast.sync()
            cast.remove(cog)
            assert cog not in cast
            cast.add(cog, Origin.NEXT)
            await cast.sync()
            cast.send(b"after")
            await cast.sync()
            assert cog.bodies == [b"before", b"after"]

    asyncio.run(test())


@both
@pytest.mark.parametrize("wrong", ["text", 1, None])
def test_what_is_no_octets_is_refused(made: Callable[[], Awaitable[Cast]], wrong: bytes) -> None:
    async def test() -> None:
        async with await made() as cast:
            cog = Listener()
            cast.add(cog)
            with pytest.raises(TypeError, match="a cast sends octets"):
                cast.send(b"good", wrong)
            await cast.sync()
            assert cog.bodies == []

    asyncio.run(test())
