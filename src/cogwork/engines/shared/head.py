"""The stream's state at one entry: what a writer must know to write the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.engines.shared.chain import Chain
from cogwork.engines.shared.entry import Entry, Kind, Part
from cogwork.plugin.engine.errors import Malformed
from cogwork.plugin.engine.producers import PRODUCERS_MAX, ProducerTable

if TYPE_CHECKING:
    from cogwork.plugin.engine.batch import Batch

__all__ = ("Head",)


class Head:
    """What the entries up to one position have led to.

    Attributes:
        chain: Which entry that is.
        next_offset: The next record's offset.
        epoch: The present one.
        time_ms: The newest entry's.
        checkpoint: Where the newest complete checkpoint begins; 0 for none.
        snapshot: Where the newest complete snapshot begins; 0 for none.
        producers: Who has appended what.
        uncovered_bytes: How much has been written since the checkpoint.
        written: How much at all.
    """

    def __init__(self, producers_max: int = PRODUCERS_MAX) -> None:
        self.chain = Chain()
        self.next_offset = 0
        self.epoch = 0
        self.time_ms = 0
        self.checkpoint = 0
        self.snapshot = 0
        self.producers = ProducerTable(producers_max)
        self.uncovered_bytes = 0
        self.written = 0

    def entry(
        self,
        entry_id: bytes,
        kind: Kind,
        body: bytes,
        time_ms: int,
        *,
        count: int = 0,
        epoch: int | None = None,
    ) -> Entry:
        """Return the entry that would come next."""
        return Entry(
            kind,
            entry_id,
            self.chain.position,
            self.chain.id,
            self.next_offset,
            self.epoch if epoch is None else epoch,
            max(self.time_ms, time_ms),
            count,
            self.checkpoint,
            self.snapshot,
            self.written,
            body,
        )

    def take(self, position: int, data: bytes) -> Entry | None:
        """Go on to an entry, if it counts.

        Raises:
            Gap: Something is missing before it.
            Malformed: The log does not continue what was read from it before.
        """
        entry = self.chain.take(position, data)
        if entry is None:
            return None
        if entry.offset != self.next_offset:
            raise Malformed("the next entry", f"offset {self.next_offset} is missing")
        if entry.kind is Kind.RECORDS:
            for chunk in entry.chunks():
                self._record(chunk.batch, chunk.offset)
        elif entry.kind is not Kind.FENCE:
            self._take_part(entry.kind, position, Part.from_bytes(entry.body))
        self.next_offset = entry.next_offset
        self.epoch = entry.epoch
        self.time_ms = entry.time_ms
        self.uncovered_bytes += len(data)
        self.written += len(data)
        return entry

    def _record(self, batch: Batch, offset: int) -> None:
        if batch.producer:
            self.producers.record(batch, offset)

    def _take_part(self, kind: Kind, position: int, part: Part) -> None:
        if not part.is_last:
            return
        if kind is Kind.CHECKPOINT:
            self.checkpoint = part.first or position
            self.uncovered_bytes = 0
        else:
            self.snapshot = part.first or position

    def state(self) -> bytes:
        """Write down what a checkpoint keeps beside what every entry says."""
        return self.producers.to_bytes()

    def begin(self, position: int, entry: Entry) -> None:
        """Stand before an entry that is known to count, of whose past nothing is known.

        Raises:
            Malformed: The state is none.
        """
        self.chain = Chain.before(position, entry)
        self.next_offset = entry.offset
        self.epoch = entry.epoch
        self.time_ms = entry.time_ms
        self.checkpoint = entry.checkpoint
        self.snapshot = entry.snapshot
        self.written = entry.written

    def restore(self, state: bytes) -> None:
        """Take the producers from a checkpoint.

        Raises:
            Malformed: It is none.
        """
        self.producers = ProducerTable.from_bytes(state)
