"""Where a service's replies leave: the anonymous relay, where there is one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import CogworkError
from cogwork.client.publishing.publisher import Publisher
from cogwork.dataplane.client.posting_errors import BacklogFull

if TYPE_CHECKING:
    from cogwork.client.context import ClientContext
    from cogwork.dataplane.message.messages import Message

__all__ = ("ReplySender", "RoutedReplySender")

log = logging.getLogger("cogwork.client.rpc")


class ReplySender(Protocol):
    """Takes replies."""

    def send(self, reply: Message) -> None:
        """Send a reply to where it says, and go on.

        Raises:
            EncodeError: It cannot be carried.
            MessageTooLarge: It is larger than what is carried.
        """

    def size_bytes_max(self, address: str) -> int:
        """Return how large a reply to an address may be; 0 where that is not known."""


class RoutedReplySender:
    """Sends replies through the mesh, all on one link where the container has a relay.

    A reply to a caller that is gone goes nowhere: the relay drops it, and nothing is left behind.
    """

    def __init__(self, client: ClientContext, settled: bool) -> None:
        """Start with no link yet.

        Args:
            client: The connection.
            settled: Whether replies are sent settled.
        """
        self._client = client
        self._settled = settled
        self._relay: Publisher | None = None

    async def open(self) -> None:
        """Open the relay."""
        if self._client.has_relay:
            self._relay = Publisher(self._client, None)
            await self._relay.open()

    async def close(self) -> None:
        """Let what was sent leave, and detach."""
        if self._relay is not None and self._relay.failure is None and self._client.is_connected:
            await self._relay.shut()

    def size_bytes_max(self, _address: str) -> int:
        """Return how large a reply may be."""
        return 0 if self._relay is None else self._relay.size_bytes_max

    def send(self, reply: Message) -> None:
        """Send a reply to where it says, and go on."""
        if self._relay is None:
            self._client.spawn(self._publish(reply))
            return
        try:
            post = self._relay.post(reply, settled=self._settled)
        except (ConnectionError, BacklogFull) as error:
            log.info("%s: cannot send a reply: %s", reply.to, error)
            return
        if not self._settled:
            post.on_error = _note

    async def _publish(self, reply: Message) -> None:
        try:
            await self._client.send_own(str(reply.to), reply, settled=self._settled)
        except CogworkError as error:
            _note(error)


def _note(error: Exception) -> None:
    log.info("a reply was not accepted: %s", error)
