"""A stream on replicas, as any container of the mesh has it: with a replica here, or without.

Theory of operation. What is appended leaves by the outbox, which finds the leader and repeats what
was not answered. What is read comes from the replica here, or else from one that answers, and from
another where that one falls silent: all have the same at the same offset. So a failure of the
leader, or of any replica, is nothing that whoever uses the engine has to know of.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.contract import (
    Appended,
    Bounds,
    CaughtUp,
    FromOffset,
    FromTime,
    Members,
    Origin,
    Snapshot,
)
from cogwork.plugin.engine.durability import Durability
from cogwork.plugin.engine.errors import BeyondEnd, ConsensusError, Unavailable
from cogwork.plugin.engine.sequencer import Fence, KeepSnapshot, Trim, demand_size
from cogwork.raft.settings import Settings
from cogwork.replication.calls import (
    Bounded,
    FindTime,
    GetBounds,
    GetMembers,
    GetSnapshot,
    MembersAre,
    SnapshotIs,
    TimeIs,
)
from cogwork.replication.outbox import OWN_MARK
from cogwork.replication.stream import BATCH_BYTES_MAX, resolve

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, Sequence

    from cogwork.plugin.engine.contract import Start
    from cogwork.plugin.engine.sequencer import Command
    from cogwork.replication.stream import Stream

__all__ = ("CAPABILITIES", "RaftEngine", "RaftSubscription")

CAPABILITIES = Capabilities(
    durability=Durability.QUORUM_DISK, changes_members=True, batch_bytes_max=BATCH_BYTES_MAX
)

SNAPSHOT_BYTES_MAX = Settings().entry_bytes - 1024
"""It goes in one entry, which has some octets more."""

READ_BYTES = 1 << 20
WAIT_S = 2.0
"""So long a read waits for something new before it is asked again."""


class RaftEngine:
    """A stream, as one of those who have it open."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._is_closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return CAPABILITIES

    @property
    def outage(self) -> str | None:
        """Why nobody takes appends now, and what to do; None where somebody does."""
        member = self._stream.reader
        if member is None or self._is_closed:
            return self._stream.outage
        return None if member.group.leader is not None else _leaderless(member.members)

    # -- commands

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        """Append records, all or none, at one place."""
        answer: Future[Appended] = asyncio.get_running_loop().create_future()
        try:
            self._open_stream().append(batch, epoch, partial(resolve, answer))
        except ConsensusError as error:
            answer.set_exception(error)
        return answer

    def append_then(
        self, batch: Batch, told: Callable[[Appended | int | ConsensusError], object]
    ) -> None:
        """Append records, and tell of the answer within a turn."""
        try:
            self._open_stream().append(batch, None, told)
        except ConsensusError as error:
            told(error)

    def release_unsent(self, reason: str) -> None:
        """Answer appends that were never sent anywhere."""
        if not self._is_closed:
            self._stream.release_unsent(reason)

    async def fence(self) -> int:
        """Begin a new epoch and return it."""
        return await self._command(Fence(), 0)

    async def trim(self, before: int) -> None:
        """Give up records below an offset."""
        await self._command(Trim(before), 0)

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep an application's snapshot instead of an earlier one."""
        demand_size(snapshot, SNAPSHOT_BYTES_MAX)  # before it is sent to who leads
        await self._command(KeepSnapshot(snapshot), len(snapshot.data))

    async def _command(self, command: Command, size_bytes: int) -> int:
        answer: Future[int] = asyncio.get_running_loop().create_future()
        self._open_stream().command(command, size_bytes, partial(resolve, answer))
        return await answer

    # -- reading

    async def read(self, offset: int, max_bytes: int = READ_BYTES) -> Sequence[Chunk]:
        """Return chunks from `offset` on, cut so that the first begins there; none at the end."""
        found = self.read_if_here(offset, max_bytes)
        if found is None:
            found = await self.read_or_wait(offset, max_bytes, 0.0)
        if found:
            return found
        bounds = await self.bounds()
        if offset > bounds.next:
            raise BeyondEnd(offset, bounds.next)
        while not found and offset < bounds.next:
            found = await self.read_or_wait(offset, max_bytes, WAIT_S)
        return found

    def read_here(self, offset: int, max_bytes: int = READ_BYTES) -> list[Chunk] | None:
        """Return chunks that the replica here has from `offset` on; None without a current one.

        Raises:
            Truncated: The offset is below the first one.
            Unavailable: The replica here cannot read what it has sealed.
        """
        member = self._open_stream().reader
        if member is None:
            return None
        return [_as_appended(chunk) for chunk in member.chunks(offset, max_bytes)]

    def read_if_here(self, offset: int, max_bytes: int = READ_BYTES) -> list[Chunk] | None:
        """Return the same; None, too, where the replica here cannot read them, and others may."""
        try:
            return self.read_here(offset, max_bytes)
        except Unavailable:
            self._open_stream()
            return None

    def more_here(self) -> Future[None]:
        """Return what is done when the replica here may have more."""
        member = self._open_stream().member
        assert member is not None
        return member.followers.more()

    def watch(self, on_more: Callable[[], object]) -> Future[None] | None:
        """Have something called when the replica here has more; None without a current one."""
        member = self._open_stream().reader
        return None if member is None else member.followers.watch(on_more)

    def glance(self) -> tuple[Bounds, Members] | None:
        """Return what the replica here knows; None without a current one."""
        member = self._open_stream().reader
        return None if member is None else (member.replica.state.bounds, member.members)

    def sealed_here(self) -> tuple[str, int] | None:
        """Return where the replica here has its segments, and the offset after them."""
        member = self._open_stream().member
        return (
            None if member is None else (member.files.segments.path, member.replica.sealed_offset)
        )

    async def read_or_wait(self, offset: int, max_bytes: int, wait_s: float) -> list[Chunk]:
        """Return chunks from `offset` on; none where there are still none after some time."""
        chunks = await self._open_stream().read_any(offset, max_bytes, wait_s)
        return [_as_appended(chunk) for chunk in chunks]

    def subscribe(self, start: Start) -> RaftSubscription:
        """Yield the chunks from `start` on."""
        return RaftSubscription(self, start)

    async def bounds(self) -> Bounds:
        """Return what the stream holds: no older than any answer that anybody has had."""
        answer = await self._open_stream().ask_any(GetBounds, Bounded)
        return Bounds(answer.first, answer.next, answer.size_bytes)

    async def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later; the next one if none is."""
        answer = await self._open_stream().ask_any(
            lambda number, key: FindTime(number, key, time_ms), TimeIs
        )
        return answer.offset

    async def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        answer = await self._open_stream().ask_any(GetSnapshot, SnapshotIs)
        return None if answer.offset < 0 else Snapshot(answer.offset, answer.data)

    # -- members

    async def members(self) -> Members:
        """Return who holds replicas."""
        answer = await self._open_stream().ask_any(GetMembers, MembersAre)
        found = Members(tuple(answer.voters), tuple(answer.learners), answer.leader)
        self._stream.outage = _leaderless(found)
        return found

    async def change_members(self, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Have others hold the replicas; return when they do."""
        await self._open_stream().change_members(voters, learners)

    # -- the end

    async def close(self) -> None:
        """Let the stream go; it stays where it is."""
        if not self._is_closed:
            self._is_closed = True
            self._stream.release()
            if self._stream.member is not None:
                self._stream.member.followers.wake()

    def _open_stream(self) -> Stream:
        if self._is_closed:
            raise Unavailable("the stream was closed here")
        stream = self._stream
        if stream.why_over:
            stream.demand_open()
        return stream


class RaftSubscription:
    """A subscriber's place in a stream."""

    def __init__(self, engine: RaftEngine, start: Start) -> None:
        self._engine = engine
        self._start: Start | None = start
        self._offset = 0
        self._end = 0
        self._snapshot: Snapshot | None = None
        self._has_caught_up = False
        self._ready: list[Chunk] = []
        self._reading: Future[list[Chunk]] | Future[None] | None = None
        self._is_over = False

    def __aiter__(self) -> RaftSubscription:
        return self

    async def __anext__(self) -> Chunk | CaughtUp | Snapshot:
        if self._is_over:
            raise StopAsyncIteration
        if self._start is not None:
            await self._begin(self._start)
            self._start = None
        if self._snapshot is not None:
            snapshot, self._snapshot = self._snapshot, None
            return snapshot
        while True:
            if self._offset >= self._end and not self._has_caught_up:
                self._has_caught_up = True
                return CaughtUp(self._offset)
            if self._ready:
                chunk = self._ready.pop()
                self._offset = chunk.next_offset
                return chunk
            await self._read()
            if self._is_over:
                raise StopAsyncIteration

    async def _begin(self, start: Start) -> None:
        engine = self._engine
        bounds = await engine.bounds()
        self._end = bounds.next
        if isinstance(start, FromOffset):
            self._offset = start.offset
            if start.offset > bounds.next:
                raise BeyondEnd(start.offset, bounds.next)
        elif isinstance(start, FromTime):
            self._offset = await engine.offset_at(start.time_ms)
        elif start is Origin.NEXT:
            self._offset = bounds.next
        elif start is Origin.LAST:
            self._offset = max(bounds.first, bounds.next - 1)
        else:
            self._offset = bounds.first
            if start is Origin.SNAPSHOT:
                self._snapshot = await engine.load_snapshot()
                self._offset = bounds.first if self._snapshot is None else self._snapshot.offset

    async def _read(self) -> None:
        """Read what is next, or wait for it; `aclose` ends the wait."""
        found = self._engine.read_if_here(self._offset)
        if found:
            await asyncio.sleep(0)  # who reads what is long there lets others run
        try:
            if found is None:
                found = await self._read_elsewhere()
            while not found and not self._is_over:
                self._reading = self._engine.more_here()
                await self._reading
                found = self._engine.read_if_here(self._offset)
                if found is None:  # the replica here has been given up meanwhile, or is damaged
                    found = await self._read_elsewhere()
            self._ready = found[::-1]
        except asyncio.CancelledError:
            if not self._is_over or _is_cancelled():
                raise
        finally:
            self._reading = None

    async def _read_elsewhere(self) -> list[Chunk]:
        found: list[Chunk] = []
        while not found and not self._is_over:
            reading = self._engine.read_or_wait(self._offset, READ_BYTES, WAIT_S)
            self._reading = asyncio.ensure_future(reading)
            found = await self._reading
        return found

    async def aclose(self) -> None:
        """End it."""
        self._is_over = True
        if self._reading is not None:
            self._reading.cancel()


def _leaderless(members: Members) -> str | None:
    """Return what to do where nobody leads."""
    if members.leader is not None:
        return None
    voters = ", ".join(members.voters)
    return f"nobody leads: a majority of {voters} has to be up and linked"


def _is_cancelled() -> bool:
    """Return whether who reads is to end, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _as_appended(chunk: Chunk) -> Chunk:
    """Take a producer off that is no application's."""
    batch = chunk.batch
    if not batch.producer.startswith(OWN_MARK):
        return chunk
    bare = Batch(batch.payload, batch.count)
    return Chunk(chunk.offset, chunk.epoch, chunk.time_ms, bare)
