"""Streams that are not open yet: whoever waits for their records is told why none come."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.stream_names import is_stream
from cogwork.cli.terminal.visible import visible
from cogwork.client.errors import LinkRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from cogwork.client import Client

__all__ = ("StreamNotOpen", "attached", "demand_open", "explained")

T = TypeVar("T")

PATIENCE_S = 3.0
"""A stream that is being opened as its container starts is open by then."""


class StreamNotOpen(TimeoutError):
    """Nothing came in time, as the stream is not open."""


@asynccontextmanager
async def explained(client: Client, address: str | None) -> AsyncIterator[None]:
    """Return on stderr, for as long as somebody waits, why a stream is not open; None is none."""
    if address is None:
        yield
        return
    explaining = asyncio.create_task(_explain(client, address))
    try:
        yield
    finally:
        explaining.cancel()


async def _explain(client: Client, address: str) -> None:
    told = None
    await asyncio.sleep(PATIENCE_S)
    while (problem := await _problem_of(client, address)) is not None:
        if problem != told:
            click.echo(f"cogwork: waiting: {visible(problem)}", err=True)
            told = problem
        await asyncio.sleep(PATIENCE_S)


@asynccontextmanager
async def attached(
    client: Client, link: AbstractAsyncContextManager[T], address: str, timeout_s: float | None
) -> AsyncIterator[T]:
    """Open a link for the length of a `with`, and say on stderr why that takes long.

    A container that has not heard of its cluster yet does not answer: there may be the stream.

    Args:
        client: Where.
        link: Opens it.
        address: What it leads to.
        timeout_s: How long opening may take; None for as long as it does.

    Raises:
        StreamNotOpen: It took longer.
    """
    stream = address if is_stream(address) else None
    async with AsyncExitStack() as stack:
        async with explained(client, stream):
            try:
                async with asyncio.timeout(timeout_s):
                    opened = await stack.enter_async_context(link)
            except TimeoutError:
                problem = None if stream is None else await _problem_of(client, stream)
                late = f"the container has not answered within {timeout_s} s"
                raise StreamNotOpen(problem or f"{address}: {late}") from None
        yield opened


async def demand_open(client: Client, address: str) -> None:
    """Tell a stream that has nothing from one that cannot be read.

    Raises:
        StreamNotOpen: It cannot.
    """
    problem = await _problem_of(client, address)
    if problem is not None:
        raise StreamNotOpen(problem)


async def _problem_of(client: Client, address: str) -> str | None:
    """Return what keeps a stream from being read; None where nothing does, or nobody may know."""
    try:
        row = await Manager(client).get("READ", "stream", address.removeprefix("/"))
    except LinkRefused as error:  # whoever may receive may not be one who may manage
        return error.description if error.condition == Condition.INTERNAL_ERROR else None
    except CogworkError:
        return None
    if row["state"] == "open":
        return None
    why = f": {row['problem']}" if row["problem"] else ""
    return f"{row['address']} is {row['state']}{why}"
