"""Readers of a stream: from where one likes, on into what comes, across lost connections."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import Condition
from cogwork.amqp.extensions import CAUGHT_UP, STREAM_START
from cogwork.amqp.performatives import SenderSettleMode
from cogwork.amqp.terminus import Source
from cogwork.amqp.types import Described, Symbol
from cogwork.client.errors import LinkRefused, RecordsLost
from cogwork.client.links.receiver import BATCH_MAX, Receiver, checked_credit, filters_of
from cogwork.client.streams.start import start_filters
from cogwork.dataplane.client.stream_inbox import StreamInbox
from cogwork.dataplane.client.stream_records import Record, Records
from cogwork.plugin.engine.contract import FromOffset, Origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork.amqp.errors import AmqpError
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.link import Link
    from cogwork.plugin.engine.contract import FromTime

__all__ = ("StreamReader",)


class StreamReader(Receiver[Record]):
    """Reads a stream; made by `Stream.read`.

    Iterate over it, in `async with` or without; with it, it is attached before the first record is
    asked for, and has begun: one that starts at the end gets whatever is appended from then on.
    After a loss it goes on with the next record: nothing missing, nothing twice. Where it ends for
    good, what has arrived is handed over first.
    """

    snd_settle_mode = SenderSettleMode.SETTLED

    def __init__(
        self,
        client: LinkContext,
        address: str,
        start: Origin | FromOffset | FromTime,
        *,
        credit: int,
        selector: str | None,
        skips: bool,
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: The stream's.
            start: Where to start.
            credit: Records that may be on their way or waiting.
            selector: Which records it wants; None for all.
            skips: Whether to go on from the first record that is left where what is next has been
                given up.
        """
        self._selector = filters_of(selector, no_local=False) or {}
        self._skips = skips
        source = Source(address=address, filter=self._filters(start))
        self._stream_inbox = StreamInbox(
            client.flusher, client.create_future, checked_credit(credit)
        )
        self._stream_inbox.on_caught_up = self._note_caught_up
        self._caught_up = asyncio.Event()
        self._placed = asyncio.Event()
        self._stream_inbox.on_placed = self._placed.set
        self._starts_at_end = start is Origin.NEXT
        super().__init__(client, source, self._stream_inbox)

    def _filters(self, start: Origin | FromOffset | FromTime) -> dict[Symbol, object]:
        return {**start_filters(start, skips=self._skips), **self._selector}

    async def open(self) -> None:
        """Wait until it is attached; at a stream's end, until it is known which that is.

        Raises:
            LinkRefused: The container does not agree.
            CogworkError: The link ended for good before.
        """
        await super().open()
        if not self._starts_at_end:
            return
        try:
            await self._placed.wait()
            if self.failure is not None and self.next_offset is None:
                raise self.failure
        except BaseException:
            self._leave()
            self.abandon()
            raise

    # -- how far it is

    @property
    def next_offset(self) -> int | None:
        """The offset after the last record that has arrived; None while that is not known."""
        return self._stream_inbox.next_offset

    @property
    def is_caught_up(self) -> bool:
        """Whether all records were handed over that there were when it started."""
        return self._stream_inbox.is_caught_up

    async def caught_up(self) -> None:
        """Wait for that; another task takes the records meanwhile.

        Raises:
            CogworkError: The link ended for good before.
        """
        await self._caught_up.wait()
        if self.failure is not None and not self.is_caught_up:
            raise self.failure

    def _note_caught_up(self) -> None:
        self._caught_up.set()

    # -- iterating

    def __aiter__(self) -> Any:  # noqa: ANN401  # itself, or a generator that attaches it first
        """Iterate over records; attach where that is still to be done, and detaches then."""
        return self if self._attached.done() else self._iterate()

    async def _iterate(self) -> AsyncIterator[Record]:
        async with self:
            async for record in self._stream_inbox:
                yield record

    async def batches(  # type: ignore[override]  # made when they are looked at
        self, count_max: int = BATCH_MAX
    ) -> AsyncIterator[Records]:
        """Yield what has arrived, batch by batch, waiting only where there is nothing.

        Args:
            count_max: How many records a batch holds at most.
        """
        take = self._stream_inbox.take_batch
        if self._attached.done():
            while batch := await take(count_max):
                yield batch
            return
        async with self:
            while batch := await take(count_max):
                yield batch

    async def take(self, count_max: int = BATCH_MAX) -> Records:  # type: ignore[override]  # no list, but as good
        """Return what has arrived, at least one record; none once the reader is closed.

        Args:
            count_max: How many records at most.
        """
        self.demand_open()
        return await self._stream_inbox.take_batch(count_max)

    async def drain(self) -> Records:  # type: ignore[override]  # no list, but as good
        """Return what is there now, at most as much as the credit; do not wait for more."""
        self.demand_open()
        return await self._stream_inbox.drain()

    # -- the link

    def desired_capabilities(self) -> tuple[Symbol, ...]:
        """Ask to be told when it has caught up."""
        return (CAUGHT_UP,)

    def attached(self, link: Link) -> None:
        """Give the first credit, to a stream alone: a queue would give its items for records."""
        if _starts_somewhere(link):
            super().attached(link)
            return
        text = "it is no stream: it does not know where to start, and nothing was taken from it"
        self.fail(LinkRefused(self.address, None, text))
        asyncio.get_running_loop().call_soon(self._leave)

    def _source_here(self) -> Source:
        """Go on after what has arrived."""
        source = super()._source_here()
        following = self.next_offset
        if following is not None:
            source = copy(source)
            source.filter = self._filters(FromOffset(following))
        return source

    def on_detached(self, error: AmqpError | None, *, is_lost: bool) -> None:
        """The link has gone; told apart is a stream that ends before what has been read of it."""
        lost = None if is_lost else self._records_lost(error)
        if lost is None:
            super().on_detached(error, is_lost=is_lost)
            return
        self.link = None
        self.detached()
        self.client.forget(self)
        self.fail(lost)

    def _records_lost(self, error: AmqpError | None) -> RecordsLost | None:
        """Return what it means that the stream does not come as far as this has read."""
        following = self.next_offset
        if error is None or error.condition != Condition.INVALID_FIELD or following is None:
            return None
        end = (error.info or {}).get(Symbol("end"))
        if not isinstance(end, int) or end >= following:
            return None
        text = (
            f"the stream has lost its newest records, also some that were read: it ends before "
            f"offset {end}, and {following} was next"
        )
        return RecordsLost(self.address, text, int(end))

    def close_with(self, error: Exception) -> None:
        """End the iteration, behind what has arrived and is in the stream yet."""
        if isinstance(error, RecordsLost):
            self._stream_inbox.forget_from(error.end)
        super().close_with(error)
        self._caught_up.set()
        self._placed.set()

    def abandon(self) -> None:
        """End for good without a word to anyone."""
        super().abandon()
        self._stream_inbox.forget()


def _starts_somewhere(link: Link) -> bool:
    """Return whether the other end goes by the place to start: its answer has what is in force."""
    source = link.remote.source if link.remote is not None else None
    in_force = (source.filter or {}).values() if source is not None else ()
    return any(isinstance(it, Described) and it.descriptor == STREAM_START for it in in_force)
