"""A link on which replies come, and the address that requests name for them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING

from cogwork.client.links.receiver import Receiver
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from cogwork.amqp.terminus import Source
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.link import Link

__all__ = ("ReplySource",)


class ReplySource(Receiver[Message]):
    """Replies to requests, which wait for them elsewhere: by `lost` they learn that none will come.

    Attributes:
        reply_to: The address at present; empty while there is none.
    """

    def __init__(self, client: LinkContext, source: Source, credit: int) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            source: A dynamic one, or one with a name of its own.
            credit: Replies that may be on their way.
        """
        super().__init__(client, source, Inbox(client.flusher, client.create_future, credit))
        self.reply_to = ""
        self._has_address = asyncio.Event()

    async def addressed(self) -> None:
        """Wait until replies have an address.

        Raises:
            CogworkError: They will have none any more.
        """
        while not self.reply_to:
            await self._has_address.wait()
            if self.failure is not None:
                raise self.failure

    @abstractmethod
    def lost(self, error: Exception | None) -> None:
        """The address is gone, and with it every reply on its way; for good, with an error."""

    # -- the link

    def attached(self, link: Link) -> None:
        """Learn where replies go."""
        assert link.remote is not None
        assert link.remote.source is not None
        self.reply_to = self.address or link.remote.source.address or ""
        self._has_address.set()
        super().attached(link)

    def detached(self) -> None:
        """Tell the requests that wait."""
        super().detached()
        self.reply_to = ""
        self._has_address.clear()
        self.lost(None)

    def close_with(self, error: Exception) -> None:
        """Tell the requests that wait."""
        super().close_with(error)
        self.reply_to = ""
        self._has_address.set()
        self.lost(error)
