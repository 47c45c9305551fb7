"""One driver instance's connection, as the event loop's thread has it.

Theory of operation. The client mends what breaks. Here it is made in the first place, and
anew where it has given up for good (a password that has changed); everybody who waits for it is
told of each attempt that fails, so that a bounded number of retries is a bounded wait.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import random
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.types import Symbol
from cogwork.client.client import Client
from cogwork.client.errors import ConnectError, Disconnected
from cogwork.oslo.addresses import addresser_for
from cogwork.oslo.replies import Replies
from cogwork.oslo.senders import RELAY, Senders

if TYPE_CHECKING:
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.oslo.addresses import Addresser
    from cogwork.oslo.loop_thread import LoopThread
    from cogwork.oslo.sending import Sending
    from cogwork.oslo.settings import Settings
    from cogwork.oslo.subscription import Subscription

__all__ = ("Connection",)

PURGE_INTERVAL_S = 30.0
LAST_WORDS_S = 1.0
"""How long closing waits for replies that are on their way out."""

PRODUCT = Symbol("product")

log = logging.getLogger("cogwork.oslo")


class Connection:
    """The connection; all but `thread` and `settings` belongs to the loop's thread.

    Attributes:
        settings: The driver instance's.
        thread: The loop's.
        sendings: The messages on their way.
        subscriptions: What listeners receive by.
        last_error: Why the last attempt to connect failed; None where it did not.
    """

    def __init__(self, settings: Settings, thread: LoopThread) -> None:
        """Initialize it; it does not connect yet.

        Args:
            settings: How to.
            thread: Where it lives.
        """
        self.settings = settings
        self.thread = thread
        self.sendings: set[Sending] = set()
        self.subscriptions: set[Subscription] = set()
        self.last_error: Exception | None = None
        self._client: Client | None = None
        self._senders: Senders | None = None
        self._replies: Replies | None = None
        self._opening_replies: asyncio.Task[Replies] | None = None
        self._connecting: asyncio.Task[Client] | None = None
        self._purging: asyncio.TimerHandle | None = None
        self._addresser: tuple[int, Addresser] | None = None
        self._is_closed = False

    # -- connecting

    async def connected(self) -> Client:
        """Return the mesh, connected if need be; wait for as long as that takes.

        Raises:
            Disconnected: The driver was cleaned up meanwhile.
        """
        if self._is_closed:
            raise Disconnected("the driver was cleaned up")
        if self._client is not None:
            return self._client
        if self._connecting is None:
            self._connecting = self.thread.spawn(self._connect())
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> Client:
        settings = self.settings
        name = f"oslo-{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        if settings.has_own_name:
            name = settings.client.name
        options = replace(settings.client, name=name, on_attempt_failed=self._on_attempt_failed)
        for wait_s in options.retry.waits_s(random.random):
            client = Client(settings.endpoints, options)
            try:
                await client.__aenter__()
            except ConnectError as error:
                self._on_attempt_failed(error)
                await asyncio.sleep(wait_s)
                continue
            self._take(client)
            return client
        raise AssertionError("the waits have no end")

    def _take(self, client: Client) -> None:
        self._client, self._connecting, self.last_error = client, None, None
        self._senders = Senders(client)
        self._addresser = None
        self._purging = self.thread.loop.call_later(PURGE_INTERVAL_S, self._purge)
        log.info("connected to %s", client.endpoint)

    def _on_attempt_failed(self, error: Exception) -> None:
        self.last_error = error
        log.warning("cannot connect: %s", error)
        for sending in list(self.sendings):
            sending.on_attempt_failed(error)

    def renew(self, client: Client) -> None:
        """Make another connection, as this one has been given up for good."""
        if client is not self._client:
            return
        self._client = self._senders = self._replies = None
        if self._purging is not None:
            self._purging.cancel()
        self.thread.spawn(client.close())

    @property
    def is_closed(self) -> bool:
        """Whether the driver was cleaned up: it is not connected again."""
        return self._is_closed

    @property
    def is_up(self) -> bool:
        """Whether it stands at present."""
        return self._client is not None and self._client.is_connected

    # -- what sends

    @property
    def addresser(self) -> Addresser:
        """Makes the addresses for the intermediary at the other end; only once connected."""
        client = self._client
        assert client is not None
        if self._addresser is None or self._addresser[0] != client.connections:
            with suppress(Disconnected):
                product = (client.container.properties or {}).get(PRODUCT)
                made = addresser_for(
                    self.settings.addresses, None if product is None else str(product)
                )
                self._addresser = (client.connections, made)
        assert self._addresser is not None
        return self._addresser[1]

    @property
    def has_addresser(self) -> bool:
        """Whether it is known what the other end is."""
        return self._client is not None and (
            self._addresser is not None or self._client.is_connected
        )

    @property
    def has_relay(self) -> bool:
        """Whether the intermediary takes messages that name their address themselves."""
        return self._client is not None and self._client.has_relay

    def find_sender(self, address: str) -> Publisher | None:
        """Return the link to an address where it stands: the way that costs nothing."""
        return self._senders.find(address) if self._senders is not None else None

    async def sender(self, address: str) -> Publisher:
        """Return the link to an address, attached if need be.

        Raises:
            LinkRefused: The intermediary does not let this client send there.
            Disconnected: The connection has been given up; another one is on its way.
        """
        client = await self.connected()
        assert self._senders is not None
        try:
            return await self._senders.open(address)
        except Disconnected:
            self.renew(client)
            raise

    def reply_sender_address(self, reply_to: str) -> str:
        """Return what the link is attached to that carries a reply."""
        return RELAY if self.has_relay else reply_to

    # -- replies

    @property
    def replies(self) -> Replies | None:
        """The source of replies where it stands."""
        replies = self._replies
        return replies if replies is not None and replies.reply_to else None

    async def reply_source(self) -> Replies:
        """Return the source of replies, attached if need be, with an address.

        Raises:
            LinkRefused: The intermediary gives none.
            Disconnected: The connection has been given up; another one is on its way.
        """
        client = await self.connected()
        replies = self._replies
        if replies is None or replies.failure is not None:
            if self._opening_replies is None or self._opening_replies.done():
                self._opening_replies = self.thread.spawn(self._open_replies(client))
            try:
                replies = await asyncio.shield(self._opening_replies)
            except Disconnected:
                self.renew(client)
                raise
        await replies.addressed()
        return replies

    def forget_call(self, message_id: str) -> None:
        """Take no reply any more for a call that has ended."""
        if self._replies is not None:
            self._replies.calls.pop(message_id, None)

    async def _open_replies(self, client: Client) -> Replies:
        await self.identified()
        replies = Replies(client, self.settings.reply_credit, self.addresser.reply_prefix)
        await replies.open()
        self._replies = replies
        return replies

    async def identified(self) -> None:
        """Wait until it is known what is at the other end."""
        while not self.has_addresser:
            client = await self.connected()
            if not client.is_connected:
                await asyncio.sleep(IDENTIFY_PAUSE_S)

    # -- the end

    def _purge(self) -> None:
        self._purging = self.thread.loop.call_later(PURGE_INTERVAL_S, self._purge)
        if self._senders is not None:
            self._senders.purge(self.settings.sender_idle_s)

    async def close(self) -> None:
        """End everything; what still waits is told so."""
        self._is_closed = True
        await asyncio.gather(*(each.close() for each in list(self.subscriptions)))
        limit_s = self.thread.loop.time() + LAST_WORDS_S
        while any(not each.waits for each in self.sendings) and self.is_up:
            if self.thread.loop.time() > limit_s:
                break
            await asyncio.sleep(IDENTIFY_PAUSE_S)
        for sending in list(self.sendings):
            sending.on_cleaned_up()
        tasks: list[asyncio.Task[Any]] = [
            task for task in (self._connecting, self._opening_replies) if task is not None
        ]
        for task in tasks:
            task.cancel()
        if self._purging is not None:
            self._purging.cancel()
        client, self._client = self._client, None
        if client is not None:
            with suppress(CogworkError):
                await client.close()


IDENTIFY_PAUSE_S = 0.02
