"""Ends of routes by AMQP 1.0: containers of Cogwork, and other brokers, through the client."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.types import Symbol
from cogwork.cli.bridge.contract import Lost, MessageCopy, Source, Stopped, Taken, Target
from cogwork.cli.options.certificates import given_context
from cogwork.cli.options.tokens import given_token
from cogwork.client import (
    AuthenticationError,
    InDoubt,
    LinkDetached,
    LinkRefused,
    OutcomeState,
    Retry,
    StaleAttempt,
    connect,
)
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.cli.bridge.contract import Copy
    from cogwork.client import Client, Consumer, Item, Publisher
    from cogwork.client.connection.url import Endpoint

__all__ = ("AmqpSource", "AmqpTarget")

TAKE_MAX = 1000

RETRY = Retry(give_up_after_s=5.0)
"""So long the client itself looks for a lost connection; then the whole route begins anew."""

REFUSALS = (AuthenticationError, LinkRefused)


class _End:
    """A client, and what it has opened."""

    def __init__(self, endpoint: Endpoint, address: str) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: The container.
            address: The queue there.
        """
        self._endpoint = endpoint
        self._address = address if "/" in address else f"queue/{address}"
        self._stack = AsyncExitStack()

    async def _connect(self) -> Client:
        client = connect(
            [self._endpoint], retry=RETRY, force=True, tls=given_context(), token=given_token()
        )
        return await self._stack.enter_async_context(client)

    def _told(self, error: CogworkError) -> Lost | Stopped:
        """Return what an error means for the route."""
        if isinstance(error, REFUSALS) and not isinstance(error, LinkDetached):
            return Stopped(f"{self._endpoint}: {error}")
        return Lost(f"{self._endpoint}: {error}")

    async def close(self) -> None:
        """Let go."""
        try:
            await self._stack.aclose()
        except CogworkError as error:
            raise self._told(error) from error


class AmqpSource(_End, Source):
    """Takes items from a queue, and accepts them."""

    def __init__(self, endpoint: Endpoint, address: str, prefetch: int) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: The container.
            address: The queue.
            prefetch: Items that may be here and not settled.
        """
        super().__init__(endpoint, address)
        self._prefetch = prefetch
        self._items: Consumer | None = None

    async def open(self) -> None:
        """Connect, and consume."""
        try:
            client = await self._connect()
            consumer = client.consume(
                self._address, credit=self._prefetch, confirms=_confirms(client)
            )
            self._items = await self._stack.enter_async_context(consumer)
        except CogworkError as error:
            raise self._told(error) from error

    async def take(self) -> list[Taken]:
        """Return what has come."""
        assert self._items is not None
        try:
            items = await self._items.take(TAKE_MAX)
        except CogworkError as error:
            raise Lost(str(error)) from error
        if not items:
            raise Lost(f"{self._endpoint}: the link was closed")
        return [Taken(_copy_of(item), item) for item in items]

    async def settle(self, done: Sequence[Taken], back: Sequence[Taken]) -> None:
        """Accept what has been confirmed, and release the rest."""
        assert self._items is not None
        try:
            for each in back:
                each.handle.release()
            if done:
                await self._items.accept([each.handle for each in done])
        except (StaleAttempt, InDoubt) as error:
            raise Lost(f"some messages come again: {error}") from error
        except CogworkError as error:
            raise Lost(str(error)) from error


def _confirms(client: Client) -> bool:
    """Return whether claims are confirmed; other brokers may refuse a link that asks for it."""
    return (client.container.properties or {}).get(Symbol("product")) == "cogwork"


def _copy_of(item: Item) -> MessageCopy:
    """Copy an item; what its queue kept without being told to is to be kept there, too."""
    message = Message.decode(item.encode())
    message.durable = True
    return MessageCopy(message)


class AmqpTarget(_End, Target):
    """Sends to a queue, and waits for its outcomes."""

    _out: Publisher | None = None

    async def open(self) -> None:
        """Connect, and attach."""
        try:
            client = await self._connect()
            self._out = await self._stack.enter_async_context(client.publisher(self._address))
        except CogworkError as error:
            raise self._told(error) from error

    async def send(self, copies: Sequence[Copy]) -> list[str]:
        """Send messages."""
        assert self._out is not None
        try:
            outcomes = await self._out.send_batch([copy.message() for copy in copies])
        except CogworkError as error:
            raise Lost(str(error)) from error
        reasons = []
        for outcome in outcomes:
            is_refused = outcome.state is OutcomeState.REJECTED
            if is_refused and outcome.condition != Condition.RESOURCE_LIMIT_EXCEEDED:
                raise Stopped(f"{self._endpoint}: {outcome.error()}")
            reasons.append("" if outcome.is_accepted else str(outcome.error()))
        return reasons
