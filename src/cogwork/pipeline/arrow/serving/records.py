"""The records of one range, wherever they are: sealed here, or the container's to give out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

from cogwork.pipeline.arrow.batches import batch_of, columns_from
from cogwork.pipeline.arrow.errors import ArrowError, BeyondEnd, StreamTruncated, UnknownStream
from cogwork.pipeline.arrow.serving.segments import Segments

if TYPE_CHECKING:
    import pyarrow as pa

    from cogwork.dataplane.tables.columns import Columns
    from cogwork.pipeline.arrow.envelope import Range
    from cogwork.pipeline.arrow.serving.asker import Asker
    from cogwork.pipeline.arrow.serving.frames import Told

__all__ = ("Records",)

LAG_S = 2.0
"""How long this container may lag behind whoever told where the stream ends."""

PAUSE_S = 0.05


class Records:
    """What a link reads."""

    def __init__(self, asker: Asker, vhost: str, stream: str, wanted: Range) -> None:
        """Initialize it; it has read nothing.

        Args:
            asker: The way to the container.
            vhost: The virtual host's name.
            stream: The stream's name.
            wanted: The range.
        """
        self._asker = asker
        self._vhost = vhost
        self._stream = stream
        self._wanted = wanted
        self._segments: Segments | None = None
        self._sealed = 0
        self._chunks: list[bytes] = []
        self._before: Columns | None = None
        self.next = wanted.start

    @property
    def is_over(self) -> bool:
        """Whether all was read."""
        return self.next >= self._wanted.end

    async def check(self) -> None:
        """Make sure that the range is there.

        Raises:
            ArrowError: It is not; the type says why.
        """
        until_s = asyncio.get_running_loop().time() + LAG_S
        while True:
            told = await self._ask("bounds", 0)
            if self.next < told.first:
                raise StreamTruncated(self._stream, told.first)
            if self._wanted.end <= told.next:
                return
            if asyncio.get_running_loop().time() > until_s:
                raise BeyondEnd(self._stream, told.next)
            await asyncio.sleep(PAUSE_S)

    async def batch(self) -> pa.RecordBatch:
        """Return the next batch.

        Raises:
            ArrowError: Its records are not there any more.
            ValueError: They are damaged.
        """
        columns = columns_from(self._wanted.columns, self.next, self._wanted.end)
        if self._before is not None:
            columns.go_on(self._before)
        while not columns.is_full:
            if self._chunks:
                self._take_chunk(columns)
            elif not self._is_filled(columns):
                told = await self._ask("read", columns.next)
                self._chunks = told.chunks[::-1]
                if not told.chunks:
                    await asyncio.sleep(PAUSE_S)
                    await self.check()
        self._before = columns
        self.next = columns.next
        return batch_of(self._stream, self._wanted.columns, columns)

    def _take_chunk(self, columns: Columns) -> None:
        columns.add_chunk(self._chunks[-1])
        if not columns.is_full:
            self._chunks.pop()

    def _is_filled(self, columns: Columns) -> bool:
        if self._segments is None or columns.next >= self._sealed:
            return False
        return self._segments.fill(columns)

    async def _ask(self, what: str, offset: int) -> Told:
        told = await self._asker.ask(what, self._vhost, self._stream, offset)
        if told.error:
            self._refuse(told)
        if not told.directory:
            self._segments = None
        elif self._segments is None or self._segments.directory != told.directory:
            self._segments = Segments(told.directory)
        self._sealed = told.sealed
        return told

    def _refuse(self, told: Told) -> NoReturn:
        if told.error == "unknown":
            raise UnknownStream(self._stream)
        if told.error == "truncated":
            raise StreamTruncated(self._stream, told.first)
        raise ArrowError(self._stream, told.text)
