"""Streams that are not open yet: whoever waits for their records is told why none come."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from cogwork.amqp.errors import CogworkError
from cogwork.cli.manager import Manager
from cogwork.cli.visible import visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork.client import Mesh

__all__ = ("StreamNotOpen", "demand_open", "explained")

PATIENCE_S = 3.0
"""A stream that is being opened as its container starts is open by then."""


class StreamNotOpen(TimeoutError):
    """Nothing came in time, as the stream is not open."""


@asynccontextmanager
async def explained(mesh: Mesh, address: str | None) -> AsyncIterator[None]:
    """Says on stderr, for as long as somebody waits, why a stream is not open; None is none."""
    if address is None:
        yield
        return
    explaining = asyncio.create_task(_explain(mesh, address))
    try:
        yield
    finally:
        explaining.cancel()


async def _explain(mesh: Mesh, address: str) -> None:
    told = None
    await asyncio.sleep(PATIENCE_S)
    while (problem := await _problem_of(mesh, address)) is not None:
        if problem != told:
            click.echo(f"cogwork: waiting: {visible(problem)}", err=True)
            told = problem
        await asyncio.sleep(PATIENCE_S)


async def demand_open(mesh: Mesh, address: str) -> None:
    """Tells a stream that has nothing from one that cannot be read.

    Raises:
        StreamNotOpen: It cannot.
    """
    problem = await _problem_of(mesh, address)
    if problem is not None:
        raise StreamNotOpen(problem)


async def _problem_of(mesh: Mesh, address: str) -> str | None:
    """Returns what keeps a stream from being read; None where nothing does, or nobody may know."""
    try:
        row = await Manager(mesh).get("READ", "stream", address.removeprefix("/"))
    except CogworkError:  # whoever may receive may not be one who may manage
        return None
    if row["state"] == "open":
        return None
    why = f": {row['problem']}" if row["problem"] else ""
    return f"{row['address']} is {row['state']}{why}"
