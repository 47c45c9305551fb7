"""The writers: `df.write.format("cogwork")` and `df.writeStream`.

Theory of operation. A task returns once all of its rows are accepted, so as durable as their
address promises; then nothing is left to commit, and nothing could be taken back: `commit` and
`abort` do nothing. Into a stream each row comes once, for a task that is run again has the same
producer's id (made of what names the write, the batch and the partition) and the same rows in the
same order. Where they are not the same, because the plan says so, that is not so.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from os import urandom
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from cogwork.pipeline.spark.errors import OptionError, SinkError
from cogwork.pipeline.spark.lookback import Lookback
from cogwork.pipeline.spark.row_publisher import RowPublisher
from cogwork.pipeline.spark.transactions import earlier_of
from cogwork.pipeline.spark.write_options import is_stream, write_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from cogwork.pipeline.spark.transactions import Earlier
    from cogwork.pipeline.spark.write_options import WriteOptions

__all__ = ("BatchWriter", "StreamWriter", "Written", "batch_writer", "producer_of", "stream_writer")

PRODUCER_SIZE_BYTES = 24

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task did.

    Attributes:
        rows: How many rows were accepted.
    """

    rows: int


def producer_of(*names: object) -> bytes:
    """Return the producer's id of whoever has these names, and of nobody else."""
    return sha256("\0".join(map(str, names)).encode()).digest()[:PRODUCER_SIZE_BYTES]


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrites: bool
) -> BatchWriter:
    """Make the writer of a batch.

    Raises:
        OptionError: The options or the columns make no sense.
        SinkError: What the stream has of the transaction cannot be read.
    """
    if overwrites:
        raise OptionError("messages cannot be overwritten: write with mode('append')")
    chosen = write_options(options, schema, is_streaming=False)
    earlier = None
    if chosen.transaction_id is not None and is_stream(chosen.address or ""):
        name = chosen.transaction_id
        earlier = earlier_of(chosen, lambda partition: producer_of("batch", name, partition))
    return BatchWriter(chosen, earlier)


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrites: bool
) -> StreamWriter:
    """Make the writer of a streaming query.

    Raises:
        OptionError: The options or the columns make no sense.
    """
    if overwrites:
        raise OptionError("messages cannot be overwritten: use outputMode('append')")
    return StreamWriter(write_options(options, schema, is_streaming=True))


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a batch."""

    def __init__(self, options: WriteOptions, earlier: Earlier | None = None) -> None:
        """Connect nowhere: it is sent to the workers.

        Args:
            options: The user's.
            earlier: What the stream has of the transaction.
        """
        self._options = options
        self._earlier = earlier

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Publish a task's rows, in a worker."""
        name, partition = self._options.transaction_id or "", _partition()
        if self._earlier is not None:
            iterator = self._earlier.checked(partition, iterator)
        return publish(self._options, producer_of("batch", name, partition), iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query, batch by batch."""

    def __init__(self, options: WriteOptions) -> None:
        """Connect nowhere: it is sent to the workers.

        Args:
            options: The user's.
        """
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Publish a task's rows, in a worker."""
        context = TaskContext.get()
        query = context.getLocalProperty(QUERY) if context is not None else None
        batch = context.getLocalProperty(BATCH) if context is not None else None
        if query is None or batch is None:
            raise SinkError("Spark does not tell which query and which batch this is")
        producer = producer_of("query", query, batch, _partition())
        return publish(self._options, producer, iterator)


def _partition() -> int:
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def publish(options: WriteOptions, producer: bytes, batches: Iterator[pa.RecordBatch]) -> Written:
    """Publish rows, and returns once all are accepted.

    Args:
        options: The user's.
        producer: By which streams know these rows; where columns tell them apart, a new one is
            taken.
        batches: The rows.

    Raises:
        SinkError: They are not accepted.
    """
    lookback = Lookback(options) if options.idempotency_columns else None
    if lookback is not None:
        producer = urandom(PRODUCER_SIZE_BYTES)
    with RowPublisher(options, producer) as publisher:
        for batch in batches:
            if batch.num_rows:
                publisher.publish(batch if lookback is None else lookback.fresh(batch))
    return Written(publisher.rows)
