"""Receivers of queues: consumers, whose items the application settles, and browsers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.extensions import MARKS_RECEIVED
from cogwork.amqp.performatives import ReceiverSettleMode
from cogwork.amqp.terminus import COPY, Source
from cogwork.amqp.types import Symbol
from cogwork.client.errors import InDoubt, unconfirmed
from cogwork.client.links.receiver import Receiver, checked_credit, filters_of
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.client.items import Item, ItemInbox
from cogwork.dataplane.client.pace import MARK_AHEAD_MAX
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.incoming import IncomingLink

if TYPE_CHECKING:
    from types import TracebackType

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.client.claims import Claim
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.session_end import Session

__all__ = ("Browser", "Consumer")

RESUME_TIMEOUT_S = 5.0
"""An owner resumes items at once; of what it has not resumed by then nothing is known."""

STOP_TIMEOUT_S = 1.0
"""How long leaving a consumer waits for what is under way; not everyone answers a drain."""

ATTACH_BYTES = 256
"""What an attach takes besides its name, its source and its unsettled map."""

CONFIRM_TIMEOUT_S = 5.0
"""How long leaving a consumer waits for the owner to confirm accepts."""


class Consumer(Receiver[Item]):
    """Takes items from a queue; made by `Client.consume`."""

    def __init__(
        self,
        client: LinkContext,
        address: str,
        credit: int,
        selector: str | None = None,
        *,
        confirms: bool = True,
        source: Source | None = None,
        mark_ahead: int = MARK_AHEAD_MAX,
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: The queue, or whatever else gives deliveries that are settled by hand.
            credit: Items that may be on their way, waiting or held.
            selector: Which items it wants; None for all.
            confirms: Whether an accept is a claim that the owner has to confirm.
            source: The terminus to ask for, where it is more than an address and a selector:
                a distribution mode, capabilities, an expiry policy.
            mark_ahead: How many items may be marked in one go, of which one is handed over.
        """
        self._items = ItemInbox(
            client.flusher,
            client.create_future,
            checked_credit(credit),
            partial(unconfirmed, address),
            checked_mark_ahead(mark_ahead),
        )
        if source is None:
            source = Source(address=address, filter=filters_of(selector, no_local=False))
        super().__init__(client, source, self._items)
        if confirms:
            self.rcv_settle_mode = ReceiverSettleMode.SECOND
        self._confirms = confirms
        self._resuming: asyncio.TimerHandle | None = None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._failure is None:
                await self.stop()
                self._items.release_waiting()
                await self._await_claims(raises=kind is None)
        finally:
            await self.shut()

    async def stop(self) -> None:
        """Ask for no more items, and wait, not long, until what is under way has arrived.

        It can still be taken. Nothing is under way then when the link goes, which the owner would
        have to doubt.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._items.stop()

    async def _await_claims(self, *, raises: bool) -> None:
        try:
            async with asyncio.timeout(CONFIRM_TIMEOUT_S):
                await self._items.confirmed()
        except TimeoutError:
            if raises:
                count = self._items.claimed
                raise InDoubt(self.address, None, f"{count} accepts were not confirmed") from None
        except CogworkError:
            if raises:
                raise

    def accept(self, items: list[Item]) -> Claim:
        """Claim a batch of items; awaiting the result returns once all claims stand.

        Args:
            items: What `batches` or `take` handed over.

        Raises:
            StaleAttempt: When awaited: some belong to somebody else; its `items` are these. All
                others are confirmed.
            InDoubt: When awaited: of some, its `items`, it is not known whether they count; its
                `stale` belong to somebody else. All others are confirmed.
        """
        return self._items.accept_all(items)

    async def flush(self) -> None:
        """Wait until every accept is confirmed.

        Raises:
            StaleAttempt: Some that nobody awaited were too late.
            InDoubt: Of some of these it is not known whether they count.
            LinkDetached: The container ended the link before it had confirmed all.
            Disconnected: The connection was given up before.
        """
        await self._items.confirmed()

    @property
    def held(self) -> int:
        """Counts items that were handed over and are not settled."""
        return self._items.held

    # -- the link

    def unsettled_map(self, link: Link) -> dict[bytes, DeliveryState | None]:
        """Return the tags of the items that are held or claimed, as many as fit a frame."""
        opened = link.session.connection.remote
        source = encode(self._source_here().to_described())
        used_bytes = ATTACH_BYTES + len(self.name.encode()) + len(source)
        return self._items.unsettled_map(opened.max_frame_size - used_bytes if opened else 0)

    def desired_capabilities(self) -> tuple[Symbol, ...]:
        """Offer to mark items that were handed over."""
        return (MARKS_RECEIVED,) if self._confirms else ()

    def attached(self, link: Link) -> None:
        """Give credit, and the owner some time to resume what is held."""
        assert link.remote is not None
        assert isinstance(link.end, IncomingLink)
        is_second = link.remote.rcv_settle_mode is ReceiverSettleMode.SECOND
        link.end.settles_second = self._confirms and is_second
        wants_marks = self._confirms and self._wants_marks(link)
        # It closes after twice what it has announced (AMQP 1.0 §2.4.5).
        silence_max_s = link.session.connection.peer_idle_timeout_s
        self._items.answered(wants_marks, link.remote.unsettled, silence_max_s)
        super().attached(link)
        if self._items.has_earlier:
            loop = asyncio.get_running_loop()
            self._resuming = loop.call_later(RESUME_TIMEOUT_S, self._items.expire)

    def _wants_marks(self, link: Link) -> bool:
        assert link.remote is not None
        if MARKS_RECEIVED in link.remote.offered_capabilities:
            return True
        opened = link.session.connection.remote
        properties = (opened.properties or {}) if opened is not None else {}
        return properties.get(Symbol("product")) == "cogwork"

    def detached(self) -> None:
        """Wait for the next link; what is held stays held."""
        self._cancel_resuming()
        super().detached()

    def close_with(self, error: Exception) -> None:
        """End the iteration; what is held is the owner's again."""
        self._cancel_resuming()
        super().close_with(error)

    def _cancel_resuming(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None

    def settled_by_peer(self, session: Session, first: int, last: int, state: bytes) -> None:
        """Take in which claims stand."""
        if self._items.link is not None and self._items.link.session is session:
            self._items.confirm(first, last, state)


def checked_mark_ahead(count: int) -> int:
    """Return how many items a consumer marks in one go at most.

    Raises:
        ValueError: It is no such number.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MARK_AHEAD_MAX:
        raise ValueError(f"mark_ahead is a number from 1 to {MARK_AHEAD_MAX}, not {count!r:.80}")
    return count


class Browser(Receiver[Message]):
    """Receives copies of a queue's items; made by `Client.browse`.

    `drain` returns those that are there; iterating goes on with those that come.
    """

    def __init__(
        self, client: LinkContext, address: str, credit: int, selector: str | None
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: The queue.
            credit: Items that may be on their way or waiting.
            selector: Which items it wants; None for all.
        """
        source = Source(
            address=address,
            distribution_mode=COPY,
            filter=filters_of(selector, no_local=False),
        )
        super().__init__(
            client, source, Inbox(client.flusher, client.create_future, checked_credit(credit))
        )
