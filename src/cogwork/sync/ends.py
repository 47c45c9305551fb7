"""Publishers, receivers and consumers that block."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, ParamSpec, Self, TypeVar, Unpack

from cogwork.client.checks import demand_seconds
from cogwork.client.fields import batch_of
from cogwork.client.publishing.publisher import Publisher as AsyncPublisher
from cogwork.dataplane.client.items import Item
from cogwork.dataplane.message.messages import Message
from cogwork.sync.loop_thread import LoopThread, on_loop
from cogwork.sync.on_thread import OnThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from cogwork.client.fields import MessageFields
    from cogwork.client.links.receiver import Receiver as AsyncReceiver
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.client.receiving.consumer import Consumer as AsyncConsumer

__all__ = ("Consumer", "Publisher", "Receiver")

P = ParamSpec("P")
M = TypeVar("M", bound=Message)

BATCH_MAX = 1000


class Publisher(OnThread[AsyncPublisher]):
    """Sends to one address; made by `Client.publisher`, used in `with`."""

    def send(
        self,
        body: object,
        *,
        settled: bool = False,
        timeout_s: float | None = None,
        **fields: Unpack[MessageFields],
    ) -> None:
        """Send a message and wait until it is accepted.

        Args:
            body: A `Message`, or the body of one.
            settled: Whether to send without asking for an outcome.
            timeout_s: How long it may take, in seconds; None for as long as it takes.
            **fields: The message's, as in `Message`.

        Raises:
            Rejected: It is invalid there.
            Released: Nobody took it, or its time was over before it was sent.
            InDoubt: The connection broke, or its time was over, before the outcome was known.
        """
        self._thread.wait(
            self._counterpart.send(body, settled=settled, timeout_s=timeout_s, **fields)
        )

    def send_batch(
        self,
        bodies: Iterable[object],
        *,
        settled: bool = False,
        timeout_s: float | None = None,
    ) -> list[Outcome]:
        """Send messages and wait for all of their outcomes, which it returns.

        Args:
            bodies: Messages, or bodies.
            settled: Whether to send without asking for outcomes; they count as accepted then.
            timeout_s: How long it may take, in seconds; None for as long as it takes.
        """
        return self._thread.wait(
            self._counterpart.send_batch(
                list(batch_of(bodies)), settled=settled, timeout_s=timeout_s
            )
        )


class Receiver(OnThread["AsyncReceiver[M]"], Generic[M]):
    """Receives from one address; made by `Client.subscribe`, used in `with`, then in `for`."""

    def __init__(self, thread: LoopThread, receiver: AsyncReceiver[M]) -> None:
        super().__init__(thread, receiver)
        self._taken: deque[M] = deque()
        # Messages are handed over here, on the threads of those who take them.
        self._deliveries, receiver.deliveries = receiver.deliveries, None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._deliveries is not None:
            self._deliveries.close(error)
        super().__exit__(kind, error, trace)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> M:
        message = self.receive()
        if message is None:
            raise StopIteration
        return message

    def receive(self, timeout_s: float | None = None) -> M | None:
        """Return the next message; None where none came in time.

        Args:
            timeout_s: How long to wait, in seconds; None for ever.
        """
        if self._deliveries is not None:
            self._deliveries.end()
        if not self._taken:
            self._taken.extend(self._thread.wait(self._take(timeout_s)))
        message = self._taken.popleft() if self._taken else None
        if self._deliveries is not None and message is not None:
            self._deliveries.begin((message,))
        return message

    def drain(self) -> list[M]:
        """Return what is there now, at most as much as the credit; do not wait for more."""
        if self._deliveries is not None:
            self._deliveries.end()
        taken = [*self._taken, *self._thread.wait(self._counterpart.drain())]
        self._taken.clear()
        if self._deliveries is not None:
            self._deliveries.begin(taken)
        return taken

    async def _take(self, timeout_s: float | None) -> Sequence[M]:
        demand_seconds("timeout_s", timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._counterpart.take(self._batch_max)
        except TimeoutError:
            return []

    _batch_max = BATCH_MAX


class Consumer(Receiver[Item]):
    """Takes items off a queue; made by `Client.consume`. Items are settled through the consumer."""

    _batch_max = 1
    """An item that is handed over counts as worked on: none is taken ahead."""

    def __init__(self, thread: LoopThread, consumer: AsyncConsumer) -> None:
        super().__init__(thread, consumer)

    def accept(self, item: Item) -> None:
        """Claim an item as processed, and wait until the claim stands.

        Raises:
            StaleAttempt: The item belongs to somebody else.
            InDoubt: It is not known whether the claim was counted.
        """
        self._thread.wait(_accepted(item))

    def release(self, item: Item) -> None:
        """Give an item back as if it had never been sent."""
        self._call(item.release)

    def reject(self, item: Item, reason: object = "") -> None:
        """Refuse an item for good: its queue dead-letters it.

        Args:
            item: Which one.
            reason: Why, for people; an exception will do.
        """
        self._call(item.reject, reason)

    def modify(self, item: Item, *, failed: bool = False, undeliverable_here: bool = False) -> None:
        """Give an item back, changed.

        Args:
            item: Which one.
            failed: Whether to count this as a failed attempt.
            undeliverable_here: Whether this consumer must not get it again.
        """
        self._call(item.modify, failed=failed, undeliverable_here=undeliverable_here)

    def _call(
        self, function: Callable[P, object], *arguments: P.args, **keywords: P.kwargs
    ) -> None:
        self._thread.wait(on_loop(function, *arguments, **keywords))


async def _accepted(item: Item) -> None:
    await item.accept()
