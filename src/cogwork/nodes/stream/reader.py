"""One receiver of a stream: where it stands, and what it gets next.

Theory of operation. A reader has the offset that it gets next. Near the live end the next block is
in the tail, which all readers share; further back it is read from the engine, a block at a time,
and only while the receiver can take something. So a slow receiver holds one block at most, and
nobody waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.types import Symbol, ULong
from cogwork.dataplane.client.stream_inbox import CAUGHT_UP_PREFIX
from cogwork.dataplane.message.messages import Message
from cogwork.nodes.stream.tail import block_of
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin
from cogwork.plugin.engine.errors import BeyondEnd, RecordsLost, Truncated

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cogwork.dataplane.stream.blocks import Block
    from cogwork.dataplane.stream.feed import Feed
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.nodes.stream.start import Wish
    from cogwork.nodes.stream.tail import Tail
    from cogwork.plugin.engine.contract import Engine, Snapshot
    from cogwork.plugin.node import Subscription

__all__ = ("Reader", "Source")

READ_SIZE_BYTES = 1 << 20
"""What is read from the engine at a time: some milliseconds of sending."""

ANSWER_S = 2.0
"""So long an attach is not answered, where it is not known yet where its reader starts: less than
clients wait."""

PAUSE_S = 0.05
"""So long a replica that lags is not asked again."""

SNAPSHOT = Symbol("x-opt-snapshot")

NULL_BODY = b"\x00\x53\x77\x40"
"""An amqp-value section with null in it."""


class Source(Protocol):
    """What readers have in common: their stream's node."""

    @property
    def engine(self) -> Engine | None:
        """The stream, once it is open."""

    @property
    def tail(self) -> Tail:
        """Its live end."""

    @property
    def feed(self) -> Feed:
        """What deliveries come from."""

    @property
    def is_alone(self) -> bool:
        """Whether there is one reader only."""

    @property
    def has_room(self) -> bool:
        """Whether readers that do not take anything now may keep what they have read."""

    def spawn(self, reader: Reader, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run something for a reader; what goes wrong ends its link."""

    def note_held(self, size_bytes: int) -> None:
        """Count what readers hold, more or less of it."""


@dataclass(slots=True, eq=False)
class Reader:
    """One receiver.

    Attributes:
        source: Its stream.
        subscription: Its link, and what it asked for.
        wish: Where it wants to start.
        is_told: Whether it asked to be told when it has caught up.
        next: The offset that it gets next; None until that is known.
        target: The offset at which it has caught up.
        problem: Why it gets no further at present; None where it does.
    """

    source: Source
    subscription: Subscription
    wish: Wish
    is_told: bool
    next: int | None = None
    target: int = 0
    problem: str | None = None
    _block: Block | None = None
    _snapshot: bytes | None = None
    _is_busy: bool = False
    _is_over: bool = False
    _rereads: int = 0
    _answering: asyncio.TimerHandle | None = None

    @property
    def link(self) -> OutgoingLink:
        """Its link's compiled end."""
        return self.subscription.link

    @property
    def behind(self) -> int:
        """Counts the records that it has not been sent."""
        return max(self.source.tail.next - self.next, 0) if self.next is not None else 0

    def put_off(self) -> None:
        """Have the attach answered once it is known where to start, or not soon.

        What is appended from the answer on is behind that place, whoever appends it.
        """
        with suppress(RuntimeError):  # without an event loop nothing would come of it
            loop = asyncio.get_running_loop()
            self._answering = loop.call_later(ANSWER_S, self.subscription.answer)
            self.subscription.is_put_off = True

    def _answer(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None
        self.subscription.answer()

    def start(self) -> None:
        """Find out where to start; the stream is open."""
        self._is_busy = True
        self.source.spawn(self, self._locate)

    def retry(self) -> None:
        """Go on after the engine could not be reached."""
        self._is_busy = False
        self.pump()

    def reread(self, end: int) -> None:
        """Have what is read again that it holds from an offset on, or read, and has not sent."""
        self.target = min(self.target, end)
        self._rereads += 1
        if self._block is not None and self._block.next_offset > end:
            self._drop()

    def close(self) -> None:
        """Give back what it holds."""
        self._is_over = True
        if self._answering is not None:
            self._answering.cancel()
        self._drop()

    # -- where to start

    async def _locate(self) -> None:
        engine = self.source.engine
        assert engine is not None
        bounds = await engine.bounds()
        self.target = bounds.next
        start = self.wish.start
        if isinstance(start, FromOffset):
            offset = start.offset
        elif isinstance(start, FromTime):
            offset = await engine.offset_at(start.time_ms)
        elif start is Origin.NEXT:
            offset = bounds.next
        elif start is Origin.LAST:
            offset = max(bounds.first, bounds.next - 1)
        elif start is Origin.SNAPSHOT:
            offset = self._take_snapshot(await engine.load_snapshot(), bounds.first)
        else:
            offset = bounds.first
        if isinstance(start, FromOffset) and offset > bounds.next and not self.wish.waits:
            raise BeyondEnd(offset, bounds.next)  # any other may be of a record that came since
        if offset < bounds.first:
            if not self.wish.skips:
                raise Truncated(bounds.first)
            offset = bounds.first
        self.next = offset
        self._is_busy = False
        if not self._is_over:
            self._answer()
        self.pump()

    def _take_snapshot(self, snapshot: Snapshot | None, first: int) -> int:
        if snapshot is None:
            return first
        annotations: dict[str, object] = {SNAPSHOT: ULong(snapshot.offset)}
        self._snapshot = Message(snapshot.data, annotations=annotations).encode()
        return snapshot.offset

    # -- sending

    def pump(self) -> None:
        """Send as much as the link takes; read on where that is more than there is here."""
        if self._is_busy or self._is_over or self.next is None:
            return
        link, feed = self.link, self.source.feed
        if self._snapshot is not None:
            if not link.send(feed, self.next, self._snapshot, link.presettles):
                return
            self._snapshot = None
        self._send(link, feed)
        if not link.credit:
            link.exhaust()
        if self._block is not None and not self.source.has_room:
            self._drop()

    def _send(self, link: OutgoingLink, feed: Feed) -> None:
        """Send records, as many as the link takes or as there are here."""
        assert self.next is not None
        while True:
            if self.is_told and self.next >= self.target and not self._tell(link, feed):
                return
            block = self._next_block()
            if block is None:
                self._go_back(link, feed)
                return
            is_alone = block is self._block or self.source.is_alone
            self.next = block.send(link, feed, self.next, is_alone)
            if self.next < block.next_offset:
                return

    def _go_back(self, link: OutgoingLink, feed: Feed) -> None:
        """Read from the engine what the tail has no more, unless there is nothing to read."""
        assert self.next is not None
        if self.next >= max(self.source.tail.next, self.target):
            link.exhaust()
        elif feed.takes(link):
            self._is_busy = True
            self.source.spawn(self, self._read)

    def _tell(self, link: OutgoingLink, feed: Feed) -> bool:
        """Send the marker that says that it has caught up."""
        assert self.next is not None
        if not link.send(feed, self.next, marker_of(self.next), True):
            return False
        self.is_told = False
        return True

    def _next_block(self) -> Block | None:
        assert self.next is not None
        held = self._block
        if held is not None:
            if held.offset <= self.next < held.next_offset:
                return held
            self._drop()
        return self.source.tail.block_at(self.next)

    def _drop(self) -> None:
        if self._block is not None:
            self.source.note_held(-self._block.size_bytes)
            self._block = None

    async def _read(self) -> None:
        """Read a block from the engine."""
        engine = self.source.engine
        assert engine is not None
        assert self.next is not None
        rereads = self._rereads
        try:
            chunks = await engine.read(self.next, READ_SIZE_BYTES)
        except Truncated as error:
            if not self.wish.skips:
                raise
            self.next = error.first
        except BeyondEnd as error:  # it had been told of more
            raise RecordsLost(error.next) from error
        else:
            if not chunks:  # who was asked is behind who told of them, and may be the last to know
                self._is_busy = False
                self.source.spawn(self, self._pump_later)
                return
            if not self._is_over and rereads == self._rereads:
                self._drop()
                self._block = block_of(chunks)
                self.source.note_held(self._block.size_bytes)
        self._is_busy = False
        self.pump()

    async def _pump_later(self) -> None:
        """Go on in a moment, whether or not anything comes meanwhile."""
        await asyncio.sleep(PAUSE_S)
        self.pump()


def marker_of(offset: int) -> bytes:
    """Make the message that says that a reader has caught up, with the offset that follows."""
    return CAUGHT_UP_PREFIX + offset.to_bytes(8, "big") + NULL_BODY
