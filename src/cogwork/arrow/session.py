"""One connection to the mesh, and what is asked over it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from cogwork.arrow.cut import SIZE_MAX_BYTES, limit_of
from cogwork.arrow.errors import ArrowError, BeyondEnd, StreamTruncated, UnknownStream
from cogwork.arrow.rows import batch_of
from cogwork.client.errors import (
    AuthenticationError,
    ClientError,
    CogworkError,
    ConnectError,
    NotFound,
)
from cogwork.client.errors import StreamTruncated as LinkTruncated
from cogwork.client.mesh import Mesh
from cogwork.client.url import parse_url
from cogwork.consensus.engine import FromOffset, FromTime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import pyarrow as pa

    from cogwork.client import Record
    from cogwork.client.options import Options

__all__ = ("Session",)

PREFIX = "stream/"

AGAIN_S = 0.2
"""How long to wait before something is tried again."""

LAG_S = 2.0
"""How long a replica may lag behind whoever told where the stream ends."""


class Session:
    """A connection that is made when it is needed. Lives on the loop's thread."""

    def __init__(self, url: str, options: Options, timeout_s: float) -> None:
        """Is not connected yet.

        Args:
            url: Where to.
            options: How to connect.
            timeout_s: How long to go on trying where nothing comes.
        """
        self._url = url
        self._options = options
        self._timeout_s = timeout_s
        self._mesh: Mesh | None = None
        self._connecting = asyncio.Lock()

    @staticmethod
    def check(url: str) -> None:
        """Looks at a URL.

        Raises:
            InvalidUrlError: It is wrong.
        """
        parse_url(url)

    async def close(self) -> None:
        """Closes the connection."""
        mesh, self._mesh = self._mesh, None
        if mesh is not None:
            await mesh.close()

    async def _connected(self) -> Mesh:
        async with self._connecting:
            if self._mesh is None:
                self._mesh = await self._connect()
            return self._mesh

    async def _connect(self) -> Mesh:
        until_s = asyncio.get_running_loop().time() + self._timeout_s
        while True:
            mesh = Mesh([self._url], self._options)
            try:
                return await mesh.__aenter__()
            except AuthenticationError:
                raise
            except ConnectError:
                if asyncio.get_running_loop().time() + AGAIN_S > until_s:
                    raise
            await asyncio.sleep(AGAIN_S)

    @asynccontextmanager
    async def _told(self, stream: str) -> AsyncIterator[None]:
        """Turns what the client raises into what is ours."""
        try:
            yield
        except NotFound as error:
            raise UnknownStream(stream) from error
        except LinkTruncated as error:
            raise StreamTruncated(stream, error.first) from error
        except TimeoutError as error:
            raise ArrowError(stream, f"nothing came for {self._timeout_s:g} s") from error
        except ArrowError:
            raise
        except ClientError as error:
            raise ArrowError(stream, error.description) from error
        except CogworkError as error:
            raise ArrowError(stream, str(error)) from error

    # -- what there is

    async def streams(self) -> list[str]:
        """Lists the streams."""
        names: list[str] = []
        async with self._told("*"):
            mesh = await self._connected()
            while True:
                about = {"type": "stream", "index": len(names)}
                reply = await mesh.manage("QUERY", about, {"attributeNames": ["name"]})
                page: Any = reply.body
                names += [str(row[0]).removeprefix(PREFIX) for row in page["results"]]
                if not page["results"] or len(names) >= int(str(reply.properties["total"])):
                    return names

    async def bounds(self, stream: str) -> tuple[int, int]:
        """Returns the first offset, and the next one."""
        async with self._told(stream):
            mesh = await self._connected()
            reply = await mesh.manage("READ", {"type": "stream", "name": PREFIX + stream})
            row: Any = reply.body
            return int(row["first"]), int(row["next"])

    async def offset_at(self, stream: str, time_us: int) -> int:
        """Returns the first offset of this time or later."""
        async with self._told(stream), asyncio.timeout(self._timeout_s):
            mesh = await self._connected()
            start = FromTime(-(-time_us // 1000))
            async with mesh.stream(PREFIX + stream).read(start, credit=1) as reader:
                taking = asyncio.ensure_future(reader.take(1))
                told = asyncio.ensure_future(reader.caught_up())
                try:
                    await asyncio.wait((taking, told), return_when=asyncio.FIRST_COMPLETED)
                    if taking.done():
                        return taking.result()[0].offset
                    following = reader.next_offset
                    assert following is not None
                    return following
                finally:
                    taking.cancel()
                    told.cancel()

    # -- reading

    async def _check(self, stream: str, start: int, end: int) -> None:
        """Makes sure that a range is there.

        Raises:
            StreamTruncated: Its beginning is not.
            BeyondEnd: Its end is not.
        """
        until_s = asyncio.get_running_loop().time() + LAG_S
        while True:
            first, following = await self.bounds(stream)
            if start < first:
                raise StreamTruncated(stream, first)
            if end <= following:
                return
            if asyncio.get_running_loop().time() > until_s:
                raise BeyondEnd(stream, following)
            await asyncio.sleep(AGAIN_S)

    async def read(
        self, stream: str, start: int, end: int, columns: tuple[str, ...]
    ) -> AsyncIterator[pa.RecordBatch]:
        """Yields a range."""
        await self._check(stream, start, end)
        cutter = _Cutter(start, end)
        async with self._told(stream):
            mesh = await self._connected()
            async with mesh.stream(PREFIX + stream).read(FromOffset(start)) as reader:
                while not cutter.is_over:
                    async with asyncio.timeout(self._timeout_s):
                        taken = await reader.take()
                    for records in cutter.cut(taken):
                        yield batch_of(stream, records, columns)


class _Cutter:
    """Cuts records that come into batches."""

    def __init__(self, start: int, end: int) -> None:
        self._end = end
        self._held: list[Record] = []
        self._held_bytes = 0
        self._next = start
        self._limit = limit_of(start, end)

    @property
    def is_over(self) -> bool:
        return self._next >= self._end

    def cut(self, records: list[Record]) -> Iterator[list[Record]]:
        for record in records:
            if self.is_over:
                return
            size_bytes = len(record.encode())
            if self._held and self._held_bytes + size_bytes > SIZE_MAX_BYTES:
                yield self._taken()
            self._held.append(record)
            self._held_bytes += size_bytes
            self._next += 1
            if self._next == self._limit:
                yield self._taken()

    def _taken(self) -> list[Record]:
        taken, self._held, self._held_bytes = self._held, [], 0
        self._limit = limit_of(self._next, self._end)
        return taken
