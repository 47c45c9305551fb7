"""Where an audit takes its rows from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cogwork.audit.errors import AuditError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ("Tables", "rows_of")


class Tables(Protocol):
    """What an audit needs of an archive: `cogwork.archive.Archive` has it."""

    def tables(self) -> list[str]:
        """Lists the streams that have tables."""
        ...

    def files(self, stream: str) -> list[str]:
        """Lists the Parquet files of a stream."""
        ...

    def mark(self, stream: str) -> int:
        """Returns the offset that is archived next."""
        ...


def rows_of(spark: SparkSession, archive: Tables, stream: str) -> DataFrame:
    """Returns the rows of a stream.

    Raises:
        AuditError: Nothing of it is archived.
    """
    files = archive.files(stream)
    if not files:
        raise AuditError(f"nothing of stream/{stream} is archived yet")
    return spark.read.parquet(*files)
