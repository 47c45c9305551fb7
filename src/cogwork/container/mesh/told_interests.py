"""Who wants something of other containers may wait until the neighbours have heard of it.

Theory of operation. Interests are collected for some milliseconds, sent, and acknowledged. A client
that binds a queue for replies sends its request at once, and the reply must not overtake what is
said of the queue. So its bind is answered once every neighbour has acknowledged all interests, or a
quarter of a second later: a neighbour that is slow holds nobody up for longer. All who wait look
together.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("ToldInterests",)

LONGEST_S: Final = 0.25
PAUSE_S: Final = 0.005


class ToldInterests:
    """Those of this container, as its neighbours know them."""

    def __init__(self, are_known: Callable[[], bool]) -> None:
        """Look at nothing yet.

        Args:
            are_known: Returns whether every neighbour has acknowledged all of them.
        """
        self._are_known = are_known
        self._looking: asyncio.Task[None] | None = None

    @property
    def are_known(self) -> bool:
        """Whether every neighbour has acknowledged all of them."""
        return self._are_known()

    async def when_known(self) -> None:
        """Wait until every neighbour has acknowledged all interests, but not for long."""
        if self._are_known():
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        await asyncio.wait([self._looking])

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + LONGEST_S
        while not self._are_known() and loop.time() < until_s:
            await asyncio.sleep(PAUSE_S)
