"""The engine `orb`: streams in the memory of this process, in one thread.

Theory of operation. An append takes its place at once: one thread, one order. Nothing is pushed:
the chunks lie in one list, and each subscriber takes the next from where it is, so that none stalls
another and none has a queue of its own. What retention gives up is gone for a subscriber that has
not come so far, and it is told. Who awaits each append would never let anybody else run, for the
answer is there already; so a stream answers a certain number of octets in each turn of the event
loop, and the rest in the next one. An appender that does not await answers at all is refused.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from cogwork.plugin.engine.batch import CHUNK_OVERHEAD_BYTES, Chunk
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.chunk_list import ChunkList
from cogwork.plugin.engine.contract import (
    Appended,
    Bounds,
    CaughtUp,
    EngineContext,
    FromOffset,
    FromTime,
    Members,
    Origin,
    Snapshot,
    Start,
)
from cogwork.plugin.engine.durability import Durability
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    Busy,
    ConsensusError,
    Truncated,
    Unavailable,
    Unsupported,
)
from cogwork.plugin.engine.retention import RETENTION_OPTIONS, Retention
from cogwork.plugin.engine.sequencer import Sequencer

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cogwork.plugin.engine.batch import Batch

__all__ = ("CAPABILITIES", "OrbEngine", "OrbHost")

CAPABILITIES = Capabilities(durability=Durability.MEMORY, survives_close=False)

RETENTION_BYTES = 256 << 20
"""What a stream keeps where nothing else is said."""

TURN_BYTES = 256 << 10
"""How much is answered, or given to one subscriber, in a turn of the event loop."""

TURN_BYTES_MAX = 16 << 20
"""How much is appended in one."""

MEMBER = "local"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class OrbHost:
    """Streams in memory, by name.

    Args:
        context: What it is made with; it has no options.
        now_ms: The clock, in milliseconds since 1970 (UTC).

    Attributes:
        stream_options: What the declaration of a stream may say, beside retention.
    """

    stream_options: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, context: EngineContext | None = None, now_ms: Callable[[], int] = _now_ms
    ) -> None:
        for name in context.options if context is not None else ():
            raise ValueError(f"the engine orb has no option {name!r}")
        self._now_ms = now_ms
        self._streams: dict[str, _OrbStream] = {}

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> OrbEngine:
        """Open a stream; make it where it is new. Its options are those of the last opening.

        Args:
            stream: Its name.
            options: `retention_s`, `retention_bytes` (256 MiB if not given), `retention_records`.

        Raises:
            ValueError: An option is wrong.
        """
        for name in options:
            if name not in RETENTION_OPTIONS:
                known = ", ".join(RETENTION_OPTIONS)
                raise ValueError(f"a stream on the engine orb has no option {name!r}, but {known}")
        retention = Retention.of(options, RETENTION_BYTES)
        found = self._streams.get(stream)
        if found is None:
            found = self._streams[stream] = _OrbStream(self._now_ms)
        found.retention = retention
        return OrbEngine(found)

    async def delete(self, stream: str) -> None:
        """Give up a stream with all its records."""
        found = self._streams.pop(stream, None)
        if found is not None:
            found.end("the stream was deleted")

    async def close(self) -> None:
        """Let go of all streams, which are gone with it."""
        for name in list(self._streams):
            await self.delete(name)


class _OrbStream:
    """One stream: its state, its chunks, and who waits for more.

    Attributes:
        state: The sequencer.
        chunks: What is kept.
        retention: How long.
        why_ended: Says so once it was deleted; else empty.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.state = Sequencer()
        self.chunks: ChunkList[Chunk] = ChunkList()
        self.retention = Retention()
        self.why_ended = ""
        self._now_ms = now_ms
        self._turn_bytes = 0
        self._late: list[tuple[Future[Appended], Appended]] = []
        self._waiting: set[Future[None]] = set()

    def append(self, batch: Batch, epoch: int | None, answer: Future[Appended]) -> None:
        """Append a batch; the answer comes now or in the next turn."""
        if self._turn_bytes > TURN_BYTES_MAX:
            raise Busy(f"{self._turn_bytes} octets were appended without awaiting an answer")
        appended, chunk = self.state.append(batch, epoch, self._now_ms())
        if chunk is not None:
            self.chunks.append(chunk)
            self.retain()
            self.wake()  # before the answer: who has that finds the records with the subscribers
        if not self._turn_bytes:
            answer.get_loop().call_soon(self._end_turn)
        self._turn_bytes += len(batch.payload) + CHUNK_OVERHEAD_BYTES
        if self._turn_bytes > TURN_BYTES:
            self._late.append((answer, appended))
        else:
            answer.set_result(appended)

    def _end_turn(self) -> None:
        self._turn_bytes = 0
        late, self._late = self._late, []
        for answer, appended in late:
            if not answer.done():
                answer.set_result(appended)
        self.wake()

    def wake(self) -> None:
        """Have every subscriber that waits look again."""
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait(self) -> None:
        """Return when there may be more."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    def end(self, why: str) -> None:
        """End it for all who have it open."""
        self.why_ended = why
        self.wake()

    def retain(self) -> None:
        """Give up what is beyond the retention; the newest chunk stays, unless it is too old."""
        limits, chunks, state = self.retention, self.chunks, self.state
        if limits.size_bytes is not None:
            while chunks.size_bytes > limits.size_bytes and len(chunks) > 1:
                state.trim(chunks.drop_first().next_offset)
        if limits.records is not None:
            state.trim(state.next_offset - limits.records)
        if limits.age_s is not None:
            oldest_ms = self._now_ms() - int(limits.age_s * 1000)
            while len(chunks) and chunks[chunks.first].time_ms < oldest_ms:
                state.trim(chunks.drop_first().next_offset)
        chunks.trim(state.first_offset)

    def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later."""
        ordinal = self.chunks.find_time(time_ms)
        if ordinal == self.chunks.next:
            return self.state.next_offset
        return max(self.chunks[ordinal].offset, self.state.first_offset)

    def check(self, offset: int) -> None:
        """Raise `Truncated` or `BeyondEnd` where an offset cannot be read."""
        if offset < self.state.first_offset:
            raise Truncated(self.state.first_offset)
        if offset > self.state.next_offset:
            raise BeyondEnd(offset, self.state.next_offset)


class OrbEngine:
    """A stream in memory, as one of those who have it open."""

    def __init__(self, stream: _OrbStream) -> None:
        self._stream = stream
        self._is_closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return CAPABILITIES

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        """Append records, all or none, at one place."""
        answer: Future[Appended] = asyncio.get_running_loop().create_future()
        try:
            self.open_stream().append(batch, epoch, answer)
        except ConsensusError as error:
            answer.set_exception(error)
        return answer

    async def fence(self) -> int:
        """Begin a new epoch and return it."""
        return self.open_stream().state.fence()

    async def read(self, offset: int, max_bytes: int = 1 << 20) -> Sequence[Chunk]:
        """Return chunks from `offset` on, cut so that the first begins there; none at the end."""
        stream = self.retained_stream()
        stream.check(offset)
        found: list[Chunk] = []
        ordinal, size_bytes = stream.chunks.find(offset), 0
        while ordinal < stream.chunks.next:
            chunk = stream.chunks[ordinal]
            size_bytes += len(chunk.batch.payload)
            if found and size_bytes > max_bytes:
                break
            found.append(chunk.since(offset))
            ordinal += 1
        return found

    def subscribe(self, start: Start) -> OrbSubscription:
        """Yield the chunks from `start` on, which is looked up now."""
        return OrbSubscription(self, start)

    async def bounds(self) -> Bounds:
        """Return what the stream holds."""
        stream = self.retained_stream()
        return replace(stream.state.bounds, size_bytes=stream.chunks.size_bytes)

    async def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later; the next one if none is."""
        return self.retained_stream().offset_at(time_ms)

    async def trim(self, before: int) -> None:
        """Give up records below an offset."""
        stream = self.open_stream()
        stream.chunks.trim(stream.state.trim(before))
        stream.wake()

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep an application's snapshot instead of an earlier one."""
        self.open_stream().state.keep_snapshot(snapshot)

    async def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return self.open_stream().state.snapshot

    async def members(self) -> Members:
        """Return who holds replicas: this process."""
        return Members((MEMBER,), (), MEMBER)

    async def change_members(self, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Is not to be had in one process."""
        raise Unsupported(f"have {[*voters, *learners]} hold replicas")

    async def close(self) -> None:
        """Let the stream go; it stays in the host."""
        self._is_closed = True
        self.wake()

    def wake(self) -> None:
        """Have the subscribers look again whether they are to go on."""
        self._stream.wake()

    def open_stream(self) -> _OrbStream:
        """Return the stream, while there is one."""
        if self._is_closed:
            raise Unavailable("the stream was closed here")
        if self._stream.why_ended:
            raise Unavailable(self._stream.why_ended)
        return self._stream

    def retained_stream(self) -> _OrbStream:
        """Return the stream without what has grown too old by now."""
        stream = self.open_stream()
        stream.retain()
        return stream


class OrbSubscription:
    """A subscriber's place in a stream."""

    def __init__(self, engine: OrbEngine, start: Start) -> None:
        self._engine = engine
        self._is_over = False
        self._failure: ConsensusError | None = None
        self._snapshot: Snapshot | None = None
        self._has_caught_up = False
        self._turn_bytes = 0
        try:
            stream = engine.retained_stream()
            self._offset = self._find(stream, start)
            stream.check(self._offset)
            self._ordinal = stream.chunks.find(self._offset)
            self._end = stream.state.next_offset
        except ConsensusError as error:
            self._failure = error

    def _find(self, stream: _OrbStream, start: Start) -> int:
        state = stream.state
        if isinstance(start, FromOffset):
            return start.offset
        if isinstance(start, FromTime):
            return stream.offset_at(start.time_ms)
        if start is Origin.NEXT:
            return state.next_offset
        if start is Origin.LAST:
            return max(state.first_offset, state.next_offset - 1)
        if start is Origin.SNAPSHOT and state.snapshot is not None:
            self._snapshot = state.snapshot
            return state.snapshot.offset
        return state.first_offset

    def __aiter__(self) -> OrbSubscription:
        return self

    async def __anext__(self) -> Chunk | CaughtUp | Snapshot:
        if self._is_over:
            raise StopAsyncIteration
        if self._failure is not None:
            raise self._failure
        if self._turn_bytes > TURN_BYTES:
            self._turn_bytes = 0
            await asyncio.sleep(0)
        while True:
            stream = self._engine.open_stream()
            if self._snapshot is not None:
                snapshot, self._snapshot = self._snapshot, None
                return snapshot
            if self._offset >= self._end and not self._has_caught_up:
                self._has_caught_up = True
                return CaughtUp(self._offset)
            if self._offset < stream.state.first_offset:
                raise Truncated(stream.state.first_offset)
            if self._ordinal < stream.chunks.next:
                return self._take(stream.chunks[self._ordinal])
            self._turn_bytes = 0
            await stream.wait()
            if self._is_over:
                raise StopAsyncIteration

    def _take(self, chunk: Chunk) -> Chunk:
        if chunk.offset != self._offset:
            chunk = chunk.since(self._offset)
        self._offset = chunk.next_offset
        self._ordinal += 1
        self._turn_bytes += chunk.size_bytes
        return chunk

    async def aclose(self) -> None:
        """End it."""
        self._is_over = True
        self._engine.wake()
