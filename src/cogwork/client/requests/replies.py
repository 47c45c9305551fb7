"""Requests and their replies, matched by correlation-id."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.terminus import Source
from cogwork.amqp.types import Symbol
from cogwork.client.errors import CallFailed, Disconnected
from cogwork.client.requests.correlation import correlation_ids
from cogwork.client.requests.reply_source import ReplySource

if TYPE_CHECKING:
    from cogwork.client.context import LinkContext
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.client.publishing.senders import Senders
    from cogwork.dataplane.message.messages import Message

__all__ = ("CONDITION", "DESCRIPTION", "Replies")

log = logging.getLogger("cogwork.client")

CREDIT = 1000

CONDITION, DESCRIPTION = "cogwork:condition", "cogwork:description"
"""Application-properties of a reply that reports an error."""


class Replies(ReplySource):
    """A dynamic source, and the calls that wait for what comes there."""

    def __init__(self, client: LinkContext) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
        """
        super().__init__(client, Source(dynamic=True), CREDIT)
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._ids = correlation_ids()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Attach, and begin to match replies."""
        await super().open()
        self._task = asyncio.create_task(self._match())

    async def _match(self) -> None:
        async for reply in self:
            waiting = self._waiting.pop(self._id_of(reply), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)

    def _id_of(self, reply: Message) -> str:
        try:
            found = reply.correlation_id
        except ProtocolError as error:  # one that cannot be read must not keep back the others
            log.info("cannot read a reply: %s", error)
            return ""
        return found if isinstance(found, str) else ""

    async def request(
        self, senders: Senders, address: str, request: Message, ttl_s: float
    ) -> Message:
        """Send a request and wait for its reply.

        Args:
            senders: Find the link that it is sent on.
            address: Who is asked.
            request: Gets its correlation-id, reply-to and time to live here.
            ttl_s: When nobody will wait for the reply any more, in seconds from now.

        Raises:
            CallFailed: The reply reports an error.
            Released: Nobody is there to answer.
            Disconnected: The connection broke; the request may have been handled.
        """
        publisher = await self._way(senders, address)
        correlation_id = next(self._ids)
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        request.correlation_id = correlation_id
        request.reply_to = self.reply_to
        if request.ttl_s is None:
            request.ttl_s = ttl_s
        post = publisher.post(request)
        post.on_error = partial(_fail, waiting)
        self._waiting[correlation_id] = waiting
        try:
            reply = await waiting
        except BaseException:
            post.withdraw()  # nobody waits for it any more, if it has not been sent yet
            raise
        finally:
            self._waiting.pop(correlation_id, None)
        return _checked(address, reply)

    async def _way(self, senders: Senders, address: str) -> Publisher:
        """Wait until there is an address for replies, and a link to send on at the same time."""
        while True:
            await self.addressed()
            relay = None if address.startswith("$") else senders.relay()
            publisher = relay or await senders.sender_for(address)
            if self.reply_to:
                return publisher

    def close_with(self, error: Exception) -> None:
        """Match no more."""
        super().close_with(error)
        if self._task is not None:
            self._task.cancel()

    def lost(self, error: Exception | None) -> None:
        """Fail the calls that wait."""
        said = "the connection was lost; the request may have been handled"
        reason = error or Disconnected(said)
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            _fail(future, reason)


def _fail(waiting: asyncio.Future[Message], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)


def _checked(address: str, reply: Message) -> Message:
    condition = reply.properties.get(CONDITION)
    if condition is None:
        return reply
    raise CallFailed(address, Symbol(str(condition)), str(reply.properties.get(DESCRIPTION, "")))
