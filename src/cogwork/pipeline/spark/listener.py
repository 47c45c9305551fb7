"""Tells containers how far streaming queries are, so that others can see their lag.

Theory of operation. Spark calls a listener after each trigger with the query's progress: the
offsets that it has read to, and those where the streams end. The positions go to `$management` of
the container that the query reads from, as reports that expire. Nothing depends on them: where they
cannot be sent, they are dropped, and the query never waits.

Over Spark Connect, PySpark has a thread for what the server tells. Taking the last listener away
waits for that thread, under a lock that the thread takes for each event: one that is still on its
way stops both for good. So the ends of all queries are awaited first, after which there is nothing
to be told; and the thread is a daemon, as the one is that starts it, and keeps no process alive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from cogwork.client.client import Client
from cogwork.client.connection.certificates import NONE, Certificates
from cogwork.client.connection.url import endpoints_of
from cogwork.client.errors import CogworkError
from cogwork.client.options import Options
from cogwork.pipeline.arrow.loop_thread import loop_thread
from cogwork.pipeline.spark.query_offsets import positions_in
from cogwork.pipeline.spark.query_runs import QueryRuns
from cogwork.pipeline.spark.session import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from cogwork.client.connection.url import Urls

__all__ = ("Position", "PositionListener", "listen", "positions_of", "unlisten")

log = logging.getLogger(__name__)

TYPE = "org.cogwork.consumer"

TIMEOUT_S = 5.0

ENDS_S = 5.0
"""How long the ends of queries are awaited that have been told to end."""

SOURCE = "PythonMicroBatchStream"
"""What Spark calls every source in Python. Another one whose offsets look like ours would be
reported, too: as the reader of a stream that nobody has."""


class Position(NamedTuple):
    """Where a query is in one stream.

    Attributes:
        stream: Its name.
        position: The offset that is next.
        end: The stream's next offset.
        records_per_s: How quickly the query reads all of its source.
    """

    stream: str
    position: int
    end: int
    records_per_s: float


def listen(spark: SparkSession, url: Urls, certificates: Certificates = NONE) -> PositionListener:
    """Have the queries of a session tell a container where they are.

    Args:
        spark: The session.
        url: Of the container; several, between commas or as a list, are tried in turn.
        certificates: For TLS.
    """
    listener = PositionListener(url, certificates)
    if is_remote(spark):
        add = threading.Thread(target=spark.streams.addListener, args=(listener,), daemon=True)
        add.start()
        add.join()
    else:
        spark.streams.addListener(listener)
    return listener


def unlisten(spark: SparkSession, listener: PositionListener) -> None:
    """Have the queries of a session tell nothing any more.

    Args:
        spark: The session, whose queries have been told to end.
        listener: What `listen` returned.
    """
    listener.runs.wait(ENDS_S)
    spark.streams.removeListener(listener)
    listener.close()


def positions_of(progress: dict[str, Any]) -> Iterator[Position]:
    """Yield where a query is, of its progress as JSON; foreign sources are passed over."""
    for source in progress.get("sources", ()):
        ends = _offsets(source.get("endOffset"))
        heads = _offsets(source.get("latestOffset")) or {}
        if ends is None or SOURCE not in str(source.get("description", "")):
            continue
        rate = source.get("processedRowsPerSecond") or 0.0
        for stream, position in ends.items():
            end = max(position, heads.get(stream, position))
            yield Position(stream, position, end, float(rate) if rate == rate else 0.0)  # noqa: PLR0124 # NaN


def _offsets(value: object) -> dict[str, int] | None:
    """Return offsets by stream; None where these are another source's."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, dict):
        return None
    found = positions_in(value)
    return found if all(isinstance(each, int) for each in found.values()) else None


class PositionListener(StreamingQueryListener):
    """Reports to one container, from a thread of its own.

    Attributes:
        runs: The queries that it was told of.
    """

    def __init__(self, url: Urls, certificates: Certificates = NONE) -> None:
        """Connect when there is something to report.

        Args:
            url: Of the container; several, between commas or as a list, are tried in turn.
            certificates: For TLS.
        """
        self.runs = QueryRuns()
        self._endpoints = endpoints_of(url)
        self._tls = certificates.context()
        self._client: Client | None = None
        self._last: dict[str, tuple[str, int, list[Position]]] = {}
        self._connecting = asyncio.Lock()
        self._busy: set[str] = set()

    # -- what Spark calls

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known of it yet but its name."""
        self.runs.started(str(event.runId), event.name or str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report where it is."""
        progress = json.loads(event.progress.json)
        self.runs.progressed(progress)
        positions = list(positions_of(progress))
        if positions:
            query = progress.get("name") or progress["id"]
            self._last[progress["runId"]] = (query, progress["batchId"], positions)
            self._report(progress["runId"])

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Report that it is where it was."""
        self._report(str(event.runId))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Take back what was reported."""
        last = self._last.pop(str(event.runId), None)
        if last is not None:
            loop_thread().submit(self._forget(last))
        self.runs.ended(str(event.runId), event.exception)

    def close(self) -> None:
        """Let the connection go."""
        loop_thread().wait(self._close())

    # -- on the client's thread

    def _report(self, run: str) -> None:
        last = self._last.get(run)
        if last is not None and run not in self._busy:  # one must not keep out another
            self._busy.add(run)
            loop_thread().submit(self._send(run, last))

    async def _send(self, run: str, last: tuple[str, int, list[Position]]) -> None:
        query, batch, positions = last
        try:
            for each in positions:
                about = {
                    "type": TYPE,
                    "name": f"{query} {each.stream}",
                    "address": f"stream/{each.stream}",
                    "kind": "spark",
                    "query": query,
                    "position": each.position,
                    "end": each.end,
                    "batch": batch,
                }
                await self._manage("REPORT", about, {"records_per_s": each.records_per_s})
        finally:
            self._busy.discard(run)

    async def _forget(self, last: tuple[str, int, list[Position]]) -> None:
        for each in last[2]:
            await self._manage("DELETE", {"type": TYPE, "name": f"{last[0]} {each.stream}"}, None)

    async def _manage(
        self, operation: str, about: dict[str, Any], body: dict[str, Any] | None
    ) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                client = await self._connected()
                await client.manage(operation, about, body)
        except (CogworkError, TimeoutError, OSError) as error:
            log.info("cannot report a position: %s", error)

    async def _connected(self) -> Client:
        async with self._connecting:  # for several queries at once
            if self._client is None:
                client = Client(self._endpoints, Options(tls=self._tls))
                self._client = await client.__aenter__()
            return self._client

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
