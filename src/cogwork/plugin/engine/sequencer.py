"""The deterministic heart of a stream: what an append, a fence or a trim does to it.

Theory of operation. Whoever orders commands (one thread, or a group of replicas with a log) feeds
them to a sequencer; equal commands in equal order give equal answers, equal chunks and an equal
state. It keeps no records: the chunk that an append gives is stored by its owner. It reads no
clock: a command carries the time that its proposer stamped, and the sequencer keeps it from going
back.
"""

from __future__ import annotations

import struct
from math import inf

from cogwork.plugin.engine.batch import Batch, Chunk, check
from cogwork.plugin.engine.chunks import decode_command as decode
from cogwork.plugin.engine.chunks import encode_command as encode
from cogwork.plugin.engine.commands import Append, Command, Fence, KeepSnapshot, Trim
from cogwork.plugin.engine.contract import Appended, Bounds, Snapshot
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    ConsensusError,
    Fenced,
    InvalidSnapshot,
    Malformed,
    Truncated,
)
from cogwork.plugin.engine.producers import PRODUCERS_MAX, ProducerTable, Repeated

__all__ = (
    "SNAPSHOT_BYTES_MAX",
    "Append",
    "Command",
    "Fence",
    "KeepSnapshot",
    "Sequencer",
    "Trim",
    "decode",
    "demand_size",
    "encode",
)

VERSION = 1
SNAPSHOT_BYTES_MAX = 64 << 20
"""An application's snapshot is no larger: it travels and is kept whole."""

_STATE = struct.Struct(">BQQQqBQI")

Answer = Appended | ConsensusError | int
"""The answer to an append; the new epoch; the first offset after a trim or a snapshot."""


class Sequencer:
    """The state of one stream but for its records.

    Attributes:
        first_offset: The oldest record's.
        next_offset: The next record's.
        epoch: The present one.
        time_ms: The newest record's time.
        snapshot: The application's newest snapshot.
        producers: Who has appended what.
    """

    __slots__ = ("epoch", "first_offset", "next_offset", "producers", "snapshot", "time_ms")

    def __init__(self, producers_max: int = PRODUCERS_MAX) -> None:
        self.first_offset = 0
        self.next_offset = 0
        self.epoch = 0
        self.time_ms = 0
        self.snapshot: Snapshot | None = None
        self.producers = ProducerTable(producers_max)

    @property
    def bounds(self) -> Bounds:
        """What the stream holds."""
        return Bounds(self.first_offset, self.next_offset)

    def apply(self, command: Command) -> tuple[Answer, Chunk | None]:
        """Do what a command says; an error is an answer, too.

        Returns:
            The answer, and the chunk to store, if there is one.
        """
        try:
            if isinstance(command, Append):
                return self.append(command.batch, command.epoch, command.time_ms)
            if isinstance(command, Fence):
                return self.fence(), None
            if isinstance(command, Trim):
                return self.trim(command.before), None
            return self.keep_snapshot(command.snapshot), None
        except ConsensusError as error:
            return error, None

    def append(
        self, batch: Batch, epoch: int | None, time_ms: int
    ) -> tuple[Appended, Chunk | None]:
        """Give a batch its place.

        Returns:
            The answer, and the chunk to store; no chunk where all of it is a repetition. What was
            appended before the epoch changed is answered as such, under any epoch.

        Raises:
            Fenced: The epoch is not the present one.
            InvalidAppend: The batch is none.
            OutOfSequence: Records of the producer are missing before these.
            SequenceReused: The producer has used a sequence for other records.
        """
        check(batch)
        if epoch is not None and epoch != self.epoch and not self._repeats(batch):
            raise Fenced(self.epoch)
        offset = self.next_offset
        first_offset: int | None = offset
        if batch.producer:
            decision = self.producers.decide(batch)
            if isinstance(decision, Repeated):
                return Appended(self.epoch, decision.first_offset, is_repeated=True), None
            if decision.batch is not batch:
                batch = decision.batch
                first_offset = decision.first_offset
            self.producers.record(batch, offset)
        self.time_ms = time_ms = max(self.time_ms, time_ms)
        self.next_offset = offset + batch.count
        return Appended(self.epoch, first_offset), Chunk(offset, self.epoch, time_ms, batch)

    def _repeats(self, batch: Batch) -> bool:
        return batch.producer != b"" and self.producers.holds(batch)

    def fence(self) -> int:
        """Begin a new epoch and return it."""
        self.epoch += 1
        return self.epoch

    def trim(self, before: int) -> int:
        """Give up what is below an offset; return the first offset that is left."""
        self.first_offset = max(self.first_offset, min(before, self.next_offset))
        return self.first_offset

    def keep_snapshot(self, snapshot: Snapshot) -> int:
        """Keep a snapshot, unless a newer one is there; return the first offset.

        Raises:
            BeyondEnd: It speaks of records that the stream does not have.
            InvalidSnapshot: It is too large.
            Truncated: What follows it has been given up.
        """
        if snapshot.offset > self.next_offset:
            raise BeyondEnd(snapshot.offset, self.next_offset)
        demand_size(snapshot)
        if self.snapshot is None or snapshot.offset >= self.snapshot.offset:
            if snapshot.offset < self.first_offset:
                raise Truncated(self.first_offset)
            self.snapshot = snapshot
        return self.first_offset

    def to_bytes(self) -> bytes:
        """Write the state down: the same octets on every replica."""
        snapshot = self.snapshot
        data = snapshot.data if snapshot is not None else b""
        head = _STATE.pack(
            VERSION,
            self.first_offset,
            self.next_offset,
            self.epoch,
            self.time_ms,
            snapshot is not None,
            snapshot.offset if snapshot is not None else 0,
            len(data),
        )
        return head + data + self.producers.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, producers_max: int = PRODUCERS_MAX) -> Sequencer:
        """Read the state back.

        Raises:
            Malformed: It is none, or of another version.
        """
        try:
            version, first, following, epoch, time_ms, has_snapshot, offset, length = (
                _STATE.unpack_from(data)
            )
        except struct.error as error:
            raise Malformed("a stream's state", "it is cut short") from error
        end = _STATE.size + length
        if version != VERSION:
            raise Malformed("a stream's state", f"its version is {version}, not {VERSION}")
        if end > len(data) or first > following:
            raise Malformed("a stream's state", "its numbers do not fit")
        made = cls(producers_max)
        made.first_offset, made.next_offset = first, following
        made.epoch, made.time_ms = epoch, time_ms
        if has_snapshot:
            made.snapshot = Snapshot(offset, data[_STATE.size : end])
        made.producers = ProducerTable.from_bytes(data[end:], producers_max)
        return made


def demand_size(snapshot: Snapshot, max_bytes: float = inf) -> None:
    """See that a snapshot is not too large to be kept.

    Args:
        snapshot: The snapshot.
        max_bytes: What an engine keeps that keeps less than others.

    Raises:
        InvalidSnapshot: It is.
    """
    kept_bytes = int(min(max_bytes, SNAPSHOT_BYTES_MAX))
    if len(snapshot.data) > kept_bytes:
        raise InvalidSnapshot(len(snapshot.data), kept_bytes)
