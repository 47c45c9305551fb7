"""What subscribers and consumers share: a source, an inbox, iteration, batches."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from cogwork.amqp.extensions import NO_LOCAL, SELECTOR
from cogwork.amqp.performatives import ReceiverSettleMode, Role, SenderSettleMode
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Described, Symbol, UInt
from cogwork.client.checks import checked_address
from cogwork.client.links.link_end import LinkEnd
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.incoming import IncomingLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from types import TracebackType

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.client.context import LinkContext
    from cogwork.client.interception.deliveries import Deliveries
    from cogwork.dataplane.client.inbox import Inbox
    from cogwork.dataplane.link import Link

__all__ = ("BATCH_MAX", "Receiver", "checked_credit", "filters_of")

BATCH_MAX = 1000
"""Messages of one batch: enough to make the cost of a turn small."""

M = TypeVar("M", bound=Message)


class Receiver(LinkEnd, Generic[M]):
    """Receives from one address; `M` is what it hands over.

    Attributes:
        deliveries: What it has handed over, where interceptors are told; None where none are, or
            whoever hands its messages on does it.
    """

    deliveries: Deliveries | None = None

    role = Role.RECEIVER
    snd_settle_mode = SenderSettleMode.MIXED
    rcv_settle_mode = ReceiverSettleMode.FIRST

    def __init__(self, client: LinkContext, source: Source, inbox: Inbox) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            source: Where it receives from, with its filters.
            inbox: Where messages arrive.
        """
        super().__init__(client, "" if source.dynamic else checked_address(source.address))
        self._source = source
        self._inbox = inbox
        self._entry = AddressEntry(client.core, self.address, CLOSEST_CODE)
        self._entry.add_outlet(inbox)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.shut()

    # -- iterating

    def __aiter__(self) -> AsyncIterator[M]:
        self.demand_open()
        return self._inbox  # itself, as a call more would cost a tenth of what an item does

    def __anext__(self) -> Awaitable[M]:
        if self._inbox.link is None:
            self.demand_open()
        return self._inbox.__anext__()

    async def batches(self, count_max: int = BATCH_MAX) -> AsyncIterator[list[M]]:
        """Yield what has arrived, list by list, waiting only where there is nothing.

        Args:
            count_max: How many messages a list holds at most.
        """
        self.demand_open()
        while batch := await self._inbox.take_batch(count_max):
            yield batch

    async def take(self, count_max: int = BATCH_MAX) -> list[M]:
        """Return what has arrived, at least one message; none once the receiver is closed.

        Args:
            count_max: How many messages at most.
        """
        self.demand_open()
        return await self._inbox.take_batch(count_max)

    async def drain(self) -> list[M]:
        """Return what is there now, at most as much as the credit; do not wait for more."""
        self.demand_open()
        return await self._inbox.drain()

    @property
    def waiting(self) -> int:
        """Counts messages that have arrived and were not handed over yet."""
        return self._inbox.waiting

    @property
    def undecodable(self) -> int:
        """Counts what came and was no message: it was rejected, and not handed over."""
        return self._inbox.undecodable

    # -- the link

    def attach(self, link: Link) -> None:
        """Attach to the source."""
        link.attach(
            source=self._source_here(),
            target=Target(),
            snd_settle_mode=self.snd_settle_mode,
            rcv_settle_mode=self.rcv_settle_mode,
            unsettled=self.unsettled_map(link) or None,
            desired_capabilities=self.desired_capabilities(),
        )
        end = IncomingLink(link.session.end, link.handle, self._entry)
        end.settles_second = self.rcv_settle_mode is ReceiverSettleMode.SECOND
        end.wants_tags = end.settles_second
        link.carry(end)
        self._inbox.attach(end)

    def _source_here(self) -> Source:
        if self.redirected_address is None:
            return self._source
        source = copy(self._source)
        source.address = self.redirected_address
        return source

    def unsettled_map(self, _link: Link) -> dict[bytes, DeliveryState | None]:
        """Return what is held from an earlier link."""
        return {}

    def desired_capabilities(self) -> tuple[Symbol, ...]:
        """Return what is asked of the other end."""
        return ()

    def attached(self, _link: Link) -> None:
        """Give the first credit."""
        self._inbox.start()

    def drained(self) -> None:
        """Let `drain` return."""
        self._inbox.drained()

    def detached(self) -> None:
        """Wait for the next link."""
        self._inbox.detach()

    def close_with(self, error: Exception) -> None:
        """End the iteration."""
        self._inbox.close(error)
        self._entry.remove_outlet(self._inbox)
        self._entry.close()


def filters_of(selector: str | None, no_local: bool) -> dict[Symbol, object] | None:
    """Return a source's filter set (AMQP 1.0 §3.5.8)."""
    filters: dict[Symbol, object] = {}
    if selector is not None:
        filters[Symbol("selector")] = Described(SELECTOR, selector)
    if no_local:
        filters[Symbol("no-local")] = Described(NO_LOCAL, [])
    return filters or None


def checked_credit(credit: int) -> int:
    """Return the credit of a receiver.

    Raises:
        ValueError: It is none: with no credit nothing would ever come.
    """
    if isinstance(credit, bool) or not isinstance(credit, int) or not 1 <= credit <= UInt.MAX:
        raise ValueError(f"credit is a number from 1 to {UInt.MAX}, not {credit!r:.80}")
    return credit
