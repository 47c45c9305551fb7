"""Listeners: what a server polls.

Theory of operation. The links of a listener belong to the loop's thread, which puts what arrives
into a mailbox. The thread that polls takes it out, message by message or in batches. To stop is to
drain the links first: what was under way is in the mailbox then, and is still handed over; what is
not, even so, goes back to where it came from.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from oslo_messaging._drivers import base

from cogwork.oslo import wire
from cogwork.oslo.incoming import Incoming
from cogwork.oslo.mailbox import Mailbox
from cogwork.oslo.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.client.items import Item
    from cogwork.oslo.addresses import Addresser
    from cogwork.oslo.connection import Connection
    from cogwork.oslo.incoming import Notification, RpcRequest

    Source = tuple[Callable[[Addresser], str], Symbol]

__all__ = ("PollListener",)

ATTACH_TIMEOUT_S = 10.0
"""How long to listen waits for its links; without an intermediary they come later."""

CLOSE_TIMEOUT_S = 10.0

log = logging.getLogger("cogwork.oslo")


class PollListener(base.PollStyleListener):  # type: ignore[misc]  # untyped library
    """Receives from some addresses."""

    def __init__(
        self,
        connection: Connection,
        sources: Sequence[Source],
        credit: int,
        kind: Callable[[Connection, Item, wire.Request], RpcRequest | Notification],
        prefetch_size: int = -1,
    ) -> None:
        """Subscribe, and wait until that is done.

        Args:
            connection: What it goes by.
            sources: How to make each address, and the distribution mode there.
            credit: Messages ahead, for each of them.
            kind: Makes what is handed over.
            prefetch_size: What no batch is larger than; without effect where it is not positive.
        """
        super().__init__(prefetch_size)
        self._connection = connection
        self._kind = kind
        self._mailbox: Mailbox[Item] = Mailbox()
        self._subscriptions: list[Subscription] = []
        self._sources = sources
        self._credit = credit
        if connection.thread.run(self._subscribe, ATTACH_TIMEOUT_S) is None:
            log.warning("not subscribed yet: %s", connection.last_error or "no answer yet")

    async def _subscribe(self) -> bool:
        for find_address, mode in self._sources:
            self._subscriptions.append(
                Subscription(self._connection, find_address, mode, self._credit, self._mailbox.put)
            )
        for subscription in self._subscriptions:
            await subscription.attached()
        return True

    def poll(
        self,
        timeout: float | None = None,
        batch_size: int | None = 1,
        batch_timeout: float | None = None,
    ) -> list[RpcRequest | Notification]:
        """Return what has arrived.

        Args:
            timeout: How long to wait for the first message, in seconds; None for ever.
            batch_size: How many messages to wait for.
            batch_timeout: How long to wait for more after the first one.
        """
        count_max = batch_size or 1
        if self.prefetch_size > 0:
            count_max = min(count_max, self.prefetch_size)
        batch: list[RpcRequest | Notification] = []
        deadline_s = None if timeout is None else time.monotonic() + timeout
        while len(batch) < count_max:
            left_s = None if deadline_s is None else max(deadline_s - time.monotonic(), 0)
            item = self._mailbox.take(left_s)
            if item is None:
                break
            made = self._read(item)
            if made is None:
                continue
            if not batch:
                deadline_s = None if batch_timeout is None else time.monotonic() + batch_timeout
            batch.append(made)
        return batch

    def _read(self, item: Item) -> RpcRequest | Notification | None:
        try:
            return self._kind(self._connection, item, wire.read_request(item))
        except wire.Unreadable as error:
            Incoming(self._connection, item).refuse(str(error))
            return None

    def stop(self) -> None:
        """Ask for no more; what is under way can still be polled."""
        self._connection.thread.run(self._stop, CLOSE_TIMEOUT_S)
        self._mailbox.shut()

    async def _stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._subscriptions))

    def cleanup(self) -> None:
        """Detach; what nobody polled goes back."""
        self._mailbox.shut()
        for item in self._mailbox.empty():
            Incoming(self._connection, item).give_back()
        self._connection.thread.run(self._close, CLOSE_TIMEOUT_S)

    async def _close(self) -> None:
        await asyncio.gather(*(each.close() for each in self._subscriptions))
