"""Waiting for outcomes no longer than something moves on.

Theory of operation. What waits for credit has no outcome, however long that takes; and a batch that
a slow consumer takes message by message has none for as long as that may need. So it is what a
publisher has on its hands that is watched: as long as that changes, somebody takes messages.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from cogwork.client.errors import InDoubt
from cogwork.client.publishing.outcome import NO_CONNECTION, NO_CREDIT, unsent

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client.errors import ClientError
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.dataplane.client.dispatches import Batch

__all__ = ("outcomes_within", "timeout_error")

LOOK_S = 0.2


async def outcomes_within(
    publisher: Publisher, batch: Batch[Outcome], limit_s: Callable[[], float]
) -> list[Outcome]:
    """Wait for the outcomes of a batch.

    Args:
        publisher: Whose batch it is.
        batch: Nobody else's.
        limit_s: How long nothing of what the publisher has on its hands may move on.

    Raises:
        TimeoutError: Nothing did.
        ClientError: The link has ended.
    """
    coming = asyncio.ensure_future(_awaited(batch))
    left, moved_s = -1, time.monotonic()
    try:
        while not (await asyncio.wait({coming}, timeout=LOOK_S))[0]:
            now_s, before = time.monotonic(), left
            left = publisher.backlog + publisher.unsettled
            moved_s = moved_s if left == before else now_s
            if now_s - moved_s > limit_s():
                raise TimeoutError
        return coming.result()
    finally:
        coming.cancel()


async def _awaited(batch: Batch[Outcome]) -> list[Outcome]:
    return await batch


def timeout_error(publisher: Publisher, address: str, timeout_s: float) -> ClientError:
    """Return the exception that says what a publisher waits for whose messages do not move on.

    Args:
        publisher: Which one.
        address: Where it sends.
        timeout_s: For how long nothing moved.
    """
    if publisher.backlog:
        wanting = NO_CONNECTION if publisher.link is None else NO_CREDIT
        return unsent(address, wanting, timeout_s)
    return InDoubt(address, None, f"it was sent, and has no outcome within {timeout_s:g} s")
