"""The one link on which a client's replies come, matched without a task or a queue."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.terminus import Source
from cogwork.client.receiver import Receiver
from cogwork.dataplane.inbox import Inbox
from cogwork.dataplane.messages import Message

if TYPE_CHECKING:
    from cogwork.client.mesh import Mesh
    from cogwork.dataplane.link import Link

__all__ = ("Pending", "Replies")

CREDIT = 1000

log = logging.getLogger("cogwork.client.rpc")


class Pending(Protocol):
    """A call that waits for what comes."""

    def on_reply(self, reply: Message) -> object:
        """A reply came, or a part of one, or a sign of life."""

    def on_lost(self, error: Exception | None) -> object:
        """The address of its reply is gone; for good, where there is an error."""


class Replies(Receiver[Message]):
    """A dynamic source, and the calls that wait for what comes there.

    Attributes:
        reply_to: Its address at present; empty while there is none.
        calls: Those that wait, by their number.
    """

    def __init__(self, mesh: Mesh) -> None:
        """Is not attached yet.

        Args:
            mesh: Keeps it attached.
        """
        inbox = Inbox(mesh.flusher, mesh.create_future, CREDIT)
        super().__init__(mesh, Source(dynamic=True), inbox)
        inbox.listener = self._on_arrivals
        self.reply_to = ""
        self.calls: dict[object, Pending] = {}
        self._has_address = asyncio.Event()

    async def ready(self) -> None:
        """Waits until replies have an address.

        Raises:
            CogworkError: They will have none any more.
        """
        while not self.reply_to:
            await self._has_address.wait()
            if self.failure is not None:
                raise self.failure

    def _on_arrivals(self) -> None:
        replies = self._inbox.take_now()
        calls = self.calls
        for reply in replies:
            try:
                call = calls.get(reply.correlation_id)
                if call is not None:
                    call.on_reply(reply)
            except Exception as error:  # one that cannot be read must not keep back the others
                log.info("a reply cannot be read: %s", error)
        self._inbox.let_go(len(replies))

    # -- the link

    def attached(self, link: Link) -> None:
        """Learns where replies go."""
        assert link.remote is not None
        assert link.remote.source is not None
        self.reply_to = link.remote.source.address or ""
        self._has_address.set()
        super().attached(link)

    def detached(self) -> None:
        """The address is gone, and with it every reply that was on its way."""
        super().detached()
        self.reply_to = ""
        self._has_address.clear()
        self._tell_lost(None)

    def close_with(self, error: Exception) -> None:
        """Fails the calls that wait."""
        super().close_with(error)
        self.reply_to = ""
        self._has_address.set()
        self._tell_lost(error)

    def _tell_lost(self, error: Exception | None) -> None:
        for call in list(self.calls.values()):
            call.on_lost(error)
