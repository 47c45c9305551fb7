"""The links that `publish` and `request` send on, opened when they are first needed.

Theory of operation. Where the container offers the anonymous relay (ANONYMOUS-RELAY), one link
carries all messages, each of which names its address in `to`; elsewhere each address gets a link,
and the one that was used longest ago gives way, unless something is under way on it. A relay
releases what it may not or cannot pass on without a reason, so a link to the address is tried then:
its refusal has one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cogwork.amqp.errors import Condition
from cogwork.client.checks import demand_seconds
from cogwork.client.errors import Disconnected, InDoubt, LinkRefused, Rejected, Released
from cogwork.client.loop_affinity import check_loop
from cogwork.client.publishing.outcome import NO_CONNECTION, meant_for, unsent
from cogwork.client.publishing.publisher import Publisher

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.message.messages import Message

__all__ = ("Senders",)

NAMED_MAX = 64
"""Links to single addresses, where there is no relay, that are kept open with nothing under way."""

RELAY = ""
"""What the relay is kept under: no address is empty."""

REFUSALS = frozenset(
    {
        Condition.DECODE_ERROR,
        Condition.INVALID_FIELD,
        Condition.NOT_ALLOWED,
        Condition.NOT_FOUND,
        Condition.NOT_IMPLEMENTED,
        Condition.RESOURCE_LIMIT_EXCEEDED,
        Condition.UNAUTHORIZED_ACCESS,
    }
)
"""With these the anonymous relay rejects what goes where no link could be attached."""


class Senders:
    """Finds the link for an address. Owned by one client."""

    def __init__(self, client: LinkContext) -> None:
        """Start with no link yet.

        Args:
            client: Whose links they are.
        """
        self._client = client
        self._open: dict[str, Publisher] = {}
        self._opening: dict[str, asyncio.Task[Publisher]] = {}
        self._awaited: Counter[str] = Counter()

    def relay(self) -> Publisher | None:
        """Return the relay where it stands: the way that costs nothing."""
        check_loop(self._client)
        relay = self._open.get(RELAY)
        return relay if relay is not None and relay.failure is None else None

    async def sender_for(self, address: str) -> Publisher:
        """Return a link on which messages to `address` can be sent, opened if need be.

        Raises:
            LinkRefused: The container does not let this client send there.
        """
        # What is for the container itself has a link of its own: it goes on while clients wait.
        key = RELAY if self._client.has_relay and not address.startswith("$") else address
        publisher = self._open.pop(key, None)
        if publisher is None or publisher.failure is not None:
            self._awaited[key] += 1
            try:
                publisher = await self._opened(key)
            finally:
                self._awaited[key] -= 1
                if not self._awaited[key]:
                    del self._awaited[key]
        self._open.pop(key, None)  # what was used last stands last
        self._open[key] = publisher
        self._close_idle()
        return publisher

    async def _opened(self, key: str) -> Publisher:
        """Open a link once, whoever waits for it."""
        task = self._opening.get(key)
        if task is None:
            task = asyncio.create_task(self._open_one(key))
            self._opening[key] = task
            task.add_done_callback(lambda done: self._on_opened(key, done))
        return await asyncio.shield(task)

    def _on_opened(self, key: str, task: asyncio.Task[Publisher]) -> None:
        self._opening.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it, too

    async def _open_one(self, key: str) -> Publisher:
        publisher = Publisher(self._client, key or None)
        await publisher.open()
        self._open[key] = publisher  # also where whoever wanted it has left meanwhile
        return publisher

    def _close_idle(self) -> None:
        """Close the links that were used longest ago, where they are too many.

        Not those on which something waits or is not answered yet: that may take long, and whoever
        needs another link has nothing to do with it. Nor those that are just being opened for
        somebody.
        """
        excess = len(self._open) - NAMED_MAX
        for key, publisher in list(self._open.items())[:-1]:
            if excess <= 0:
                return
            if publisher.backlog or publisher.unsettled or key in self._awaited:
                continue
            del self._open[key]
            self._client.spawn(publisher.shut())
            excess -= 1

    async def send(
        self, address: str, message: Message, timeout_s: float | None, *, settled: bool
    ) -> None:
        """Send a message and wait until it is accepted; say why where it is not.

        Raises:
            ClientError: It is not accepted, or was not sent, or has no outcome.
        """
        if timeout_s is not None:
            await self.send_within(address, message, timeout_s, settled=settled)
            return
        try:
            sender = self.relay() or await self.sender_for(address)
            post = sender.post(message, settled=settled)
            if not (settled and post.is_done):
                await sender.outcome(post)
        except Released as error:
            await self.explain(address, error)
        except Rejected as error:
            await self.explain_rejection(address, error)
        except InDoubt as error:
            raise meant_for(address, error) from None

    async def send_within(
        self, address: str, message: Message, timeout_s: float, *, settled: bool
    ) -> None:
        """Send a message unless that takes too long; say why nobody took it where there is time.

        Raises:
            ClientError: It is not accepted, or was not sent, or has no outcome.
        """
        demand_seconds("timeout_s", timeout_s)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout(timeout_s):
                sender = self.relay() or await self.sender_for(address)
        except TimeoutError:
            raise unsent(address, NO_CONNECTION, timeout_s) from None
        post = sender.post(message, settled=settled)
        try:
            await sender.outcome_within(post, timeout_s, loop.time() - began_s)
        except Released as error:
            if error.condition is None:  # it was sent
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(began_s + timeout_s):
                        await self.explain(address, error)
            raise meant_for(address, error) from None
        except Rejected as error:
            await self.explain_rejection(address, error)
        except InDoubt as error:
            raise meant_for(address, error) from None

    async def explain_rejection(self, address: str, error: Rejected) -> NoReturn:
        """Raise why a message was rejected.

        Raises:
            LinkRefused: A link to the address is refused, for the same reason.
            Rejected: It is not: the message is invalid there.
        """
        if error.condition in REFUSALS:
            await self.explain(address, error)
        raise meant_for(address, error) from None

    async def explain(self, address: str, error: Released | Rejected) -> NoReturn:
        """Raise why nobody took a message.

        Raises:
            LinkRefused: A link to the address is refused, for a reason.
            Released: It is not: there just was nobody, or the connection has gone since.
            Rejected: It is not, and the message was rejected.
        """
        if self._client.is_connected:
            probe = _Probe(self._client, address)
            try:
                await probe.open()
            except LinkRefused as refused:
                raise refused from error
            except Disconnected:
                pass
            else:
                await probe.shut()
        raise meant_for(address, error) from None


class _Probe(Publisher):
    """A link to learn why messages are not taken: nobody waits for another connection for that."""

    def on_detached(self, error: AmqpError | None, *, is_lost: bool) -> None:
        """End with its connection."""
        super().on_detached(error, is_lost=is_lost)
        if is_lost:
            self.client.forget(self)
            self.fail(Disconnected(f"{self.address}: the connection was lost"))
