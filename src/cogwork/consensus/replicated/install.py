"""Taking over a leader's snapshot: its state comes from the group, its records are read.

Theory of operation. A snapshot's content is the sequencer's state; the records that it speaks of
are read from any replica, from where those here end. They are sealed together with the state; a
crash in between leaves nothing that could be taken for more than it is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.consensus.chunks import decode_chunk
from cogwork.consensus.errors import ConsensusError, Malformed
from cogwork.consensus.replicated.calls import Read, Records
from cogwork.consensus.replicated.files import KeptState
from cogwork.consensus.sequencer import Sequencer

if TYPE_CHECKING:
    from cogwork.consensus.batch import Chunk as StreamChunk
    from cogwork.consensus.raft.snapshot import Chunk, Snapshot
    from cogwork.consensus.replicated.member import Member
    from cogwork.consensus.replicated.service import RaftService

__all__ = ("Installation",)

READ_BYTES = 4 << 20
SEAL_BYTES = 8 << 20

PAUSE_S = 1.0
"""So long the leader waits for a disk that does not take its snapshot, before it sends it again."""


class Installation:
    """One snapshot on its way."""

    def __init__(self, member: Member, service: RaftService) -> None:
        self._member = member
        self._service = service
        self._content = bytearray()
        self._task: asyncio.Task[None] | None = None

    def take(self, chunk: Chunk) -> None:
        """Keeps a part of the content."""
        if chunk.offset == 0:
            self._content.clear()
        self._content += chunk.data

    def complete(self, snapshot: Snapshot) -> None:
        """The content is whole: fetches the records."""
        content = bytes(self._content)
        self._task = asyncio.ensure_future(self._run(snapshot, content))

    def cancel(self) -> None:
        """The replica is closed."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, snapshot: Snapshot, content: bytes) -> None:
        is_good = False
        try:
            state = KeptState(snapshot, content)
            if (
                state.snapshot
                != KeptState.of(
                    snapshot.index, snapshot.term, snapshot.membership, content
                ).snapshot
            ):
                raise Malformed("a snapshot", "its octets are other ones than it says")
            await self._fetch(state, Sequencer.from_bytes(content))
            is_good = True
        except (ConsensusError, OSError) as error:
            self._service.report(f"stream {self._member.name}: a snapshot is refused: {error}")
            if isinstance(error, OSError):
                await asyncio.sleep(PAUSE_S)
        self._member.installed(snapshot, is_good=is_good)

    async def _fetch(self, state: KeptState, sequencer: Sequencer) -> None:
        files, replica = self._member.files, self._member.replica
        while replica.is_sealing:
            await asyncio.sleep(0.01)
        first, end = sequencer.first_offset, sequencer.next_offset
        offset = files.segments.next_offset
        if offset is None or offset < first:
            offset = first
            files.segments.clear(first)
        waiting: list[StreamChunk] = []
        size_bytes = 0
        while offset < end:
            chunks = await self._read(offset, end)
            offset = chunks[-1].next_offset
            waiting += chunks
            size_bytes += sum(len(chunk.batch.payload) for chunk in chunks)
            if size_bytes >= SEAL_BYTES and offset < end:
                await self._service.run(files.segments.sealing(files.blocks(waiting)))
                waiting, size_bytes = [], 0
        await self._service.run(files.sealing(waiting, state))

    async def _read(self, offset: int, end: int) -> list[StreamChunk]:
        """Reads chunks from another replica, up to the snapshot's end."""
        answer = await self._member.stream.ask_any(
            lambda number, name: Read(number, name, offset, READ_BYTES, 1000), 1.0, is_here=False
        )
        assert isinstance(answer, Records)
        chunks = [decode_chunk(data) for data in answer.chunks]
        chunks = [chunk for chunk in chunks if chunk.next_offset <= end]
        if not chunks or chunks[0].offset != offset:
            raise Malformed("what a replica sent", f"it does not begin at offset {offset}")
        return chunks
