"""Subscriptions: receivers of topics, whose patterns change while they stand."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.performatives import SenderSettleMode
from cogwork.amqp.terminus import Source
from cogwork.amqp.types import Symbol
from cogwork.client.errors import CallTimeout, Disconnected, InDoubt, LinkDetached, Released
from cogwork.client.receiver import Receiver, filters_of
from cogwork.dataplane.inbox import Inbox
from cogwork.dataplane.messages import Message

if TYPE_CHECKING:
    from cogwork.client.mesh import Mesh
    from cogwork.dataplane.link import Link

__all__ = ("Subscription",)

LINK_ID = Symbol("cogwork:link-id")
"""The property of the container's attach that names the link to `$management`."""


BIND_PAUSE_S = 0.2
"""Between attempts to bind again what was bound, where the container does not answer that."""


class Subscription(Receiver[Message]):
    """Receives copies of messages; made by `Mesh.subscribe`."""

    def __init__(
        self,
        mesh: Mesh,
        address: str,
        credit: int,
        selector: str | None = None,
        *,
        no_local: bool = False,
        settled: bool = False,
    ) -> None:
        """Is not attached yet.

        Args:
            mesh: Keeps it attached.
            address: What to receive; may hold wildcards.
            credit: Messages that may be on their way or waiting.
            selector: Which messages it wants; None for all.
            no_local: Whether messages that this connection sent are left out.
            settled: Whether messages are sent without waiting for this subscriber's answer.
        """
        source = Source(address=address, filter=filters_of(selector, no_local))
        super().__init__(mesh, source, Inbox(mesh.flusher, mesh.create_future, credit))
        if settled:
            self.snd_settle_mode = SenderSettleMode.SETTLED
        self._patterns: list[str] = []
        self._link_id = self.name

    async def bind(self, pattern: str) -> None:
        """Receives what matches one more pattern, from now on.

        Args:
            pattern: Words split by `.`; `*` is one word, `#` any number. With the address's
                prefix or without: `flights.JFK.#` is `topic/flights.JFK.#`.

        Raises:
            LinkRefused: The pattern is none, or not allowed.
        """
        await self._change("SUBSCRIBE", pattern)
        if pattern not in self._patterns:
            self._patterns.append(pattern)

    async def unbind(self, pattern: str) -> None:
        """Receives what matches a pattern no more.

        Args:
            pattern: As it was bound, or as the address had it.

        Raises:
            LinkRefused: The container does not do it.
        """
        await self._change("UNSUBSCRIBE", pattern)
        if pattern in self._patterns:
            self._patterns.remove(pattern)

    async def _change(self, operation: str, pattern: str) -> None:
        address = pattern if "/" in pattern else f"{self._prefix}{pattern}"
        asked_for = {"type": "link", "name": self._link_id, "pattern": address}
        await self.mesh.manage(operation, asked_for)

    @property
    def _prefix(self) -> str:
        """What stands before the pattern in the address: `topic/`."""
        return self.address[: self.address.find("/", 1) + 1]

    def attached(self, link: Link) -> None:
        """Gives credit, and binds again what was bound."""
        super().attached(link)
        assert link.remote is not None
        self._link_id = str((link.remote.properties or {}).get(LINK_ID, self.name))
        if self._patterns:
            self.mesh.spawn(self._bind_again(link))

    async def _bind_again(self, link: Link) -> None:
        """Binds to a link what was bound; ends the subscription where that cannot be."""
        for pattern in list(self._patterns):
            try:
                while self.link is link:  # the next link binds all by itself
                    with suppress(CallTimeout, InDoubt, Released):
                        await self._change("SUBSCRIBE", pattern)
                        break
                    await asyncio.sleep(BIND_PAUSE_S)
            except Disconnected:
                return
            except CogworkError as error:
                self._end_without(pattern, error)
                return

    def _end_without(self, pattern: str, error: CogworkError) -> None:
        """Lets the application know that it will not get all that it asked for."""
        condition = getattr(error, "condition", None)
        text = f"{pattern!r} is not bound any more: {error}"
        self._leave()
        self.fail(LinkDetached(self.address, condition, text))
