"""The way to a stream of the mesh, by the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.cast.canonical import CanonicalBatch
from cogwork.client.errors import LinkDetached, RecordsLost, StreamTruncated
from cogwork.plugin.engine.batch import BATCH_BYTES_MAX
from cogwork.plugin.engine.contract import CaughtUp, FromOffset, Origin, Snapshot, Start
from cogwork.plugin.engine.errors import BeyondEnd, Truncated, Unavailable
from cogwork.plugin.engine.errors import RecordsLost as EngineRecordsLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from cogwork.client import Client
    from cogwork.client.streams.publisher import StreamPublisher
    from cogwork.client.streams.reader import StreamReader
    from cogwork.client.streams.stream import Stream
    from cogwork.dataplane.client.stream_records import Record, Records

__all__ = ("StreamLine",)

MESSAGE_OVERHEAD_BYTES = 1 << 10
"""What a message has besides its body, at most."""


POSTED_MAX = 10_000
"""Messages that are posted together."""


class StreamLine:
    """Connects to the mesh for itself; the client sees to it that each message is there once.

    Args:
        connect: Makes the mesh.
        address: The stream's.
    """

    def __init__(self, connect: Callable[[], Client], address: str) -> None:
        self._connect = connect
        self._address = address
        self._client: Client | None = None
        self._stream: Stream
        self._publisher: StreamPublisher

    @property
    def producer(self) -> bytes:
        """Who the stream says has sent what went this way."""
        return self._publisher.producer

    @property
    def batch_bytes_max(self) -> int:
        """How much can be appended at once."""
        return BATCH_BYTES_MAX - MESSAGE_OVERHEAD_BYTES

    async def open(self) -> None:
        """Connect."""
        self._client = await self._connect().__aenter__()
        try:
            self._stream = self._client.stream(self._address)
            self._publisher = self._stream.publisher()
            await self._publisher.open()
        except BaseException:
            await self._client.close()
            raise

    async def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            await self._client.close()

    async def append(self, bodies: Sequence[bytes]) -> int | None:
        """Append messages, each once; where they are it does not learn."""
        for start in range(0, len(bodies), POSTED_MAX):
            await self._publisher.ready()
            posted = self._publisher.post_batch(bodies[start : start + POSTED_MAX])
            for outcome in await posted:
                if (error := outcome.error()) is not None:
                    raise error
        return None

    async def end(self) -> int:
        """Return the offset after the newest message."""
        async with self._stream.read(Origin.NEXT, credit=1) as reader:
            await reader.caught_up()
            following = reader.next_offset
        if following is None:
            raise Unavailable("the stream did not say where it ends")
        return following

    async def read(
        self, start: Start
    ) -> AsyncGenerator[CanonicalBatch | CaughtUp | Snapshot, None]:
        """Yield messages from a place on, without an end.

        `CaughtUp` may come some messages later than it could.
        """
        try:
            async with self._stream.read(start) as reader:
                async for found in _read(reader):
                    yield found
        except StreamTruncated as error:
            raise Truncated(error.first) from error
        except RecordsLost as error:
            raise EngineRecordsLost(error.end) from error
        except LinkDetached as error:
            if error.condition == Condition.INVALID_FIELD and isinstance(start, FromOffset):
                raise BeyondEnd(start.offset, await self.end()) from error
            raise

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in the stream."""
        await self._stream.save_snapshot(snapshot.data, snapshot.offset)


async def _read(reader: StreamReader) -> AsyncGenerator[CanonicalBatch | CaughtUp | Snapshot, None]:
    offset: int | None = None
    has_caught_up = False
    catching_up = asyncio.ensure_future(reader.caught_up())
    taking: asyncio.Future[Records] | None = None
    try:
        while True:
            taking = taking or asyncio.ensure_future(reader.take())
            if not has_caught_up:
                await asyncio.wait((catching_up, taking), return_when=asyncio.FIRST_COMPLETED)
            if has_caught_up or taking.done() or reader.waiting:
                records, taking = await taking, None
                if not records:
                    raise Unavailable("the reader was closed")
                for found in _batches(records):
                    offset = found.offset if isinstance(found, Snapshot) else found.next_offset
                    yield found
            if not has_caught_up and reader.is_caught_up:
                has_caught_up = True
                following = reader.next_offset if offset is None else offset
                assert following is not None
                yield CaughtUp(following)
    finally:
        for task in (catching_up, taking):
            if task is not None:
                task.cancel()
        await asyncio.gather(catching_up, *([taking] if taking else []), return_exceptions=True)


def _batches(records: Records) -> Iterator[CanonicalBatch | Snapshot]:
    """Put those together that follow each other, of one producer and one time."""
    bodies: list[bytes] = []
    place: tuple[int, int, bytes] = (0, 0, b"")
    for record in records:
        if record.is_snapshot:
            yield Snapshot(record.offset, _body(record))
            continue
        found = (record.offset, record.time_ms, record.producer or b"")
        if bodies and found == (place[0] + len(bodies), *place[1:]):
            bodies.append(_body(record))
            continue
        if bodies:
            yield CanonicalBatch(tuple(bodies), *place)
        bodies, place = [_body(record)], found
    if bodies:
        yield CanonicalBatch(tuple(bodies), *place)


def _body(record: Record) -> bytes:
    """Return the body: octets, or whatever another client has sent."""
    return record.body  # type: ignore[return-value]  # casts send octets
