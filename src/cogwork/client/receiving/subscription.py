"""Subscriptions: receivers of topics, whose patterns change while they stand."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.performatives import SenderSettleMode
from cogwork.amqp.terminus import Source
from cogwork.client.errors import CallTimeout, Disconnected, InDoubt, LinkDetached, Released
from cogwork.client.links.receiver import Receiver, checked_credit, filters_of
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from cogwork.client.context import ClientContext
    from cogwork.dataplane.link import Link

__all__ = ("Subscription",)

BIND_PAUSE_S = 0.2
"""Between attempts to bind again what was bound, where the container does not answer that."""


class Subscription(Receiver[Message]):
    """Receives copies of messages; made by `Client.subscribe`."""

    client: ClientContext

    def __init__(
        self,
        client: ClientContext,
        address: str,
        credit: int,
        selector: str | None = None,
        *,
        no_local: bool = False,
        settled: bool = False,
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: What to receive; may hold wildcards.
            credit: Messages that may be on their way or waiting.
            selector: Which messages it wants; None for all.
            no_local: Whether messages that this connection sent are left out.
            settled: Whether messages are sent without waiting for this subscriber's answer.
        """
        source = Source(address=address, filter=filters_of(selector, no_local))
        super().__init__(
            client, source, Inbox(client.flusher, client.create_future, checked_credit(credit))
        )
        if settled:
            self.snd_settle_mode = SenderSettleMode.SETTLED
        self._own = self._whole(address)
        self._changed: dict[str, bool] = {}

    async def bind(self, pattern: str) -> None:
        """Receive what matches one more pattern, from now on.

        Args:
            pattern: Words split by `.`; `*` is one word, `#` any number. With the address's
                prefix or without: `flights.JFK.#` is `topic/flights.JFK.#`.

        Raises:
            LinkRefused: The pattern is none, or not allowed.
        """
        pattern = self._whole(pattern)
        await self._change(pattern, is_bound=True)
        self._changed[pattern] = True

    async def unbind(self, pattern: str) -> None:
        """Receive what matches a pattern no more.

        Args:
            pattern: As it was bound, or as the address had it.

        Raises:
            LinkRefused: The container does not do it; what was bound stays bound.
        """
        pattern = self._whole(pattern)
        before = self._changed.get(pattern)
        was_bound = self._is_wanted(pattern)
        self._changed[pattern] = False  # before it is done: a new link must not bind it meanwhile
        try:
            await self._change(pattern, is_bound=False)
        except BaseException:
            del self._changed[pattern]
            if before is not None:
                self._changed[pattern] = before
            if was_bound and self.link is not None and self.failure is None:
                self.client.spawn(self._set(self.link, pattern, is_bound=True))
            raise
        if pattern != self._own:
            self._changed.pop(pattern, None)

    async def _change(self, pattern: str, *, is_bound: bool) -> None:
        """Have the container bind or unbind a pattern, on the link of that time."""
        while True:
            link = self.link
            try:
                await self._ask(pattern, is_bound=is_bound)
            except Disconnected:
                if self.failure is not None:
                    raise
                await asyncio.sleep(BIND_PAUSE_S)
                continue
            if self.link is link:
                return

    async def _ask(self, pattern: str, *, is_bound: bool) -> None:
        """Ask for it once; by the link's name, which no other link has, on whatever connection."""
        asked_for = {"type": "link", "name": self.name, "pattern": pattern}
        await self.client.manage("SUBSCRIBE" if is_bound else "UNSUBSCRIBE", asked_for)

    def _is_wanted(self, pattern: str) -> bool:
        """Return whether a pattern is to be bound, by the address or by what was asked since."""
        return self._changed.get(pattern, pattern == self._own)

    def _whole(self, pattern: str) -> str:
        """Return a pattern as an address: with the prefix of the subscription's, `topic/`."""
        if "/" in pattern:
            return pattern.removeprefix("/")
        address = self.address.removeprefix("/")
        return f"{address[: address.find('/') + 1]}{pattern}"

    def attached(self, link: Link) -> None:
        """Give credit, and bind again what was bound; unbinds what only the address binds."""
        super().attached(link)
        if self._changed:
            self.client.spawn(self._change_again(link))

    async def _change_again(self, link: Link) -> None:
        """Give a new link the patterns of the one before."""
        for pattern, is_bound in list(self._changed.items()):
            await self._set(link, pattern, is_bound=is_bound)

    async def _set(self, link: Link, pattern: str, *, is_bound: bool) -> None:
        """Bind a pattern to a link, or unbinds it; the subscription ends where that cannot be.

        The next link is given all patterns anyway, and whoever changes this one does it himself.
        """
        try:
            while self.link is link and self._is_wanted(pattern) is is_bound:
                with suppress(CallTimeout, InDoubt, Released):
                    await self._ask(pattern, is_bound=is_bound)
                    return
                await asyncio.sleep(BIND_PAUSE_S)
        except Disconnected:
            return
        except CogworkError as error:
            self._end_without(pattern, error)

    def _end_without(self, pattern: str, error: CogworkError) -> None:
        """Let the application know that it will not get all that it asked for."""
        condition = getattr(error, "condition", None)
        what = "is not bound any more" if self._is_wanted(pattern) else "cannot be unbound again"
        text = f"{pattern!r} {what}: {error}"
        self._leave()
        self.fail(LinkDetached(self.address, condition, text))
