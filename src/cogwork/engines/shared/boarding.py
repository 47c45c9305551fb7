"""What waits to be written to a stream, and which of it goes together into one entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import Fenced
from cogwork.plugin.engine.producers import Fresh, Repeated

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from cogwork.engines.shared.entry import Entry, Kind
    from cogwork.engines.shared.head import Head
    from cogwork.plugin.engine.batch import Batch
    from cogwork.plugin.engine.contract import Appended

__all__ = ("Boarding", "Flight", "Wanted")


@dataclass(slots=True, eq=False)
class Wanted:
    """Something to be written.

    Attributes:
        kind: What.
        answer: Where its answer goes.
        deadline_s: When the answer is given at the latest.
        batch: The records of an append.
        epoch: Under which they are to be appended.
        body: Makes the body of other kinds.
        size_bytes: What it adds to an entry.
        fresh: What of the batch is new.
        first_offset: Where the first record of the batch is, if it was there before.
        is_checked: Whether it was decided on with the newest state of the server.
        is_sent: Whether it may have happened.
    """

    kind: Kind
    answer: asyncio.Future[Appended]
    deadline_s: float
    batch: Batch | None = None
    epoch: int | None = None
    body: Callable[[Head], bytes] | None = None
    size_bytes: int = 0
    fresh: Batch | None = None
    first_offset: int | None = None
    is_checked: bool = False
    is_sent: bool = False


@dataclass(slots=True)
class Flight:
    """What is in one entry.

    Attributes:
        entry: The entry.
        wanted: Whose; they stay first in the queue until they are answered.
    """

    entry: Entry
    wanted: list[Wanted] = field(default_factory=list)


class Boarding:
    """What goes together into one entry.

    Args:
        head: The state before it.
        room_bytes: How much goes in; a first batch may be larger.

    Attributes:
        boarded: What goes in.
    """

    def __init__(self, head: Head, room_bytes: int) -> None:
        self.boarded: list[Wanted] = []
        self._head = head
        self._room_bytes = room_bytes
        self._size_bytes = 0
        self._sequences: dict[bytes, int] = {}

    def takes(self, wanted: Wanted, batch: Batch) -> bool:
        """Return whether it can be decided on now, and go in."""
        if self.boarded and self._size_bytes + wanted.size_bytes > self._room_bytes:
            return False
        return self._sequences.get(batch.producer, batch.sequence) == batch.sequence

    def decide(self, batch: Batch, epoch: int | None) -> Fresh | Repeated:
        """Return what of a batch is new.

        Raises:
            Fenced: The epoch is not the present one.
            OutOfSequence: Records of the producer are missing before these.
            SequenceReused: The producer has used a sequence for other records.
        """
        producers = self._head.producers
        is_counted = batch.producer != b""
        if epoch not in (None, self._head.epoch) and not (is_counted and producers.holds(batch)):
            raise Fenced(self._head.epoch)
        if not is_counted or batch.producer in self._sequences:
            return Fresh(batch)
        return producers.decide(batch)

    def board(self, wanted: Wanted, decision: Fresh) -> None:
        """Take it in."""
        batch = decision.batch
        wanted.fresh = batch
        wanted.first_offset = decision.first_offset
        if batch.producer:
            self._sequences[batch.producer] = batch.sequence + batch.count
        self._size_bytes += wanted.size_bytes
        self.boarded.append(wanted)
