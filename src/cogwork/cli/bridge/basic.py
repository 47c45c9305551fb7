"""Ends of routes by AMQP 0-9-1: RabbitMQ, and whatever speaks as it does; through pika."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pika.adapters.asyncio_connection import AsyncioConnection
from pika.exceptions import (
    AMQPError,
    ChannelClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from cogwork.cli.bridge.contract import BasicCopy, Lost, Source, Stopped, Taken, Target
from cogwork.cli.migration.basic import endpoint_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pika import BasicProperties
    from pika.channel import Channel
    from pika.spec import Basic

    from cogwork.cli.bridge.contract import Copy
    from cogwork.client.connection.url import Endpoint

__all__ = ("BasicSource", "BasicTarget")

TAKE_MAX = 1000
CLOSE_S = 5.0
NOT_FOUND, ACCESS_REFUSED = 404, 403
NO_RETRY = (ProbableAccessDeniedError, ProbableAuthenticationError)


class _Channel:
    """A connection with one channel; both end together."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: Where to.
        """
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._connection: AsyncioConnection | None = None
        self.channel: Channel | None = None

    async def open(self) -> Channel:
        """Connect, and open the channel.

        Raises:
            Lost: The broker cannot be reached.
            Stopped: It refuses the login.
        """
        opened: asyncio.Future[Any] = self._loop.create_future()
        self._connection = AsyncioConnection(
            endpoint_parameters(self._endpoint),
            on_open_callback=lambda connection: _set(opened, connection),
            on_open_error_callback=lambda _, error: _fail(opened, error),
            on_close_callback=lambda _, error: self._on_closed(error),
            custom_ioloop=self._loop,
        )
        await self.answered(opened)
        made: asyncio.Future[Channel] = self._loop.create_future()
        self._connection.channel(on_open_callback=lambda channel: _set(made, channel))
        self.channel = await self.answered(made)
        self.channel.add_on_close_callback(lambda _, error: self._on_closed(error))
        return self.channel

    def _on_closed(self, error: object) -> None:
        _fail(self._lost, error)

    async def answered(self, future: asyncio.Future[Any]) -> Any:  # noqa: ANN401  # what is waited for
        """Wait for an answer, or for the loss of the connection.

        Raises:
            Lost: There will be no answer.
            Stopped: The broker refuses what is asked.
        """
        await asyncio.wait((future, self._lost), return_when=asyncio.FIRST_COMPLETED)
        try:
            if future.done():
                return future.result()
            self._lost.result()
        except NO_RETRY as error:
            raise Stopped(f"{self._endpoint}: {_words(error)}") from error
        except ChannelClosedByBroker as error:
            if error.reply_code in (NOT_FOUND, ACCESS_REFUSED):
                raise Stopped(f"{self._endpoint}: {error.reply_text}") from error
            raise Lost(f"{self._endpoint}: {error.reply_text}") from error
        except (AMQPError, OSError) as error:
            raise Lost(f"{self._endpoint}: {_words(error)}") from error
        raise Lost(f"{self._endpoint}: the connection was closed")

    @property
    def is_lost(self) -> bool:
        """Whether the connection or the channel has ended."""
        return self._lost.done()

    async def close(self) -> None:
        """Close the connection, and wait for the answer, not long."""
        connection = self._connection
        if connection is None or connection.is_closed:
            return
        with suppress(AMQPError):
            connection.close()
        deadline_s = self._loop.time() + CLOSE_S
        while not connection.is_closed and self._loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        with suppress(BaseException):
            if self._lost.done():
                self._lost.result()  # somebody has looked at it


class BasicSource(Source):
    """Takes messages from a queue, and acknowledges them."""

    def __init__(self, endpoint: Endpoint, queue: str, prefetch: int) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: The broker.
            queue: Its queue.
            prefetch: Messages that may be here and not settled.
        """
        self._link = _Channel(endpoint)
        self._queue = queue
        self._prefetch = prefetch
        self._arrived: list[Taken] = []
        self._has_some = asyncio.Event()

    async def open(self) -> None:
        """Connect, and consume."""
        channel = await self._link.open()
        channel.basic_qos(prefetch_count=self._prefetch)
        begun: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        channel.add_on_cancel_callback(lambda _: self._link._on_closed(None))
        channel.basic_consume(
            self._queue, self._on_message, callback=lambda answer: _set(begun, answer)
        )
        await self._link.answered(begun)

    def _on_message(
        self, _: Channel, method: Basic.Deliver, properties: BasicProperties, body: bytes
    ) -> None:
        copy = BasicCopy(properties, body, method.exchange, method.routing_key)
        self._arrived.append(Taken(copy, method.delivery_tag))
        self._has_some.set()

    async def take(self) -> list[Taken]:
        """Return what has come."""
        waiting = asyncio.ensure_future(self._has_some.wait())
        try:
            await self._link.answered(waiting)
        finally:
            waiting.cancel()
        taken, self._arrived = self._arrived[:TAKE_MAX], self._arrived[TAKE_MAX:]
        if not self._arrived:
            self._has_some.clear()
        return taken

    async def settle(self, done: Sequence[Taken], back: Sequence[Taken]) -> None:
        """Acknowledge what has been confirmed, and have the rest sent again."""
        channel = self._link.channel
        if channel is None or self._link.is_lost:
            raise Lost("the connection was lost before messages were settled: they come again")
        try:
            for each in done:
                channel.basic_ack(each.handle)
            for each in back:
                channel.basic_nack(each.handle, requeue=True)
        except AMQPError as error:
            raise Lost(_words(error)) from error

    async def close(self) -> None:
        """Let go; the broker sends what is not settled to somebody else."""
        await self._link.close()


class BasicTarget(Target):
    """Publishes to a queue, with confirms; what no queue takes comes back."""

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: The broker.
            queue: Its queue.
        """
        self._link = _Channel(endpoint)
        self._queue = queue
        self._next_tag = 1
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._returned = ""

    async def open(self) -> None:
        """Connect, and have the broker confirm."""
        channel = await self._link.open()
        begun: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=lambda answer: _set(begun, answer))
        await self._link.answered(begun)

    def _on_return(self, _: Channel, method: Basic.Return, *_more: object) -> None:
        self._returned = f"there is no queue {self._queue!r}: {method.reply_text}"

    def _on_confirm(self, frame: Any) -> None:  # noqa: ANN401  # pika's, without types
        method = frame.method
        tags = [method.delivery_tag]
        if method.multiple:
            tags = [tag for tag in self._waiting if tag <= method.delivery_tag]
        for tag in tags:
            future = self._waiting.pop(tag, None)
            if future is not None:
                _set(future, method.NAME == "Basic.Ack")

    async def send(self, copies: Sequence[Copy]) -> list[str]:
        """Publish messages; where one is returned, none of them counts as taken."""
        channel = self._link.channel
        if channel is None or self._link.is_lost:
            raise Lost("the connection was lost")
        loop = asyncio.get_running_loop()
        self._returned = ""
        futures = []
        try:
            for copy in copies:
                each = copy.basic()
                future: asyncio.Future[bool] = loop.create_future()
                self._waiting[self._next_tag] = future
                self._next_tag += 1
                channel.basic_publish("", self._queue, each.body, each.properties, mandatory=True)
                futures.append(future)
        except AMQPError as error:
            raise Lost(_words(error)) from error
        confirmed = [await self._link.answered(future) for future in futures]
        if self._returned:
            return [self._returned] * len(copies)
        return ["" if each else "the broker does not take it now" for each in confirmed]

    async def close(self) -> None:
        """Let go."""
        await self._link.close()


def _set(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: object) -> None:
    if future.done():
        return
    future.set_exception(error if isinstance(error, Exception) else Lost(str(error or "closed")))
    future.exception()  # nobody need look at it


def _words(error: Exception) -> str:
    """Return what went wrong; of a connection that cannot be made pika tells inside only."""
    inner = error.args[0] if error.args else error
    found = getattr(inner, "exceptions", None) or [inner]
    last = found[-1]
    text = getattr(last, "exception", last)
    return str(text) or type(text).__name__
