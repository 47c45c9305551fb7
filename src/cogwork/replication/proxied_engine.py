"""A stream of this container's own engine, for other containers.

Theory of operation. An engine that lives in one process (`orb`) knows nothing of other containers.
Elsewhere its stream is like one on replicas of which there is only one, here: what is appended
comes as proposals of an outbox, what is read is asked for. So nothing is lost or twice where a link
breaks, and each call is carried out on the engine, in the order of their coming.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.chunks import encode_chunk
from cogwork.plugin.engine.contract import Appended, FromOffset, Members
from cogwork.plugin.engine.errors import BeyondEnd, ConsensusError, Malformed, Unknown
from cogwork.plugin.engine.sequencer import Append, Fence, Trim, decode
from cogwork.replication.calls import (
    Bounded,
    Failed,
    FindTime,
    GetBounds,
    GetMembers,
    GetSnapshot,
    MembersAre,
    Place,
    Proposal,
    Read,
    Records,
    Refused,
    Results,
    SnapshotIs,
    TimeIs,
    failure_of,
)
from cogwork.replication.outbox import OWN_MARK

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Bounds, CaughtUp, Engine, Snapshot, Start
    from cogwork.replication.calls import Answer, Call

__all__ = ("ProxiedEngine", "Unmarked")


class ProxiedEngine:
    """Carries out what others ask of one stream."""

    def __init__(self, engine: Engine, own: str) -> None:
        """Begin to serve.

        Args:
            engine: The stream, as this service's own.
            own: This container's id.
        """
        self._engine = engine
        self._own = own
        self._proposals: asyncio.Queue[tuple[Proposal, Callable[[Answer], object]]] = (
            asyncio.Queue()
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawn(self._propose())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Answer nobody any more, and let the stream go."""
        for task in list(self._tasks):
            task.cancel()
        await self._engine.close()

    def call(self, call: Call, answer: Callable[[Answer], object]) -> None:
        """Carry out a call; the answer comes later."""
        if isinstance(call, Proposal):
            self._proposals.put_nowait((call, answer))
        else:
            self._spawn(self._reply(call, answer))

    # -- proposals

    async def _propose(self) -> None:
        """Carry out proposals, one after the other; answer do not keep the next one waiting."""
        while True:
            call, answer = await self._proposals.get()
            results = [await self._begin(data) for data in call.commands]
            self._spawn(self._finish(call.number, results, answer))

    async def _begin(self, data: bytes) -> Awaitable[Appended] | int | Failed:
        """Carry out a command, and wait for its end unless it is an append."""
        engine = self._engine
        try:
            command = decode(data)
            if isinstance(command, Append):
                return engine.append(command.batch, command.epoch)
            if isinstance(command, Fence):
                return await engine.fence()
            if isinstance(command, Trim):
                await engine.trim(command.before)
            else:
                await engine.save_snapshot(command.snapshot)
            return (await engine.bounds()).first
        except ConsensusError as error:
            return failure_of(error)
        except Exception as error:  # there are proposals behind it
            return self._failed(error)

    async def _finish(
        self,
        number: int,
        results: Sequence[Awaitable[Appended] | int | Failed],
        answer: Callable[[Answer], object],
    ) -> None:
        told: list[Place | Failed | int] = []
        for each in results:
            if isinstance(each, int | Failed):
                told.append(each)
                continue
            try:
                place = await each
                told.append(Place(place.epoch, place.first_offset, place.is_repeated))
            except ConsensusError as error:
                told.append(failure_of(error))
            except Exception as error:  # the others have an answer
                told.append(self._failed(error))
        answer(Results(number, told))

    def _failed(self, error: Exception) -> Failed:
        """Tell of a fault of the engine; what it was to do may have happened."""
        context = {"message": f"a fault of {self._engine!r}", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
        return failure_of(Unknown(f"a fault in container {self._own}: {error!r:.200}"))

    # -- everything else

    async def _reply(self, call: Call, answer: Callable[[Answer], object]) -> None:
        try:
            answer(await self._answer_to(call))
        except ConsensusError as error:
            answer(Refused(call.number, failure_of(error)))

    async def _answer_to(self, call: Call) -> Answer:
        engine, number = self._engine, call.number
        match call:
            case Read():
                chunks = await self._read(call)
                following = (await engine.bounds()).next
                return Records(number, [encode_chunk(chunk) for chunk in chunks], following)
            case GetBounds():
                bounds = await engine.bounds()
                return Bounded(number, bounds.first, bounds.next, bounds.size_bytes or 0)
            case FindTime():
                return TimeIs(number, await engine.offset_at(call.time_ms))
            case GetSnapshot():
                snapshot = await engine.load_snapshot()
                if snapshot is None:
                    return SnapshotIs(number, -1, b"")
                return SnapshotIs(number, snapshot.offset, snapshot.data)
            case GetMembers():
                return MembersAre(number, [self._own], [], self._own)
        raise Malformed("a call", f"{type(call).__name__} is none of a stream's")

    async def _read(self, call: Read) -> Sequence[Chunk]:
        """Read what is there; where there is nothing yet, waits for something."""
        try:
            chunks = await self._engine.read(call.offset, call.max_bytes)
        except BeyondEnd:
            chunks = ()
        if chunks or not call.wait_ms:
            return chunks
        try:
            async with asyncio.timeout(call.wait_ms / 1000):
                return [await self._next(call.offset)]
        except (TimeoutError, BeyondEnd):
            return ()

    async def _next(self, offset: int) -> Chunk:
        subscription = self._engine.subscribe(FromOffset(offset))
        async with aclosing(subscription):
            while True:
                each = await anext(subscription)
                if isinstance(each, Chunk):
                    return each


class Unmarked:
    """A stream that is served to others, as this container's own users see it.

    What came from elsewhere bears the producer of an outbox, by which repetitions are known; no
    application gave it that.
    """

    def __init__(self, engine: Engine, own: str) -> None:
        """Look at a stream.

        Args:
            engine: The stream.
            own: This container's id.
        """
        self._engine = engine
        self._own = own

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return self._engine.capabilities

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        """Append records, all or none, at one place."""
        return self._engine.append(batch, epoch)

    async def fence(self) -> int:
        """Begin a new epoch and return it."""
        return await self._engine.fence()

    async def read(self, offset: int, max_bytes: int = 1 << 20) -> Sequence[Chunk]:
        """Return chunks from `offset` on."""
        return [_unmarked(chunk) for chunk in await self._engine.read(offset, max_bytes)]

    async def subscribe(self, start: Start) -> AsyncGenerator[Chunk | CaughtUp | Snapshot, None]:
        """Yield the chunks from `start` on."""
        subscription = self._engine.subscribe(start)
        async with aclosing(subscription):
            async for each in subscription:
                yield _unmarked(each) if isinstance(each, Chunk) else each

    async def bounds(self) -> Bounds:
        """Return what the stream holds."""
        return await self._engine.bounds()

    async def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later; the next one if none is."""
        return await self._engine.offset_at(time_ms)

    async def trim(self, before: int) -> None:
        """Give up records below an offset."""
        await self._engine.trim(before)

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep an application's snapshot instead of an earlier one."""
        await self._engine.save_snapshot(snapshot)

    async def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return await self._engine.load_snapshot()

    async def members(self) -> Members:
        """Return who holds it: this container."""
        return Members((self._own,), (), self._own)

    async def change_members(self, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Is what the engine says."""
        await self._engine.change_members(voters, learners)

    async def close(self) -> None:
        """Let the stream go; it stays where it is."""
        await self._engine.close()


def _unmarked(chunk: Chunk) -> Chunk:
    batch = chunk.batch
    if not batch.producer.startswith(OWN_MARK):
        return chunk
    return Chunk(chunk.offset, chunk.epoch, chunk.time_ms, Batch(batch.payload, batch.count))
