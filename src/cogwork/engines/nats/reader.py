"""Who reads the log of a stream on NATS JetStream."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

from nats.errors import ConnectionClosedError
from nats.errors import Error as NatsError

from cogwork.engines.nats.errors import translated
from cogwork.engines.shared.server import ServerDown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

__all__ = ("NatsReader",)

PULL_ENTRIES = 256
PULL_BYTES = 4 << 20
PULL_EXPIRES_S = 5.0
HEARTBEAT_S = 0.5
SILENCE_S = 1.5
"""A consumer that sends not even heartbeats for so long has died with its server."""
STATUS = "Status"


class NatsReader:
    """Reads a log from a position on, and follows it.

    Args:
        client: The connection.
        stream: The stream's name there.
        consumer: The consumer's.
        subscription: Where what was asked for arrives.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        consumer: str,
        subscription: Subscription,
    ) -> None:
        self._client = client
        self._stream = stream
        self._consumer = consumer
        self._subscription = subscription
        self._asked = 0
        self._heard_s = 0.0

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Return what follows; nothing where nothing came in time."""
        entries: list[tuple[int, bytes]] = []
        limit_s = asyncio.get_running_loop().time() + wait_s
        while not entries:
            now_s = asyncio.get_running_loop().time()
            if now_s >= limit_s:
                break
            if not self._asked:
                await self._ask()
            if now_s > self._heard_s + SILENCE_S:
                raise ServerDown("NATS: the consumer does not answer", may_have_happened=False)
            wait_s = min(limit_s - now_s, SILENCE_S)
            with contextlib.suppress(TimeoutError), translated(passing=TimeoutError):
                self._take(await self._message(wait_s), entries)
                while self._subscription.pending_msgs:
                    self._take(await self._message(1), entries)
        return entries

    async def _message(self, wait_s: float) -> Msg:
        try:
            return await self._subscription.next_msg(wait_s)
        except ConnectionClosedError as error:
            # Of a task that was cancelled the library says that, too, once it is closed.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from error
            raise

    async def close(self) -> None:
        """End it; the server forgets the consumer by itself where it cannot be told."""
        with contextlib.suppress(NatsError, OSError, TimeoutError):
            await self._subscription.unsubscribe()
            if self._client.is_connected:
                request = f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._consumer}"
                await self._client.publish(request)

    async def _ask(self) -> None:
        """Ask for as much as there is room for."""
        request = {
            "batch": PULL_ENTRIES,
            "max_bytes": max(PULL_BYTES, self._client.max_payload * 2),
            "expires": int(PULL_EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        with translated():
            await self._client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}",
                json.dumps(request).encode(),
                self._subscription.subject,
            )
        self._asked = PULL_ENTRIES
        self._heard_s = asyncio.get_running_loop().time()

    def _take(self, message: Msg, entries: list[tuple[int, bytes]]) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        status = (message.headers or {}).get(STATUS)
        if status is None:
            self._asked -= 1
            entries.append((message.metadata.sequence.stream, message.data))
        elif status in ("404", "408", "409"):
            self._asked = 0
        elif status != "100":
            raise ServerDown(f"NATS: the consumer is gone ({status})", may_have_happened=False)
