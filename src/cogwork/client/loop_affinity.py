"""What becomes of a client that is opened twice, or used on another event loop than its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.client.errors import Disconnected

if TYPE_CHECKING:
    from cogwork.client.context import LinkContext

__all__ = ("check_loop", "reopening_error")


def check_loop(client: LinkContext) -> None:
    """Keep somebody from waiting for good: what comes for him would wake up another loop.

    Raises:
        NotOpened: The client is not connected yet.
        RuntimeError: It was opened on another event loop.
    """
    client.demand_opened()
    if asyncio.get_running_loop() is not client.turn.loop:
        raise RuntimeError(
            "the client was opened on another event loop: connect on each, or share "
            "cogwork.sync.connect(...), which any thread may use"
        )


def reopening_error(failure: Exception | None) -> Exception:
    """Make the error of who opens a client that is open, or was closed.

    Args:
        failure: Why it was closed; None while it is open.
    """
    if failure is None:
        return RuntimeError("the client is open already: `cogwork.connect` makes another one")
    return Disconnected(f"{failure}: `cogwork.connect` makes another one")
