"""Clients wait while the cluster has no root, where `[cluster] hold_clients` wants that.

Theory of operation. Ten times a second the container looks who is the root: one with a replica of
`$cluster` knows it, any other asks those that have one. While there is none, newcomers are logged
in, have their heartbeats, and get no further; publishers that stand wait as they do above the
memory watermark. What is for the container itself, as requests to `$management` are, goes on.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("HeldClients",)

LOOK_S = 0.1

log = logging.getLogger("cogwork")


class Held(Protocol):
    """A connection that waits."""

    @property
    def is_over(self) -> bool:
        """Whether it waits no more."""

    def flush(self) -> None:
        """Send what was written."""


class HeldClients:
    """Owned by the container.

    Attributes:
        are_held: Whether clients wait now.
    """

    def __init__(
        self, find_root: Callable[[], Awaitable[str]], block: Callable[[bool], None]
    ) -> None:
        """Hold nobody before the first look.

        Args:
            find_root: Returns who is the root; empty for nobody.
            block: Called with whether publishers wait from now on.
        """
        self.are_held = False
        self._find_root = find_root
        self._block = block
        self._waiting: list[tuple[Held, Callable[[], None]]] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Hold all who come until there is a root, and look again and again."""
        self._take(has_root=False)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Look no more; who waits is closed with the container."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def hold(self, connection: Held, go_on: Callable[[], None]) -> bool:
        """Have a newcomer wait, if clients wait now; return whether it does.

        Args:
            connection: The newcomer's; one that is over is forgotten.
            go_on: Called once it may go on.
        """
        if self.are_held:
            self._waiting.append((connection, go_on))
        return self.are_held

    async def _run(self) -> None:
        while True:
            has_root = False
            with suppress(CogworkError, OSError):
                has_root = bool(await self._find_root())
            self._take(has_root=has_root)
            await asyncio.sleep(LOOK_S)

    def _take(self, *, has_root: bool) -> None:
        self._waiting = [each for each in self._waiting if not each[0].is_over]
        if self.are_held is not has_root:
            return
        self.are_held = not has_root
        if self.are_held:
            log.warning("clients wait, because the cluster has no root ([cluster] hold_clients)")
        else:
            log.warning("clients go on: the cluster has a root")
        self._block(self.are_held)
        if has_root:
            self._let_go()

    def _let_go(self) -> None:
        waiting, self._waiting = self._waiting, []
        for connection, go_on in waiting:
            if not connection.is_over:
                go_on()
                connection.flush()
