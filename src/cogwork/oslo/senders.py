"""The links that a driver instance sends on: one for each address, kept while they are used.

All of them are on the one session of the connection. A link to an address has credit only while
somebody is there to receive: so a message to nobody waits, and its sender knows. Replies go over
the anonymous relay where it is offered, as each caller has an address of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.client.publishing.publisher import Publisher

if TYPE_CHECKING:
    from cogwork.client.client import Client

__all__ = ("RELAY", "Senders")

RELAY = ""
"""What the anonymous relay is kept under: no address is empty."""


class Senders:
    """The links of one connection."""

    def __init__(self, client: Client) -> None:
        """Start with none yet.

        Args:
            client: The connection.
        """
        self._client = client
        self._open: dict[str, Publisher] = {}
        self._used_s: dict[str, float] = {}
        self._opening: dict[str, asyncio.Task[Publisher]] = {}
        self._connection = client.connections
        self._loop = asyncio.get_running_loop()

    def find(self, address: str) -> Publisher | None:
        """Return the link to an address, if it stands."""
        if self._connection != self._client.connections:
            self._clear()
        publisher = self._open.get(address)
        if publisher is None or publisher.failure is not None:
            return None
        self._used_s[address] = self._loop.time()
        return publisher

    async def open(self, address: str) -> Publisher:
        """Return the link to an address, attached if need be, once for all who ask.

        Raises:
            LinkRefused: The intermediary does not let this client send there.
            Disconnected: The connection is gone for good.
        """
        found = self.find(address)
        if found is not None:
            return found
        task = self._opening.get(address)
        if task is None:
            task = self._loop.create_task(self._attach(address))
            self._opening[address] = task
            task.add_done_callback(lambda _: self._opening.pop(address, None))
        return await asyncio.shield(task)

    async def _attach(self, address: str) -> Publisher:
        publisher = Publisher(self._client, address or None)
        await publisher.open()
        self._open[address] = publisher
        self._used_s[address] = self._loop.time()
        return publisher

    def purge(self, idle_s: float) -> None:
        """Detach what nothing was sent on for so long, and forget what has failed."""
        limit_s = self._loop.time() - idle_s
        for address, publisher in list(self._open.items()):
            if publisher.failure is not None or (
                self._used_s[address] <= limit_s and not _is_busy(publisher)
            ):
                self._drop(address)

    def _clear(self) -> None:
        """Begin anew on a new connection; what waits on an old link stays with it."""
        self._connection = self._client.connections
        for address, publisher in list(self._open.items()):
            if not _is_busy(publisher):
                self._drop(address)

    def _drop(self, address: str) -> None:
        publisher = self._open.pop(address)
        del self._used_s[address]
        if publisher.failure is None:
            self._client.spawn(publisher.shut())

    def __len__(self) -> int:
        """Count the links."""
        return len(self._open)


def _is_busy(publisher: Publisher) -> bool:
    return bool(publisher.backlog or publisher.unsettled)
