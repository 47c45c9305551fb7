"""Where the replies to a driver instance's calls arrive: one link, with a dynamic source.

At an intermediary without dynamic sources it is a node with a name that nobody else has.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.terminus import ExpiryPolicy, Source
from cogwork.client.requests.reply_source import ReplySource

if TYPE_CHECKING:
    from cogwork.client.client import Client
    from cogwork.dataplane.message.messages import Message

__all__ = ("Replies", "Waiting")


class Waiting(Protocol):
    """A call that waits."""

    def on_reply(self, reply: Message) -> None:
        """Take a reply, or a heartbeat: a reply without a body."""

    def on_replies_lost(self) -> None:
        """No reply can come any more."""


class Replies(ReplySource):
    """The source, and the calls that wait for what comes there.

    Attributes:
        calls: Those that wait, by the message-id of their requests.
    """

    def __init__(self, client: Client, credit: int, prefix: str | None) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            credit: Replies that may be on their way.
            prefix: What its address begins with; None for a dynamic source.
        """
        self._named = f"{prefix}{secrets.token_hex(16)}" if prefix else None
        source = Source(
            address=self._named,
            dynamic=self._named is None,
            expiry_policy=ExpiryPolicy.LINK_DETACH,
        )
        super().__init__(client, source, credit)
        self.calls: dict[str, Waiting] = {}
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Attach, and begin to hand out replies."""
        await super().open()
        self._task = asyncio.get_running_loop().create_task(self._hand_out())

    async def _hand_out(self) -> None:
        async for reply in self:
            call = self.calls.get(str(reply.correlation_id))
            if call is not None:
                call.on_reply(reply)

    def close_with(self, error: Exception) -> None:
        """Hand out no more."""
        super().close_with(error)
        if self._task is not None:
            self._task.cancel()

    def lost(self, error: Exception | None) -> None:
        """Tell the calls that wait; to an address with a name, replies may come yet."""
        if error is not None or self._named is None:
            for call in list(self.calls.values()):
                call.on_replies_lost()
