"""Where a service's requests come."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.extensions import EXCLUSIVE, EXCLUSIVE_AGAIN
from cogwork.amqp.terminus import Source
from cogwork.client.links.receiver import Receiver
from cogwork.dataplane.client.request_inbox import RequestInbox
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.types import Symbol
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.link import Link
    from cogwork.rpc.serving.reply_sender import ReplySender
    from cogwork.rpc.serving.window import Window

__all__ = ("RequestReceiver",)


class RequestReceiver(Receiver[Message]):
    """A receiving link of a service.

    Attributes:
        inbox: Where they arrive.
        sender: Where replies to what comes here go.
    """

    def __init__(
        self,
        client: LinkContext,
        address: str,
        mode: Symbol,
        *,
        is_shared: bool,
        is_exclusive: bool,
        window: Window,
        sender: ReplySender,
        take: Callable[[RequestInbox, ReplySender], object],
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: Where requests come.
            mode: Whether they go to one server (move) or to each (copy).
            is_shared: Whether another server could begin what comes here as well.
            is_exclusive: Whether nobody else is to serve there.
            window: Gives it credit.
            sender: Where replies go.
            take: Called when requests are there.
        """
        self.inbox = RequestInbox(client.flusher, client.create_future, 1)
        window.add(self.inbox, is_shared=is_shared)
        self._window = window
        self._is_exclusive = is_exclusive
        super().__init__(client, Source(address=address, distribution_mode=mode), self.inbox)
        self.outlives_gaps = True  # whoever asks all servers does not wait for any of them
        self.inbox.listener = partial(take, self.inbox, sender)

    def attached(self, link: Link) -> None:
        """Give the first credit."""
        super().attached(link)
        self._window.update()

    def _source_here(self) -> Source:
        source = super()._source_here()
        if not self._is_exclusive:
            return source
        source = copy(source)
        source.capabilities = (EXCLUSIVE,)
        if self._attached.done():  # another container may still take the lost link for one
            source.capabilities = (EXCLUSIVE, EXCLUSIVE_AGAIN)
        return source
