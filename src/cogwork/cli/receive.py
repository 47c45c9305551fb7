"""`cogwork receive`: what arrives at an address, a line each."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.reach import reach
from cogwork.cli.rendering import as_json, as_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client import Consumer, Item, Mesh, Message

__all__ = ("receive",)

CREDIT_MAX = 500
"""Enough for full speed; what is not printed any more goes back."""


@click.command()
@click.argument("url")
@click.argument("address")
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many messages.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Stop when nothing came for so many seconds.",
)
@click.option("--json", "wants_json", is_flag=True, help="Whole messages, one JSON object a line.")
def receive(
    url: str, address: str, count: int | None, timeout_s: float | None, wants_json: bool
) -> int:
    """Print what arrives at an address.

    Each message is accepted once it is printed. Without --count, runs until interrupted. Exits
    with 7 if --timeout came before --count messages did.
    """
    write = as_json if wants_json else as_text

    async def work(mesh: Mesh) -> int:
        async with mesh.consume(address, credit=min(count or CREDIT_MAX, CREDIT_MAX)) as consumer:
            printed = await _print(consumer, write, count, timeout_s)
            await consumer.flush()
        return printed

    printed = reach(url, work)
    is_short = count is not None and printed < count
    return ExitCode.TIMEOUT if is_short else ExitCode.OK


async def _print(
    consumer: Consumer,
    write: Callable[[Message], str],
    count: int | None,
    timeout_s: float | None,
) -> int:
    """Prints and accepts until there are enough, or nothing comes; returns how many."""
    printed = 0
    while count is None or printed < count:
        wanted = CREDIT_MAX if count is None else min(count - printed, CREDIT_MAX)
        try:
            async with asyncio.timeout(timeout_s):
                items: list[Item] = await consumer.take(wanted)
        except TimeoutError:
            break
        if not items:
            break
        sys.stdout.write("".join(f"{write(item)}\n" for item in items))
        sys.stdout.flush()
        consumer.accept(items)
        printed += len(items)
    return printed
