"""The receivers of a stream: what they share, and what becomes of each.

Theory of operation. Readers are served together, when the data plane has ended a batch: all of them
where the stream has grown, else those whose links can take more. What one does beyond that, such as
reading from the engine, runs in a task of its own; what goes wrong there ends its link and nothing
else, and an engine that is away is asked again. One that has lost the stream ends them all, and one
that has lost its newest records those that have had any of these.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.extensions import CAUGHT_UP, RECORDS_LOST, STREAM_TRUNCATED
from cogwork.dataplane.stream.feed import Feed
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.nodes.stream.reader import Reader
from cogwork.nodes.stream.start import wish_of
from cogwork.plugin.effects import Detach
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    ConsensusError,
    RecordsLost,
    StreamLost,
    Truncated,
    Unavailable,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from cogwork.dataplane.core import Core
    from cogwork.dataplane.transport.consumer_end import ConsumerEnd
    from cogwork.nodes.stream.tail import Tail
    from cogwork.plugin.engine.contract import Engine
    from cogwork.plugin.node import Emit, Subscription

__all__ = ("CAUGHT_UP", "Readers")

HELD_BYTES_MAX = 64 * 1024 * 1024
"""What readers that cannot take anything now may keep of a stream, all of them together."""

PAUSE_S = 0.1
"""So long an engine that is away is not asked again."""

REASON_MAX = 500
"""So much of a reason is told."""

_FAULTS = {
    BeyondEnd: Condition.INVALID_FIELD,
    RecordsLost: RECORDS_LOST,
    StreamLost: Condition.RESOURCE_DELETED,
    Truncated: STREAM_TRUNCATED,
}


class Readers:
    """All of one stream. Owned by its node.

    Attributes:
        engine: The stream; None until it is open.
        tail: Its live end.
        feed: What its deliveries come from.
        held_bytes: What readers keep that they have read.
    """

    def __init__(
        self,
        core: Core,
        tail: Tail,
        *,
        run: Callable[[Coroutine[object, object, None]], None],
        emit: Emit,
        flush: Callable[[], None],
    ) -> None:
        """Start with none yet.

        Args:
            core: The data plane.
            tail: The stream's live end.
            run: Runs something for as long as the stream is here.
            emit: Carries out effects.
            flush: Has the data plane flushed soon.
        """
        self.engine: Engine | None = None
        self.tail = tail
        self.feed = Feed(core, self)
        self.held_bytes = 0
        self._run = run
        self._emit = emit
        self._flush = flush
        self._readers: dict[ConsumerEnd, Reader] = {}
        self._has_more = False

    def __len__(self) -> int:
        """Count them."""
        return len(self._readers)

    def __iter__(self) -> Iterator[Reader]:
        """Go over them as they are now."""
        return iter(list(self._readers.values()))

    @property
    def problem(self) -> str | None:
        """Why one of them gets no further; None where all do."""
        told = next((each.problem for each in self if each.problem is not None), None)
        return None if told is None else f"records that are wanted cannot be read: {told}"

    # -- who there is

    def add(self, subscription: Subscription) -> None:
        """Take one more."""
        link = subscription.link
        wish = wish_of(subscription.source.filter)
        reader = Reader(self, subscription, wish, is_told=CAUGHT_UP in subscription.desired)
        self._readers[link] = reader
        reader.put_off()
        link.feeder = self.feed
        if isinstance(link, OutgoingLink):  # AMQP 0-9-1 knows no drain
            link.drains_late = True
        if self.engine is not None:
            reader.start()

    def remove(self, subscription: Subscription) -> None:
        """Let one go."""
        reader = self._readers.pop(subscription.link, None)
        subscription.link.feeder = None
        if reader is not None:
            reader.close()

    def open(self, engine: Engine) -> None:
        """Start those that have waited for the stream; others are started as they come."""
        self.engine = engine
        for reader in self:
            reader.start()

    def end(self, error: StreamLost) -> None:
        """End all links: there is nothing to wait for."""
        for reader in self:
            self._end(reader, error)
        self._flush()

    def take_back(self, error: RecordsLost) -> None:
        """End the links on which records went that are lost; the others get what there is now."""
        for reader in self:
            self._take_back(reader, error)
        self._flush()

    def _take_back(self, reader: Reader, error: RecordsLost) -> None:
        if reader.next is not None and reader.next > error.end:
            self._end(reader, error)
        else:
            reader.reread(error.end)

    def close(self) -> None:
        """Let all of them go."""
        self.engine = None
        for reader in self:
            reader.close()
            reader.link.feeder = None
        self._readers.clear()
        self.feed.close()

    # -- serving them

    def serve(self) -> None:
        """Give every reader what has come, when the data plane is flushed."""
        self._has_more = True
        self.feed.wake()

    def on_batch(self, feed: Feed) -> None:
        """Go on with readers whose links can take more."""
        woken, feed.woken = feed.woken, []
        if self._has_more:
            self._has_more = False
            readers = list(self._readers.values())
        else:
            found = map(self._readers.get, dict.fromkeys(woken))
            readers = [reader for reader in found if reader is not None]
        for reader in readers:
            self._pump(reader)

    def _pump(self, reader: Reader) -> None:
        try:
            reader.pump()
        except ValueError as error:  # damaged records
            self._end(reader, error)

    # -- what each of them asks: `Source`

    @property
    def is_alone(self) -> bool:
        """Whether there is one reader only."""
        return len(self._readers) == 1

    @property
    def has_room(self) -> bool:
        """Whether readers that do not take anything now may keep what they have read."""
        return self.held_bytes < HELD_BYTES_MAX

    def note_held(self, size_bytes: int) -> None:
        """Count what readers hold."""
        self.held_bytes += size_bytes

    def spawn(self, reader: Reader, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run something for a reader; what goes wrong ends its link."""
        self._run(self._guarded(reader, work))

    async def _guarded(
        self, reader: Reader, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        try:
            await work()
            reader.problem = None
        except StreamLost as error:
            self._end(reader, error)
        except Unavailable as error:
            reader.problem = reason_of(error)
            if reader.next is None:
                await asyncio.sleep(PAUSE_S)
                if self._readers.get(reader.link) is reader:
                    reader.start()
            else:
                self._retry_later(reader)
        except RecordsLost as error:
            if reader.next is None:  # it has not begun anywhere
                self._end(reader, error)
            else:
                self._take_back(reader, error)
                self._retry_later(reader)
        except Exception as error:  # a plug-in's, too: it ends one link and nothing else
            self._end(reader, error)
        self._flush()

    def _retry_later(self, reader: Reader) -> None:
        asyncio.get_running_loop().call_later(PAUSE_S, reader.retry)

    def _end(self, reader: Reader, error: Exception) -> None:
        """End a reader's link."""
        if reader.link not in self._readers:
            return
        condition = _FAULTS.get(type(error), Condition.INTERNAL_ERROR)
        info = _info_of(error)
        reader.close()
        text = str(error) if isinstance(error, (CogworkError, ValueError)) else repr(error)
        if isinstance(error, ConsensusError):
            text = reason_of(error)
        self._emit([Detach(reader.link, condition, text[:REASON_MAX], info)])


def _info_of(error: Exception) -> dict[str, object] | None:
    """Return what an error says for programs."""
    if isinstance(error, Truncated):
        return {"first": error.first}
    if isinstance(error, BeyondEnd):
        return {"end": error.next}
    return {"end": error.end} if isinstance(error, RecordsLost) else None
