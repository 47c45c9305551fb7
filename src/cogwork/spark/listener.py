"""Tells containers how far streaming queries are, so that others can see their lag.

Theory of operation. Spark calls a listener after each trigger with the query's progress: the
offsets that it has read to, and those where the streams end. The positions go to `$management` of
the container that the query reads from, as reports that expire. Nothing depends on them: where they
cannot be sent, they are dropped, and the query never waits.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from cogwork.arrow.loop_thread import loop_thread
from cogwork.client.certificates import NONE, Certificates
from cogwork.client.errors import CogworkError
from cogwork.client.mesh import Mesh
from cogwork.client.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ("Position", "PositionListener", "listen", "positions_of")

log = logging.getLogger(__name__)

TYPE = "org.cogwork.consumer"

TIMEOUT_S = 5.0

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


def listen(spark: SparkSession, url: str, certificates: Certificates = NONE) -> PositionListener:
    """Has the queries of a session tell a container where they are.

    Args:
        spark: The session.
        url: Of the container, or several between commas.
        certificates: For TLS.
    """
    listener = PositionListener(url, certificates)
    spark.streams.addListener(listener)
    return listener


def positions_of(progress: dict[str, Any]) -> Iterator[Position]:
    """Yields where a query is, of its progress as JSON; foreign sources are passed over."""
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
    """Returns offsets by stream; None where these are another source's."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, dict) or not all(isinstance(each, int) for each in value.values()):
        return None
    return {str(stream): offset for stream, offset in value.items()}


class PositionListener(StreamingQueryListener):
    """Reports to one container, from a thread of its own."""

    def __init__(self, url: str, certificates: Certificates = NONE) -> None:
        """Connects when there is something to report.

        Args:
            url: Of the container, or several between commas.
            certificates: For TLS.
        """
        self._url = url
        self._tls = certificates.context()
        self._mesh: Mesh | None = None
        self._names: dict[str, str] = {}
        self._last: dict[str, tuple[str, int, list[Position]]] = {}
        self._is_busy = False

    # -- what Spark calls

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 # Spark's name
        """Nothing is known of it yet but its name."""
        self._names[str(event.runId)] = event.name or str(event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 # Spark's name
        """Reports where it is."""
        progress = json.loads(event.progress.json)
        positions = list(positions_of(progress))
        if positions:
            query = progress.get("name") or progress["id"]
            self._last[progress["runId"]] = (query, progress["batchId"], positions)
            self._report(progress["runId"])

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 # Spark's name
        """Reports that it is where it was."""
        self._report(str(event.runId))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 # Spark's name
        """Takes back what was reported."""
        self._names.pop(str(event.runId), None)
        last = self._last.pop(str(event.runId), None)
        if last is not None:
            loop_thread().submit(self._forget(last))

    def close(self) -> None:
        """Lets the connection go."""
        loop_thread().wait(self._close())

    # -- on the client's thread

    def _report(self, run: str) -> None:
        last = self._last.get(run)
        if last is not None and not self._is_busy:
            self._is_busy = True
            loop_thread().submit(self._send(last))

    async def _send(self, last: tuple[str, int, list[Position]]) -> None:
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
            self._is_busy = False

    async def _forget(self, last: tuple[str, int, list[Position]]) -> None:
        for each in last[2]:
            await self._manage("DELETE", {"type": TYPE, "name": f"{last[0]} {each.stream}"}, None)

    async def _manage(
        self, operation: str, about: dict[str, Any], body: dict[str, Any] | None
    ) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                if self._mesh is None:
                    mesh = Mesh(self._url.split(","), Options(tls=self._tls))
                    self._mesh = await mesh.__aenter__()
                await self._mesh.manage(operation, about, body)
        except (CogworkError, TimeoutError, OSError) as error:
            log.info("a position is not reported: %s", error)

    async def _close(self) -> None:
        mesh, self._mesh = self._mesh, None
        if mesh is not None:
            await mesh.close()
