"""Work that goes on for as long as somebody reads its output."""

from __future__ import annotations

import asyncio
import select
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ("while_read",)

T = TypeVar("T")

LOOK_S = 0.2
"""How often it is looked whether the reader of stdout is still there."""


async def while_read(work: Coroutine[Any, Any, T]) -> T:
    """Do work until it is done, or whoever read stdout has gone.

    Args:
        work: What to do; it is cancelled when the reader has gone.

    Returns:
        What `work` returns.

    Raises:
        BrokenPipeError: The reader has gone.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_reader_left())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise BrokenPipeError
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _reader_left() -> None:
    """Return when whoever read stdout has gone; never, where stdout is no file."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, ValueError, OSError):  # none at all, closed, or a test's
        await asyncio.Event().wait()
    # Errors are told without being asked for. The event loop's selector would ask for input, too,
    # which terminals have.
    poll = select.poll()
    poll.register(descriptor, 0)
    while not poll.poll(0):
        await asyncio.sleep(LOOK_S)
