"""Where the replies to a driver instance's calls arrive: one link, with a dynamic source.

At an intermediary without dynamic sources it is a node with a name that nobody else has.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.terminus import ExpiryPolicy, Source
from cogwork.client.receiver import Receiver
from cogwork.dataplane.inbox import Inbox
from cogwork.dataplane.messages import Message

if TYPE_CHECKING:
    from cogwork.client.mesh import Mesh
    from cogwork.dataplane.link import Link

__all__ = ("Replies", "Waiting")


class Waiting(Protocol):
    """A call that waits."""

    def on_reply(self, reply: Message) -> None:
        """Takes a reply, or a heartbeat: a reply without a body."""

    def on_replies_lost(self) -> None:
        """No reply can come any more."""


class Replies(Receiver[Message]):
    """The source, and the calls that wait for what comes there.

    Attributes:
        reply_to: The address of the source; empty while there is none.
        calls: Those that wait, by the message-id of their requests.
    """

    def __init__(self, mesh: Mesh, credit: int, prefix: str | None) -> None:
        """Is not attached yet.

        Args:
            mesh: Keeps it attached.
            credit: Replies that may be on their way.
            prefix: What its address begins with; None for a dynamic source.
        """
        self._named = f"{prefix}{uuid.uuid4().hex}" if prefix else None
        source = Source(
            address=self._named,
            dynamic=self._named is None,
            expiry_policy=ExpiryPolicy.LINK_DETACH,
        )
        super().__init__(mesh, source, Inbox(mesh.flusher, mesh.create_future, credit))
        self.reply_to = ""
        self.calls: dict[str, Waiting] = {}
        self._has_address = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Attaches, and begins to hand out replies."""
        await super().open()
        self._task = asyncio.get_running_loop().create_task(self._hand_out())

    async def addressed(self) -> None:
        """Waits until there is an address.

        Raises:
            CogworkError: The link ended for good.
        """
        await self._has_address.wait()
        if self.failure is not None:
            raise self.failure

    async def _hand_out(self) -> None:
        async for reply in self:
            call = self.calls.get(str(reply.correlation_id))
            if call is not None:
                call.on_reply(reply)

    # -- the link

    def attached(self, link: Link) -> None:
        """Learns where replies go."""
        assert link.remote is not None
        assert link.remote.source is not None
        self.reply_to = self._named or link.remote.source.address or ""
        self._has_address.set()
        super().attached(link)

    def detached(self) -> None:
        """A dynamic address is gone, and with it every reply that was on its way."""
        super().detached()
        self.reply_to = ""
        self._has_address.clear()
        if self._named is None:
            self._give_up()

    def close_with(self, error: Exception) -> None:
        """Tells the calls that wait."""
        super().close_with(error)
        self.reply_to = ""
        self._has_address.set()
        self._give_up()
        if self._task is not None:
            self._task.cancel()

    def _give_up(self) -> None:
        for call in list(self.calls.values()):
            call.on_replies_lost()
