"""The state of one stream where a replica of it is: what it holds, and how it is read.

Theory of operation. Committed entries are applied in order; the sequencer says what each command
does, and its chunks go to the end of the *tail*, in memory. From time to time the tail is sealed
into a segment on disk, together with the sequencer's state as of then: that is the replica's
snapshot, and entries up to there are not needed any more. A restart begins with the snapshot, and
applies the entries that follow once more; chunks that are in a segment already are passed over.

While the records of a leader's snapshot are fetched, segments may have more than was applied. Where
entries go on in the meantime, what memory has from before is let go, for what follows it there is
passed over: the tail has no gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.plugin.engine.chunk_list import ChunkList
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import BeyondEnd, ConsensusError, Truncated, Unavailable
from cogwork.plugin.engine.sequencer import Sequencer
from cogwork.replication.calls import Failed, Place, failure_of
from cogwork.replication.entry import decode_entry
from cogwork.replication.sealed_chunks import SealedChunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.log.segment_store import SegmentStore
    from cogwork.plugin.engine.batch import Chunk
    from cogwork.plugin.engine.retention import Retention

__all__ = ("Replica", "Sealing")


@dataclass(frozen=True, slots=True)
class Sealing:
    """What is to be sealed.

    Attributes:
        chunks: Those that follow the last segment; they are asked for as it goes on.
        index: Of the last entry whose effects are in them and in the state.
        state: The sequencer's.
    """

    chunks: Iterable[Chunk]
    index: int
    state: bytes


class Replica:
    """One stream here.

    Attributes:
        state: The sequencer.
        tail: The chunks that are not in a segment, and perhaps some that are.
        segments: What is sealed.
        applied: The index of the last entry that was applied.
    """

    def __init__(
        self,
        segments: SegmentStore,
        report: Callable[[str], None],
        *,
        state: Sequencer | None = None,
        applied: int = 0,
        replays_to: int = 0,
    ) -> None:
        """Begin where its snapshot ends.

        Args:
            segments: What is sealed.
            report: Takes what the operator should know of the files.
            state: As of then; None for a new stream.
            applied: The index of the last entry in the state.
            replays_to: That of the last entry in the log.
        """
        self.state = state or Sequencer()
        self.tail: ChunkList[Chunk] = ChunkList()
        self.segments = segments
        self.applied = applied
        self._sealed_chunks = SealedChunks(segments, report, lambda: self.applied >= replays_to)
        self._report = report
        self._is_sealing = False
        self._has_failed_to_trim = False

    @property
    def sealed_offset(self) -> int:
        """The offset after all that is sealed."""
        return self.segments.next_offset or 0

    @property
    def tail_bytes(self) -> int:
        """What is in memory."""
        return self.tail.size_bytes

    @property
    def size_bytes(self) -> int:
        """What all records take."""
        return self.segments.size_bytes + self.tail.size_bytes

    # -- entries

    def apply(self, index: int, payload: bytes) -> list[Place | Failed | int]:
        """Apply an entry; return the answer to each of its commands."""
        self.applied = index
        results: list[Place | Failed | int] = []
        state, sealed = self.state, self.sealed_offset
        if state.next_offset < sealed and not self._is_sealing:
            self.tail.trim(sealed)
        first_offset = state.first_offset
        for command in decode_entry(payload):
            answer, chunk = state.apply(command)
            if chunk is not None and chunk.next_offset > sealed:
                self.tail.append(chunk)
            if isinstance(answer, Appended):
                results.append(Place(answer.epoch, answer.first_offset, answer.is_repeated))
            else:
                results.append(failure_of(answer) if isinstance(answer, ConsensusError) else answer)
        if state.first_offset > first_offset:
            self.trim()
        return results

    def skip(self, index: int) -> None:
        """Take note of an entry that is none of the stream's."""
        self.applied = index

    def trim(self) -> None:
        """Give up what is below the first record; what the disk keeps for now goes later."""
        if self._is_sealing:
            return
        try:
            self._trim(self.state.first_offset)
            self._has_failed_to_trim = False
        except OSError as error:
            if not self._has_failed_to_trim:
                self._report(f"cannot remove a segment: {error}")
            self._has_failed_to_trim = True

    def trim_again(self) -> None:
        """Give up what the disk has kept so far, if there is such."""
        if self._has_failed_to_trim:
            self.trim()

    def _trim(self, before: int) -> None:
        self.segments.retain(before_offset=before)
        if before > self.sealed_offset:
            # Some of it never was in a segment; the next one begins with what is left.
            tail = self.tail
            tail.trim(before)
            self.segments.clear(tail[tail.first].offset if len(tail) else self.state.next_offset)
        elif before == self.sealed_offset:
            self.tail.trim(before)

    # -- reading

    def read(self, offset: int, max_bytes: int) -> list[Chunk]:
        """Return chunks from `offset` on, cut so that the first begins there; none at the end.

        Raises:
            Truncated: The offset is below the first one.
            BeyondEnd: The replica has not come so far.
            Unavailable: It cannot be read here.
        """
        state = self.state
        if offset < state.first_offset:
            raise Truncated(state.first_offset)
        if offset > state.next_offset:
            raise BeyondEnd(offset, state.next_offset)
        if offset == state.next_offset:
            return []
        if self._is_sealed(offset):
            return self._sealed_chunks.read(offset, max_bytes)
        tail = self.tail
        ordinal = tail.find(offset)
        if ordinal == tail.next or tail[ordinal].offset > offset:
            raise Unavailable("this replica does not have all records in memory that it has")
        found = [tail[ordinal].since(offset)]
        size_bytes = len(found[0].batch.payload)
        while (ordinal := ordinal + 1) < tail.next and size_bytes < max_bytes:
            chunk = tail[ordinal]
            size_bytes += len(chunk.batch.payload)
            found.append(chunk)
        return found

    def _is_sealed(self, offset: int) -> bool:
        """Return whether a record that the stream has is to be read from a segment."""
        tail = self.tail
        return tail.first == tail.next or offset < tail[tail.first].offset

    def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later; the next one if none is.

        Raises:
            Unavailable: What is sealed cannot be read here.
        """
        first = self.state.first_offset
        has_sealed = first < self.state.next_offset and self._is_sealed(first)
        offset = self._sealed_chunks.offset_at(time_ms, first if has_sealed else None)
        if offset is None:
            ordinal = self.tail.find_time(time_ms)
            is_there = ordinal < self.tail.next
            offset = self.tail[ordinal].offset if is_there else self.state.next_offset
        return max(offset, first)

    # -- retention

    def expired_before(self, retention: Retention, now_ms: int) -> int:
        """Return the offset below which the retention lets records go; the first one for none.

        Raises:
            Unavailable: What is sealed cannot be read here.
        """
        state = self.state
        before = state.first_offset
        if retention.age_s is not None:
            before = max(before, self.offset_at(now_ms - int(retention.age_s * 1000)))
        if retention.records is not None:
            before = max(before, state.next_offset - retention.records)
        if retention.size_bytes is not None:
            size_bytes = self.size_bytes
            for segment in self.segments.segments:
                if size_bytes <= retention.size_bytes:
                    break
                size_bytes -= segment.size_bytes
                before = max(before, segment.next_offset)
        return before

    # -- sealing

    def begin_sealing(self) -> Sealing:
        """Return what is to be sealed now; nothing else is until `sealed` or `not_sealed`."""
        assert not self._is_sealing
        self._is_sealing = True
        sealed = self.sealed_offset
        tail = self.tail  # nothing of it is given up meanwhile
        # The first one is cut where segments were cleared for a snapshot that was not taken then.
        unsealed = (tail[at].since(sealed) for at in range(tail.find(sealed), tail.next))
        return Sealing(unsealed, self.applied, self.state.to_bytes())

    @property
    def is_sealing(self) -> bool:
        """Whether that is under way."""
        return self._is_sealing

    def let_go(self, count: int) -> bool:
        """Give up some chunks in memory that are in a segment; tell whether there are more."""
        return self.tail.trim(self.sealed_offset, count)

    def sealed(self) -> None:
        """The segment is there, and what is in it need not be in memory: something else may be."""
        self._is_sealing = False
        self.trim()

    def not_sealed(self) -> None:
        """There is no segment; everything stays as it is."""
        self._is_sealing = False

    def restore(self, state: Sequencer, applied: int) -> None:
        """Take over a leader's snapshot; its records are sealed already."""
        self.state = state
        self.applied = applied
        self.tail = ChunkList()
        self.trim()
