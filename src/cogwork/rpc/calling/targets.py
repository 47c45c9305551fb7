"""The links that calls are sent on: one an address, kept for as long as it is used.

A link to the address itself, and not the anonymous relay, carries calls: its credit says whether
anybody serves the address, before anything is sent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from cogwork.client.errors import Disconnected
from cogwork.client.publishing.publisher import Publisher

if TYPE_CHECKING:
    from cogwork.client.context import LinkContext
    from cogwork.rpc.wheel import Wheel

__all__ = ("Target", "Targets", "shared")

T = TypeVar("T")

IDLE_S = 60.0
"""A link that carried nothing for so long, or up to twice as long, is given up."""


async def shared(task: asyncio.Task[T]) -> T:
    """Wait for what others wait for, too; it ends with the client, which is no cancellation.

    Raises:
        Disconnected: The client was closed.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise Disconnected("the client was closed") from None
        raise


class Target(Publisher):
    """A link to one address.

    Attributes:
        is_used: Whether it carried anything since idle links were looked for.
    """

    is_used = True

    @property
    def sent(self) -> int:
        """Counts what has left on the present link."""
        link = self._outbox.link
        return 0 if link is None else link.deliveries

    @property
    def has_credit(self) -> bool:
        """Whether a message would leave at once."""
        link = self._outbox.link
        return link is not None and link.credit > 0 and not self._outbox.backlog_count


class Targets:
    """The sending links of one connection, by address."""

    def __init__(self, client: LinkContext, wheel: Wheel) -> None:
        """Start with no link yet.

        Args:
            client: Keeps them attached.
            wheel: Tells when to look for idle ones.
        """
        self._client = client
        self._wheel = wheel
        self._open: dict[str, Target] = {}
        self._opening: dict[str, asyncio.Task[Target]] = {}
        self._is_watched = False

    def __len__(self) -> int:
        return len(self._open)

    def get(self, address: str) -> Target | None:
        """Return the link to an address, if it stands."""
        target = self._open.get(address)
        if target is None or target.failure is not None:
            return None
        target.is_used = True
        return target

    async def open(self, address: str) -> Target:
        """Open the link to an address, once for all who wait for it.

        Raises:
            LinkRefused: The container does not let this client send there.
        """
        found = self.get(address)
        if found is not None:
            return found
        task = self._opening.get(address)
        if task is None:
            task = self._client.spawn(self._opened(address))
            self._opening[address] = task
            task.add_done_callback(lambda done: self._on_opened(address, done))
        return await shared(task)

    def _on_opened(self, address: str, task: asyncio.Task[Target]) -> None:
        self._opening.pop(address, None)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it, too

    async def _opened(self, address: str) -> Target:
        target = Target(self._client, address)
        await target.open()
        self._open[address] = target
        if not self._is_watched:
            self._is_watched = True
            self._watch()
        return target

    def _watch(self) -> None:
        self._wheel.add(asyncio.get_running_loop().time() + IDLE_S, self)

    def on_due(self) -> None:
        """Give up links that nothing was sent on since the last time."""
        for address, target in list(self._open.items()):
            if target.failure is not None:
                del self._open[address]
            elif target.is_used or target.backlog or target.unsettled:
                target.is_used = False
            else:
                del self._open[address]
                self._client.spawn(target.shut())
        self._is_watched = bool(self._open)
        if self._is_watched:
            self._watch()
