"""The data source `cogwork`: `spark.read.format("cogwork")`, `readStream`, `write`, `writeStream`.

Theory of operation. Spark pickles a reader once and sends it to its workers; so it holds options
and no more, and connects where it is used. The driver decides by the bounds of the streams what is
read, in ranges of offsets; a task reads one range, and would get the same rows again. Which
columns come over the wire the user's schema says: Spark has no other way to tell a source in
Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from cogwork.pipeline.arrow import ArrowClient, ArrowError, BeyondEnd, Bounds, StreamTruncated
from cogwork.pipeline.spark.bounds import StreamBounds, loss_of
from cogwork.pipeline.spark.columns import SCHEMA, arrow_schema_of, wanted_columns
from cogwork.pipeline.spark.errors import SourceError
from cogwork.pipeline.spark.filters import Narrowing
from cogwork.pipeline.spark.json_bodies import COLUMN as JSON_COLUMN
from cogwork.pipeline.spark.json_bodies import parsed
from cogwork.pipeline.spark.ranges import Range, cut_all
from cogwork.pipeline.spark.read_options import read_options
from cogwork.pipeline.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, DataSourceWriter, Filter
    from pyspark.sql.types import StructType

    from cogwork.pipeline.spark.json_times import Zone
    from cogwork.pipeline.spark.read_options import ReadOptions
    from cogwork.pipeline.spark.stream_source import CogworkStreamReader

__all__ = ("CogworkReader", "CogworkSource", "RangePartition", "partitions_of", "read_range")


@dataclass(frozen=True)
class RangePartition(InputPartition):
    """A task: records of one stream."""

    range: Range


class CogworkSource(DataSource):
    """Streams as tables, rows as messages; Spark finds it by the name `cogwork`."""

    def __init__(self, options: dict[str, str]) -> None:
        """Connect nowhere.

        Args:
            options: The user's.
        """
        super().__init__(options)
        keep_loaded()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "cogwork"

    def schema(self) -> StructType:
        """Return all columns, for users who do not say which ones they want."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a batch."""
        options = read_options(self.options, is_streaming=False)
        kind = NarrowingReader if options.pushes_down else CogworkReader
        return kind(options, schema)

    def streamReader(self, schema: StructType) -> CogworkStreamReader:
        """Make the reader of a streaming query."""
        from cogwork.pipeline.spark.stream_source import CogworkStreamReader  # noqa: PLC0415 # imports us

        return CogworkStreamReader(read_options(self.options, is_streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Make the writer of a batch."""
        from cogwork.pipeline.spark.sink import batch_writer  # noqa: PLC0415 # readers do without

        return batch_writer(self.options, schema, overwrites=overwrite)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamArrowWriter:
        """Make the writer of a streaming query."""
        from cogwork.pipeline.spark.sink import stream_writer  # noqa: PLC0415 # readers do without

        return stream_writer(self.options, schema, overwrites=overwrite)


class CogworkReader(DataSourceReader):
    """Reads ranges of streams, once."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Connect nowhere.

        Args:
            options: The user's.
            schema: The columns that are wanted.
        """
        self._options = options
        self._schema = schema
        self._columns = wanted_columns(schema)

    def partitions(self) -> list[RangePartition]:
        """Decide, on the driver, what is read."""
        bounds = StreamBounds(self._options, fresh_s=math.inf)  # one answer decides a batch
        try:
            ranges = self._ranges(bounds)
        except ArrowError as error:
            raise SourceError(str(error)) from None
        finally:
            bounds.close()
            keep_loaded()
        return partitions_of(ranges, self._options)

    def _ranges(self, bounds: StreamBounds) -> list[Range]:
        return bounds.ranges()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range, in a worker."""
        return read_range(self._options, self._schema, self._columns, partition)


class NarrowingReader(CogworkReader):
    """Reads less where filters say so; for sessions that have `filterPushdown` enabled."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Initialize it; it knows no filters yet."""
        super().__init__(options, schema)
        self._narrowing = Narrowing()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note what filters say of stream, offset and time; Spark applies all of them, too."""
        for each in filters:
            self._narrowing = self._narrowing.with_filter(each)
            yield each

    def _ranges(self, bounds: StreamBounds) -> list[Range]:
        return self._narrowing.applied(bounds.ranges(), bounds)


def partitions_of(ranges: list[Range], options: ReadOptions) -> list[RangePartition]:
    """Cut ranges into tasks."""
    return [RangePartition(each) for each in cut_all(ranges, options.partitions_min)]


def read_range(
    options: ReadOptions, schema: StructType, columns: tuple[str, ...], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task.

    Raises:
        DataLoss: Records are gone since the driver planned this.
        SourceError: The stream cannot be read.
    """
    if not isinstance(partition, RangePartition):
        return  # Spark's own, where there is nothing to read
    expected = arrow_schema_of(schema)
    keep_loaded()
    wanted = partition.range
    tls = options.certificates.context()
    with ArrowClient(
        options.url, timeout_s=options.timeout_s, tls=tls, token=options.token
    ) as client:
        while wanted.start < wanted.end:
            try:
                for batch in client.read(*wanted, columns):
                    wanted = wanted._replace(start=wanted.start + batch.num_rows)
                    yield _conformed(batch, expected, options.zone)
            except (StreamTruncated, BeyondEnd) as error:
                wanted = _what_is_left(wanted, error, fails=options.fails_on_loss)
            except ArrowError as error:
                raise SourceError(str(error)) from None


def _conformed(batch: pa.RecordBatch, expected: pa.Schema, zone: Zone) -> pa.RecordBatch:
    """Give a batch the columns of the user's schema, in Spark's own types.

    These are the same octets, for map types are told apart by names; but JSON is parsed.
    """
    columns = []
    for field in expected:
        if field.name == JSON_COLUMN:
            columns.append(parsed(batch.column("body"), field.type, zone))
            continue
        column = batch.column(field.name)
        columns.append(column if column.type.equals(field.type) else column.cast(field.type))
    return type(batch).from_arrays(columns, schema=expected)


def _what_is_left(wanted: Range, error: StreamTruncated | BeyondEnd, *, fails: bool) -> Range:
    if isinstance(error, StreamTruncated):
        found = Bounds(error.first, max(error.first, wanted.end))
        left = wanted._replace(start=min(wanted.end, max(wanted.start + 1, error.first)))
    else:
        found = Bounds(0, error.next)
        left = wanted._replace(end=min(wanted.end - 1, error.next))
    loss: Any = loss_of(wanted, found)
    if fails and loss is not None:
        raise loss from None
    return left
