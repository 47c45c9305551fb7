"""Where an audit takes its rows from."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from cogwork.pipeline.audit.errors import AuditError
from cogwork.pipeline.audit.reading import Part, parts_of, read
from cogwork.pipeline.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Function = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

__all__ = ("Records", "Tables", "records_of", "rows_of")


class Tables(Protocol):
    """What an audit needs of an archive: `cogwork.pipeline.archive.Archive` has it."""

    def tables(self) -> list[str]:
        """List the streams that have tables."""
        ...

    def files(self, stream: str) -> list[str]:
        """List the Parquet files of a stream."""
        ...

    def mark(self, stream: str) -> int:
        """Return the offset that is archived next."""
        ...


class Records:
    """The records of a stream, as a table, and for functions of ours."""

    def __init__(
        self, spark: SparkSession, files: Sequence[str], *, may_read_itself: bool = True
    ) -> None:
        """Look at the files, where they are at hand.

        Args:
            spark: The session.
            files: The Parquet files, in the order of their offsets.
            may_read_itself: Whether tasks may read files without Spark, where these are at hand.
        """
        self.spark = spark
        self.files = files
        self._parts = parts_of(files) if may_read_itself else None

    @cached_property
    def rows(self) -> DataFrame:
        """The records as a table."""
        return self.spark.read.parquet(*self.files)

    def mapped(self, columns: Sequence[str], function: Function, schema: str) -> DataFrame:
        """Have a function go through batches of records, in the order of each file.

        Args:
            columns: Those that it gets. Texts may be dictionaries.
            function: Is called in each task.
            schema: What it makes.
        """
        parts = self._parts
        if parts is None:
            return self.rows.select(*columns).mapInArrow(function, schema)
        numbers = self.spark.range(0, len(parts), 1, max(len(parts), 1))
        return numbers.mapInArrow(partial(_read_first, parts, columns, function), schema)


def _read_first(
    parts: Sequence[Part],
    columns: Sequence[str],
    function: Function,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    chosen = [parts[number] for batch in numbers for number in batch.column("id").to_pylist()]
    yield from function(batch for part in chosen for batch in read(part, columns))


def records_of(spark: SparkSession, archive: Tables, stream: str) -> Records:
    """Return the records of a stream.

    Raises:
        AuditError: Nothing of it is archived.
    """
    files = archive.files(stream)
    if not files:
        raise AuditError(f"nothing of stream/{stream} is archived yet")
    return Records(spark, files)


def rows_of(spark: SparkSession, archive: Tables, stream: str) -> DataFrame:
    """Return the rows of a stream.

    Raises:
        AuditError: Nothing of it is archived.
    """
    return records_of(spark, archive, stream).rows
