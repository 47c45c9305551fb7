"""Taking over a leader's snapshots: their state comes from the group, their records are read.

Theory of operation. A snapshot's content is the sequencer's state; the records that it speaks of
are read from any replica, from where those here end. They are sealed together with the state; a
crash in between leaves nothing that could be taken for more than it is.

Some of these records may have been given up since: an entry that follows the snapshot says so, and
what is left is fetched.

While a snapshot's records are fetched, the leader may send a newer one. The older one is broken off
then: the newer one goes on from what is sealed, once the disk has done what it had begun.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import Malformed, Truncated
from cogwork.plugin.engine.sequencer import Sequencer
from cogwork.replication.files import KeptState

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from cogwork.log.disk_queue import Operation
    from cogwork.plugin.engine.batch import Chunk as StreamChunk
    from cogwork.raft.snapshot import Chunk, Snapshot
    from cogwork.replication.member import Member
    from cogwork.replication.service import RaftService

__all__ = ("Installation",)

READ_BYTES = 1 << 20
SEAL_BYTES = 8 << 20

WAIT_S = 1.0
"""So long a replica is given to have the records that a snapshot speaks of."""

PAUSE_S = 1.0
"""So long the leader waits after a snapshot was refused, before it sends it again."""

LOOK_S = 0.01
"""How often it is looked whether the disk has done what was begun before."""


class Installation:
    """The snapshots of one replica's leaders: one at a time is fetched, the newest."""

    def __init__(self, member: Member, service: RaftService) -> None:
        self._member = member
        self._service = service
        self._content = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._writing: asyncio.Future[object] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether records are fetched and sealed."""
        return _is_going_on(self._task)

    def take(self, chunk: Chunk) -> None:
        """Keep a part of the content."""
        if chunk.offset == 0:
            self._content.clear()
        self._content += chunk.data

    def complete(self, snapshot: Snapshot) -> None:
        """The content is whole: fetches the records, and those of no older snapshot any more."""
        self.cancel()
        content = bytes(self._content)
        self._content.clear()
        self._task = asyncio.ensure_future(self._run(snapshot, content))

    def cancel(self) -> None:
        """Nobody waits for the snapshot any more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, snapshot: Snapshot, content: bytes) -> None:
        is_good = False
        try:
            await self._fetch(_checked(snapshot, content), Sequencer.from_bytes(content))
            is_good = True
        except Exception as error:  # whatever it was, the leader is to be told
            reason = str(error) or repr(error)
            self._service.report(f"stream {self._member.name}: cannot install a snapshot: {reason}")
            await asyncio.sleep(PAUSE_S)
        self._member.installed(snapshot, is_good=is_good)

    async def _fetch(self, state: KeptState, sequencer: Sequencer) -> None:
        files, replica = self._member.files, self._member.replica
        while replica.is_sealing or _is_going_on(self._writing):
            await asyncio.sleep(LOOK_S)
        first, end = sequencer.first_offset, sequencer.next_offset
        offset = files.segments.next_offset
        if offset is None or offset < first:
            offset = first
            files.segments.clear(first)
        waiting: list[StreamChunk] = []
        size_bytes = 0
        while offset < end:
            try:
                chunks = await self._read(offset, end)
            except Truncated as error:
                offset, waiting, size_bytes = min(error.first, end), [], 0
                files.segments.clear(offset)
                continue
            offset = chunks[-1].next_offset
            waiting += chunks
            size_bytes += sum(len(chunk.batch.payload) for chunk in chunks)
            if size_bytes >= SEAL_BYTES and offset < end:
                await self._write(files.segments.sealing(files.blocks(waiting)))
                waiting, size_bytes = [], 0
        await self._write(files.sealing(waiting, state))

    async def _write(self, steps: Generator[Operation, None, object]) -> None:
        """Have the disk do something, which it goes on with even where this is cancelled."""
        self._writing = asyncio.ensure_future(self._service.run(steps))
        self._writing.add_done_callback(_notice)
        await asyncio.shield(self._writing)

    async def _read(self, offset: int, end: int) -> list[StreamChunk]:
        """Read chunks from another replica, up to the snapshot's end.

        Raises:
            Truncated: The stream begins later by now.
        """
        try:
            chunks = await self._member.stream.read_any(offset, READ_BYTES, WAIT_S, is_here=False)
        except Truncated as error:
            if error.first <= offset:
                raise Malformed("what a replica sent", f"{error}, not at {offset}") from None
            raise
        chunks = [chunk for chunk in chunks if chunk.next_offset <= end]
        if not chunks or chunks[0].offset != offset:
            raise Malformed("what a replica sent", f"it does not begin at offset {offset}")
        return chunks


def _notice(done: asyncio.Future[object]) -> None:
    """Take note of how something ended that perhaps nobody waits for any more."""
    if not done.cancelled():
        done.exception()


def _is_going_on(future: asyncio.Future[Any] | None) -> bool:
    return future is not None and not future.done()


def _checked(snapshot: Snapshot, content: bytes) -> KeptState:
    """Return what is to be kept of a snapshot.

    Raises:
        Malformed: The content is not the snapshot's.
    """
    named = KeptState.of(snapshot.index, snapshot.term, snapshot.membership, content)
    if named.snapshot != snapshot:
        raise Malformed("a snapshot", "its octets are other ones than it says")
    return named
