"""A way to servers: a connection, the links that calls leave on, the link where replies come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.rpc.calling.replies import Replies
from cogwork.rpc.calling.targets import Targets, shared

if TYPE_CHECKING:
    import asyncio

    from cogwork.client.context import LinkContext
    from cogwork.rpc.calling.call import Call
    from cogwork.rpc.calling.targets import Target
    from cogwork.rpc.direct.adaptive_spin import AdaptiveSpin
    from cogwork.rpc.wheel import Wheel

__all__ = ("Route",)


class Route:
    """One connection, as calls see it.

    Attributes:
        client: The connection.
        wheel: The deadlines of all its calls.
        targets: Where calls leave.
        replies: Where replies come; None until the first call.
        spin: Looks for a reply before its caller sleeps; None where nobody does.
    """

    spin: AdaptiveSpin | None = None

    def __init__(self, client: LinkContext, wheel: Wheel) -> None:
        """Start with no links yet.

        Args:
            client: The connection.
            wheel: For deadlines.
        """
        self.client = client
        self.wheel = wheel
        self.targets = Targets(client, wheel)
        self.replies: Replies | None = None
        self._opening: asyncio.Task[Replies] | None = None

    def looks_for(self, call: Call) -> bool:
        """Wait a moment for a reply, without sleeping; return whether it has come."""
        spin, replies = self.spin, self.replies
        if spin is None or replies is None or len(replies.calls) > 1:
            return False
        if call.post is None or call.post.queued:
            return False
        return spin.look(call.future)

    async def open_replies(self) -> Replies:
        """Open the link for replies once, and again where it was ended; wait for its address.

        Raises:
            CogworkError: There will be none.
        """
        replies = self.replies
        if replies is None or replies.failure is not None:
            if self._opening is None or self._opening.done():
                self._opening = self.client.spawn(self._opened())
            replies = await shared(self._opening)
        await replies.addressed()
        return replies

    async def _opened(self) -> Replies:
        replies = Replies(self.client)
        await replies.open()
        self.replies = replies
        return replies

    async def open(self, address: str) -> tuple[Target, Replies]:
        """Open what a call to an address needs.

        Raises:
            LinkRefused: The container does not let this client send there.
        """
        replies = await self.open_replies()
        target = await self.targets.open(address)
        return target, replies
