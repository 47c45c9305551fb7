"""Receivers whose messages interceptors see as they are handed over.

They are classes of their own, so that those of a client without interceptors do what they did.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cogwork.client.interception.deliveries import Deliveries
from cogwork.client.links.receiver import BATCH_MAX, Receiver
from cogwork.client.receiving.consumer import Browser, Consumer
from cogwork.client.receiving.subscription import Subscription
from cogwork.client.streams.reader import StreamReader
from cogwork.dataplane.client.items import Item
from cogwork.dataplane.client.stream_records import Record
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType

    from cogwork.client.interception.interceptors import Interceptors
    from cogwork.dataplane.client.stream_records import Records

__all__ = (
    "InterceptedBrowser",
    "InterceptedConsumer",
    "InterceptedStreamReader",
    "InterceptedSubscription",
    "intercepted_handler",
)

M = TypeVar("M", bound=Message)


class _Intercepted(Receiver[M]):
    """A receiver, with interceptors."""

    def __init__(self, interceptors: Interceptors, *arguments: Any, **options: Any) -> None:
        """Is not attached yet.

        Args:
            interceptors: See what is handed over.
            *arguments: Those of the receiver.
            **options: Those of the receiver.
        """
        super().__init__(*arguments, **options)
        self.deliveries = Deliveries(interceptors, self.address)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.deliveries is not None:
            self.deliveries.close(error)
        await super().__aexit__(kind, error, trace)

    def __aiter__(self) -> AsyncIterator[M]:
        self.demand_open()
        return self

    async def __anext__(self) -> M:
        if self.deliveries is None:
            return await super().__anext__()
        self.deliveries.end()
        message = await super().__anext__()
        self.deliveries.begin((message,))
        return message

    async def batches(self, count_max: int = BATCH_MAX) -> AsyncIterator[list[M]]:
        """Yield what has arrived, list by list; see `Receiver.batches`."""
        while batch := await self.take(count_max):
            yield batch

    async def take(self, count_max: int = BATCH_MAX) -> list[M]:
        """Return what has arrived; see `Receiver.take`."""
        return await self._handed_over(super().take(count_max))

    async def drain(self) -> list[M]:
        """Return what is there now; see `Receiver.drain`."""
        return await self._handed_over(super().drain())

    async def _handed_over(self, taking: Awaitable[list[M]]) -> list[M]:
        if self.deliveries is None:
            return await taking
        self.deliveries.end()
        batch = await taking
        self.deliveries.begin(batch)
        return batch


class InterceptedSubscription(_Intercepted[Message], Subscription):
    """A subscription, with interceptors."""


class InterceptedConsumer(_Intercepted[Item], Consumer):
    """A consumer, with interceptors."""


class InterceptedBrowser(_Intercepted[Message], Browser):
    """A browser, with interceptors."""


class InterceptedStreamReader(_Intercepted[Record], StreamReader):  # type: ignore[misc]  # as there
    """A reader of a stream, with interceptors."""

    def __aiter__(self) -> Any:  # noqa: ANN401  # itself, or a generator that attaches it first
        """Iterate over records; see `StreamReader`."""
        return self if self._attached.done() else self._iterate()

    async def _iterate(self) -> AsyncIterator[Record]:
        async with self:
            async for record in self:
                yield record

    async def batches(  # type: ignore[override]  # made when they are looked at
        self, count_max: int = BATCH_MAX
    ) -> AsyncIterator[Records]:
        """Yield what has arrived, batch by batch; see `StreamReader.batches`."""
        take = cast("Callable[[int], Awaitable[Records]]", self.take)
        if self._attached.done():
            while batch := await take(count_max):
                yield batch
            return
        async with self:
            while batch := await take(count_max):
                yield batch


def intercepted_handler(
    interceptors: Interceptors, address: str, handler: Callable[[Message], object]
) -> Callable[[Message], object]:
    """Return a handler of requests that interceptors see at work.

    Args:
        interceptors: Who is told.
        address: Where the requests come.
        handler: What handles them.
    """

    async def handle(request: Message) -> object:
        with interceptors.deliver(address, (request,)):
            answer = handler(request)
            return await answer if inspect.isawaitable(answer) else answer

    return handle
