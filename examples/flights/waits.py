"""Waits that say what they waited for, and give a slow machine time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ("TIMEOUT_S", "WaitError", "at_most")

TIMEOUT_S = 120.0
"""A machine with a load of 20 takes a tenth of it."""


class WaitError(Exception):
    """Something did not come in time; the text says what, and how long it was waited for."""


@asynccontextmanager
async def at_most(what: str, timeout_s: float = TIMEOUT_S) -> AsyncIterator[None]:
    """Limit how long a block waits.

    Args:
        what: What the block waits for, such as "a leader of stream/flights".
        timeout_s: The longest wait in seconds.

    Raises:
        WaitError: The block was not done in time.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise WaitError(f"timed out after {timeout_s:.0f} s waiting for {what}") from error
