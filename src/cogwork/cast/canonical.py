"""Messages that have their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.plugin.engine.batch import Chunk

__all__ = ("CanonicalBatch", "CanonicalMessage")


class CanonicalMessage(NamedTuple):
    """A message with its place in the order of all.

    Attributes:
        body: What was sent.
        offset: Its place.
        time_ms: When it got it, in milliseconds since 1970 (UTC); it never goes back.
        producer: Which cast it came from.
    """

    body: bytes
    offset: int
    time_ms: int
    producer: bytes


class CanonicalBatch:
    """Messages that got their places together; iterating gives one after the other.

    Attributes:
        bodies: What was sent.
        offset: The first one's place; one more for each that follows.
        time_ms: When they got it.
        producer: Which cast they came from.
        size_bytes: What it takes in memory, about; 0 where nobody has counted.
    """

    __slots__ = ("_messages", "bodies", "offset", "producer", "size_bytes", "time_ms")

    def __init__(
        self,
        bodies: tuple[bytes, ...],
        offset: int,
        time_ms: int,
        producer: bytes,
        size_bytes: int = 0,
    ) -> None:
        self.bodies = bodies
        self.offset = offset
        self.time_ms = time_ms
        self.producer = producer
        self.size_bytes = size_bytes
        self._messages: list[CanonicalMessage] | None = None

    @classmethod
    def of(cls, chunk: Chunk) -> CanonicalBatch:
        """Unpack a chunk."""
        batch = chunk.batch
        return cls(tuple(batch.records()), chunk.offset, chunk.time_ms, batch.producer)

    @property
    def next_offset(self) -> int:
        """The place after the last one's."""
        return self.offset + len(self.bodies)

    def __len__(self) -> int:
        return len(self.bodies)

    def __iter__(self) -> Iterator[CanonicalMessage]:
        # Made once for all cogs.
        if self._messages is None:
            time_ms, producer = self.time_ms, self.producer
            self._messages = [
                CanonicalMessage(body, offset, time_ms, producer)
                for offset, body in enumerate(self.bodies, self.offset)
            ]
        return iter(self._messages)

    def since(self, offset: int) -> CanonicalBatch:
        """Return the part of it from `offset` on, which it holds."""
        if offset <= self.offset:
            return self
        bodies = self.bodies[offset - self.offset :]
        return CanonicalBatch(bodies, offset, self.time_ms, self.producer)
