"""Asynchronous tests."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, ParamSpec

import cogwork

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("QUICKLY", "eventually", "filled", "reconnected", "story")

P = ParamSpec("P")

STORY_TIMEOUT_S = 60.0

QUICKLY = cogwork.Retry(first_s=0.01, longest_s=0.1)
"""For clients whose connection is cut: they need not wait before they try again."""


def story(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Make a test of a coroutine function: on a loop of its own, within a time limit."""

    @functools.wraps(test)
    def run(*arguments: P.args, **keywords: P.kwargs) -> None:
        asyncio.run(_timed(test(*arguments, **keywords)))

    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]  # for pytest's fixtures
    return run


async def _timed(work: Awaitable[None]) -> None:
    async with asyncio.timeout(STORY_TIMEOUT_S):
        await work


async def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Wait until `condition()` is true.

    Raises:
        AssertionError: It is not within the time-out.
    """
    try:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {timeout_s:g} s: {what}") from None


async def reconnected(client: cogwork.Client, count: int = 2) -> None:
    """Wait until a mesh has had so many connections."""
    await eventually(lambda: client.connections == count, "it is connected again")


async def filled(client: cogwork.Client, address: str, count: int) -> None:
    """Put numbers into a queue."""
    async with client.publisher(address) as out:
        outcomes = await out.send_batch(range(count))
    assert all(outcome.is_accepted for outcome in outcomes)


async def connected_again(client: cogwork.Client, count: int) -> None:
    """Wait until the mesh has its `count`th connection, with its links attached."""
    await reconnected(client, count)
    await client.publish("sink/here", 0)  # answered after the attaches that went before it


async def has_told(client: cogwork.Client) -> None:
    """Wait until the container knows what this client has handed to its user.

    It is answered on the same connection, after that.
    """
    async with client.publisher("sink/here") as publisher:
        await publisher.send(0)
