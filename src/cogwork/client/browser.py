"""Browsers: receivers that look at a queue and take nothing from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.terminus import COPY, Source
from cogwork.client.receiver import Receiver, checked_credit, filters_of
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from cogwork.client.context import LinkContext

__all__ = ("Browser",)


class Browser(Receiver[Message]):
    """Receives copies of a queue's items; made by `Client.browse`.

    `drain` returns those that are there; iterating goes on with those that come.
    """

    def __init__(
        self, client: LinkContext, address: str, credit: int, selector: str | None
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: The queue.
            credit: Items that may be on their way or waiting.
            selector: Which items it wants; None for all.
        """
        source = Source(
            address=address,
            distribution_mode=COPY,
            filter=filters_of(selector, no_local=False),
        )
        super().__init__(
            client, source, Inbox(client.flusher, client.create_future, checked_credit(credit))
        )
