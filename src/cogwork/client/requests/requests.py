"""Requests and replies as messages: what lies below calls, and what `$management` speaks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.client.errors import CallTimeout, Rejected, Released
from cogwork.client.requests.replies import Replies

if TYPE_CHECKING:
    from cogwork.client.context import LinkContext
    from cogwork.client.publishing.senders import Senders
    from cogwork.dataplane.message.messages import Message

__all__ = ("REQUEST_TIMEOUT_S", "Requests")

REQUEST_TIMEOUT_S = 10.0


class Requests:
    """Sends requests, and waits for their replies. One a client."""

    def __init__(self, client: LinkContext, senders: Senders) -> None:
        """Start with no source of replies yet.

        Args:
            client: The connection.
            senders: Find the links that requests leave on.
        """
        self._client = client
        self._senders = senders
        self._replies: asyncio.Task[Replies] | None = None

    async def send(self, address: str, message: Message, timeout_s: float) -> Message:
        """Send a request and wait for its reply.

        Args:
            address: Whom to ask.
            message: The request.
            timeout_s: How long the reply may take; the request expires with it.

        Raises:
            CallTimeout: No reply came in time.
            CallFailed: The service answered with an error.
            Released: Nobody serves the address.
        """
        try:
            async with asyncio.timeout(timeout_s):
                replies = await self._open_replies()
                return await replies.request(self._senders, address, message, timeout_s)
        except TimeoutError:
            raise CallTimeout(address, timeout_s) from None
        except Released as error:
            await self._senders.explain(address, error)
        except Rejected as error:
            await self._senders.explain_rejection(address, error)

    async def _open_replies(self) -> Replies:
        """Open the one source of replies, once, and again if it was ended."""
        task = self._replies
        if task is None or (task.done() and (task.exception() or task.result().failure)):
            task = self._replies = asyncio.create_task(self._opened_replies())
        return await asyncio.shield(task)

    async def _opened_replies(self) -> Replies:
        replies = Replies(self._client)
        await replies.open()
        return replies
