"""Requests and replies as messages: what lies below calls, and what `$management` speaks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Unpack, cast

from cogwork.client.checks import checked_address, demand_seconds
from cogwork.client.errors import CallTimeout, Rejected, Released
from cogwork.client.fields import MessageFields, message_of
from cogwork.client.replies import Replies
from cogwork.client.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client.client import Client
    from cogwork.client.senders import Senders
    from cogwork.dataplane.message.messages import Message

__all__ = ("REQUEST_TIMEOUT_S", "Requests")

REQUEST_TIMEOUT_S = 10.0


class Requests:
    """The half of a client that asks and answers, message by message."""

    _senders: Senders
    _replies: asyncio.Task[Replies] | None = None

    async def request(
        self,
        address: str,
        body: object = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Sends a request and waits for its reply.

        Args:
            address: Whom to ask.
            body: A `Message`, or the body of one.
            timeout_s: How long the reply may take; the request expires with it.
            **fields: The message's, as in `Message`.

        Raises:
            CallTimeout: No reply came in time.
            CallFailed: The service answered with an error.
            Released: Nobody serves the address.
        """
        demand_seconds("timeout_s", timeout_s)
        message = message_of(body, self.request, **fields)
        message.to = checked_address(address)
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
        """Opens the one source of replies, once, and again if it was ended."""
        task = self._replies
        if task is None or (task.done() and (task.exception() or task.result().failure)):
            task = self._replies = asyncio.create_task(self._opened_replies())
        return await asyncio.shield(task)

    async def _opened_replies(self) -> Replies:
        replies = Replies(cast("Client", self))
        await replies.open()
        return replies

    def serve(
        self, address: str, handler: Callable[[Message], object], *, concurrency: int = 16
    ) -> Service:
        """Answers requests for as long as an `async with` lasts.

        Args:
            address: Where requests come.
            handler: Gets a request; returns a body, a `Message`, or an awaitable of either. What
                it raises is the answer too.
            concurrency: Requests that are handled at once.
        """
        return Service(cast("Client", self), address, handler, concurrency)
