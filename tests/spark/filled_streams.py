"""Streams with records in them, and the source as a plain object that reads them: no JVM."""

from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

import cogwork.sync
from cogwork.pipeline.spark.columns import SCHEMA
from cogwork.pipeline.spark.source import CogworkSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.datasource import InputPartition

    from cogwork.pipeline.spark.stream_source import CogworkStreamReader

TWO = ("offset", "body")


def fill(url: str, stream: str, *bodies: bytes) -> None:
    manage(url, "CREATE", stream)
    with cogwork.sync.connect(url) as client:
        client.stream(stream).append(bodies)


def manage(url: str, operation: str, stream: str) -> None:
    async def run() -> None:
        async with cogwork.connect(url) as client:
            about = {"type": "stream", "name": f"stream/{stream}"}
            await client.manage(operation, about, None)

    asyncio.run(run())


def columns(names: tuple[str, ...]) -> StructType:
    return StructType([SCHEMA[name] for name in names])


def source(url: str, **options: str) -> CogworkSource:
    return CogworkSource({"url": url, **options})


def rows_of(reader: object, partitions: Sequence[InputPartition]) -> list[tuple[Any, ...]]:
    """Read as a worker does: what was pickled, and nothing else."""
    sent: Any = pickle.loads(pickle.dumps(reader))
    found = []
    for partition in partitions:
        for batch in sent.read(pickle.loads(pickle.dumps(partition))):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def trim(url: str, stream: str, before: int) -> None:
    async def run() -> None:
        async with cogwork.connect(url) as client:
            about = {"type": "stream", "name": f"stream/{stream}", "before": before}
            await client.manage("TRIM", about)

    asyncio.run(run())


def stream_reader(url: str, **options: str) -> CogworkStreamReader:
    return source(url, **options).streamReader(columns(TWO))
