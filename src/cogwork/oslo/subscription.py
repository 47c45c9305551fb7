"""One receiving link of a listener, attached for as long as the listener lives."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.terminus import Source
from cogwork.client.errors import Disconnected
from cogwork.client.receiving.consumer import Consumer

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.client.items import Item
    from cogwork.oslo.addresses import Addresser
    from cogwork.oslo.connection import Connection

__all__ = ("Subscription",)

log = logging.getLogger("cogwork.oslo")


class Subscription:
    """Receives from one address; lives on the loop's thread."""

    def __init__(
        self,
        connection: Connection,
        find_address: Callable[[Addresser], str],
        mode: Symbol,
        credit: int,
        take: Callable[[list[Item]], object],
    ) -> None:
        """Initialize it; it does not receive yet.

        Args:
            connection: What it goes by.
            find_address: Makes the address for the intermediary at the other end.
            mode: Whether messages are shared out among receivers (`move`), or each gets its own
                (`copy`).
            credit: Messages that may be on their way, waiting, or being looked at.
            take: Gets what arrives.
        """
        self._connection = connection
        self._find_address = find_address
        self._mode = mode
        self._credit = credit
        self._take = take
        self._consumer: Consumer | None = None
        self._is_shut = False
        self._is_attached = asyncio.Event()
        self._task = connection.thread.spawn(self._receive())
        connection.subscriptions.add(self)

    async def attached(self) -> None:
        """Wait until it is attached for the first time."""
        await self._is_attached.wait()

    async def _receive(self) -> None:
        """Attach, and again whenever the link is ended, until it is closed."""
        connection = self._connection
        while True:
            try:
                client = await connection.connected()
                await connection.identified()
                address = self._find_address(connection.addresser)
                source = Source(address=address, distribution_mode=self._mode)
                consumer = Consumer(client, address, self._credit, confirms=False, source=source)
            except Disconnected:
                return
            try:
                await consumer.open()
                self._consumer = consumer
                self._is_attached.set()
                async for batch in consumer.batches():
                    if not self._is_shut:
                        self._take(batch)
                return
            except Disconnected:
                connection.renew(client)
            except CogworkError as error:
                retry_s = connection.settings.link_retry_s
                log.warning("%s; retrying in %g s", error, retry_s)
                await asyncio.sleep(retry_s)

    async def stop(self) -> None:
        """Ask for no more, and take what is under way.

        Where that cannot be asked for, what still comes is left unsettled, and goes back when the
        link is detached.
        """
        if self._consumer is None:
            return
        if not self._may_drain():
            self._is_shut = True
            return
        with suppress(CogworkError):
            await self._consumer.stop()

    async def close(self) -> None:
        """Detach; what was not acknowledged is given back."""
        self._connection.subscriptions.discard(self)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        with suppress(CogworkError):
            if self._may_drain():
                await consumer.__aexit__(None, None, None)
            else:
                await consumer.shut()

    def _may_drain(self) -> bool:
        """Whether there is a connection, and it can be asked for no more."""
        return self._connection.has_addresser and self._connection.addresser.drains
