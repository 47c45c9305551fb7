"""What a client asks of the mesh, over a connection that is made when it is needed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cogwork.client.client import Client
from cogwork.client.connection.certificates import is_untrusted
from cogwork.client.errors import (
    AuthenticationError,
    ClientError,
    CogworkError,
    ConnectError,
    Disconnected,
    LinkRefused,
    NotFound,
)
from cogwork.client.errors import StreamTruncated as LinkTruncated
from cogwork.client.options import Retry
from cogwork.pipeline.arrow.batches import batch_of, columns_from
from cogwork.pipeline.arrow.envelope import BEYOND_END, Range, decode_batch
from cogwork.pipeline.arrow.errors import ArrowError, BeyondEnd, StreamTruncated, UnknownStream
from cogwork.pipeline.arrow.ranges import RangeReader
from cogwork.pipeline.arrow.schema import schema_of
from cogwork.pipeline.arrow.serving.job import OFFERED
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    import pyarrow as pa

    from cogwork.client.connection.url import Endpoint
    from cogwork.client.options import Options

__all__ = ("Session",)

PREFIX = "stream/"

AGAIN_S = 0.1
"""How long to wait before something is tried again."""

LAG_S = 2.0
"""How long a replica may lag behind whoever told where the stream ends."""

DISTRUST_S = 2.0
"""So long readers that failed are not asked again."""

SILENCE_S = 5.0
"""A reader that says nothing for so long is passed over: it may be one that hangs."""

TIME_MAX_MS = (1 << 63) - 1
"""What AMQP has for a time; no record is of a later one."""

CALL_S = 10.0
READER_RETRY = Retry(longest_s=0.2, give_up_after_s=2.0)
FRAME_BYTES = 1 << 16
"""A reader's frames: what has arrived of one is kept beside until the rest has, so larger ones are
copied more often, and smaller ones bring nothing."""


class Session:
    """Lives on the loop's thread."""

    def __init__(self, endpoints: Sequence[Endpoint], options: Options, timeout_s: float) -> None:
        """Is not connected yet.

        Args:
            endpoints: Where to, in this order.
            options: How to connect.
            timeout_s: How long to go on trying where nothing comes.
        """
        self._endpoints = endpoints
        self._options = options
        self._timeout_s = timeout_s
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._last_refusal: ConnectError | None = None
        self._distrusted_until_s: dict[str, float] = {}

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> Client:
        until_s = _now_s() + self._timeout_s
        while True:
            try:
                client = await Client(self._endpoints, self._options).__aenter__()
            except AuthenticationError:
                raise
            except ConnectError as error:
                self._last_refusal = error
                if _now_s() + AGAIN_S > until_s or is_untrusted(error):
                    raise
            else:
                self._last_refusal = None
                return client
            await asyncio.sleep(AGAIN_S)

    @asynccontextmanager
    async def _told(self, stream: str) -> AsyncIterator[None]:
        """Turn what the client raises into what is ours."""
        try:
            yield
        except ArrowError:
            raise
        except NotFound as error:
            raise UnknownStream(stream) from error
        except LinkTruncated as error:
            raise StreamTruncated(stream, error.first) from error
        except TimeoutError as error:
            why = "" if self._last_refusal is None else f": {self._last_refusal}"
            raise ArrowError(stream, f"nothing came for {self._timeout_s:g} s{why}") from error
        except ClientError as error:
            raise ArrowError(stream, error.description, error.condition) from error
        except CogworkError as error:
            raise ArrowError(stream, str(error)) from error

    # -- what there is

    async def streams(self) -> list[str]:
        """List the streams."""
        names: list[str] = []
        async with self._told("*"), asyncio.timeout(self._timeout_s):
            client = await self._connected()
            while True:
                about = {"type": "stream", "index": len(names)}
                reply = await client.manage("QUERY", about, {"attributeNames": ["name"]})
                page: Any = reply.body
                names += [str(row[0]).removeprefix(PREFIX) for row in page["results"]]
                if not page["results"] or len(names) >= int(str(reply.properties["total"])):
                    return names

    async def bounds(self, stream: str) -> tuple[int, int]:
        """Return the first offset, and the next one."""
        async with self._told(stream):
            told = await self._ask(stream, None)
            if told is not None:
                return int(told["first"]), int(told["next"])
            async with asyncio.timeout(self._timeout_s):
                return await self._place(stream, Origin.FIRST), await self._place(
                    stream, Origin.NEXT
                )

    async def offset_at(self, stream: str, time_us: int) -> int:
        """Return the first offset of this time or later."""
        time_ms = max(-TIME_MAX_MS, min(-(-time_us // 1000), TIME_MAX_MS))
        async with self._told(stream):
            told = await self._ask(stream, time_ms)
            if told is not None:
                return int(told["offset"])
            async with asyncio.timeout(self._timeout_s):
                return await self._place(stream, FromTime(max(time_ms, 0)))

    async def _ask(self, stream: str, time_ms: int | None) -> dict[str, int] | None:
        """Ask the container; None where it does not know of the stream, or does not say."""
        about: dict[str, object] = {"type": "stream", "name": PREFIX + stream}
        if time_ms is not None:
            about["time_ms"] = time_ms
        until_s = _now_s() + self._timeout_s
        while True:
            try:
                async with asyncio.timeout(min(CALL_S, max(until_s - _now_s(), AGAIN_S))):
                    client = await self._connected()
                    return cast("dict[str, int]", (await client.manage("BOUNDS", about)).body)
            except LinkRefused as error:
                if not _is_passing(error) or _now_s() > until_s:
                    return None
            except AuthenticationError:
                raise
            except (CogworkError, TimeoutError) as error:  # the connection was lost meanwhile
                if _now_s() > until_s or is_untrusted(error):
                    raise
            await asyncio.sleep(AGAIN_S)

    async def _place(self, stream: str, start: Origin | FromTime) -> int:
        """Find where a receiver would start: it may be redirected to who has the stream."""
        client = await self._connected()
        async with client.stream(PREFIX + stream).read(start, credit=1) as reader:
            taking = asyncio.ensure_future(reader.take(1))
            told = asyncio.ensure_future(reader.caught_up())
            try:
                await asyncio.wait((taking, told), return_when=asyncio.FIRST_COMPLETED)
                if start is not Origin.NEXT and taking.done():
                    return taking.result()[0].offset
                following = reader.next_offset
                assert following is not None
                return following
            finally:
                taking.cancel()
                told.cancel()

    # -- reading

    async def _check(self, stream: str, start: int, end: int) -> None:
        """Make sure that a range is there.

        Raises:
            StreamTruncated: Its beginning is not.
            BeyondEnd: Its end is not.
        """
        until_s = _now_s() + LAG_S
        while True:
            first, following = await self.bounds(stream)
            if start < first:
                raise StreamTruncated(stream, first)
            if end <= following:
                return
            if _now_s() > until_s:
                raise BeyondEnd(stream, following)
            await asyncio.sleep(AGAIN_S)

    async def read(
        self, stream: str, start: int, end: int, columns: tuple[str, ...]
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Yield a range, from readers where there are any, and by the ordinary way elsewhere."""
        await self._check(stream, start, end)
        came_s = _now_s()
        while start < end:
            wanted = Range(start, end, columns)
            async with self._told(stream):
                try:
                    async with aclosing(await self._batches(stream, wanted)) as batches:
                        async for batch in batches:
                            start += batch.num_rows
                            came_s = _now_s()
                            yield batch
                except (ConnectError, Disconnected, ClientError, TimeoutError) as error:
                    if isinstance(error, LinkTruncated) or _now_s() > came_s + self._timeout_s:
                        raise
                    if isinstance(error, ClientError) and error.condition == BEYOND_END:
                        await self._check(stream, start, end)
                    elif self._is_distrusted(stream) and _is_final(error):
                        raise
                    self._distrusted_until_s[stream] = _now_s() + DISTRUST_S
                    await asyncio.sleep(AGAIN_S)

    def _is_distrusted(self, stream: str) -> bool:
        """Return whether readers could not serve a stream just now."""
        return _now_s() < self._distrusted_until_s.get(stream, 0.0)

    async def _batches(self, stream: str, wanted: Range) -> AsyncGenerator[pa.RecordBatch, None]:
        client = await self._connected()
        endpoint = None if self._is_distrusted(stream) else _reader_of(client)
        if endpoint is None:
            return self._by_records(client, stream, wanted)
        return self._by_batches(endpoint, stream, wanted)

    async def _by_batches(
        self, endpoint: Endpoint, stream: str, wanted: Range
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Read from a reader's process."""
        options = replace(
            self._options, force=True, retry=READER_RETRY, max_frame_size_bytes=FRAME_BYTES
        )
        schema, start = schema_of(wanted.columns), wanted.start
        async with (
            Client([endpoint], options) as client,
            RangeReader(client, stream, wanted) as reader,
        ):
            while start < wanted.end:
                async with asyncio.timeout(min(SILENCE_S, self._timeout_s)):
                    taken = await reader.take(1)
                if not taken:
                    raise reader.failure or Disconnected("a reader has gone")
                batch = decode_batch(taken[0].encode(), schema)
                start += batch.num_rows
                yield batch

    async def _by_records(
        self, client: Client, stream: str, wanted: Range
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Read record by record, and makes batches of them here."""
        names = wanted.columns
        columns = columns_from(names, wanted.start, wanted.end)
        async with client.stream(PREFIX + stream).read(FromOffset(wanted.start)) as reader:
            while True:
                async with asyncio.timeout(self._timeout_s):
                    taken = await reader.take()
                if not taken:
                    raise reader.failure or Disconnected("the link has gone")
                at = 0
                while at < len(taken):
                    at = columns.add_records(taken, at)
                    if columns.is_full:
                        yield batch_of(stream, names, columns)
                        if columns.next >= wanted.end:
                            return
                        columns = columns_from(names, columns.next, wanted.end)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _is_final(error: Exception) -> bool:
    """Return whether an error will be the same the next time."""
    return isinstance(error, LinkRefused) and not _is_passing(error)


def _is_passing(error: LinkRefused) -> bool:
    """Return whether a refusal holds for now only."""
    return "no replica" in error.description or "opened" in error.description


def _reader_of(client: Client) -> Endpoint | None:
    """Find where the readers are of the container that a mesh is connected to."""
    endpoint = client.endpoint
    if endpoint is None:
        return None
    ports: Any = (client.container.properties or {}).get(OFFERED)
    port = ports.get(endpoint.scheme) if isinstance(ports, dict) else None
    return replace(endpoint, port=int(port)) if isinstance(port, int) else None
