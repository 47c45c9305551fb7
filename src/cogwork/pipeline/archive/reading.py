"""Reading a table back, in the order of the stream, with a bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cogwork.pipeline.archive.errors import ArchiveError
from cogwork.pipeline.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.pipeline.archive.table import ArchiveTable

__all__ = ("offset_at", "read")

READ_ROWS = 16_384


def read(
    table: ArchiveTable, start: int, end: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records from `start` to before `end` that the table has, by their offsets.

    Args:
        table: Which one.
        start: The first offset.
        end: After the last one.
        columns: Which ones, `offset` among them; None for all.

    Raises:
        ArchiveError: Another engine has rewritten the table in another order.
    """
    schema = schema_of(columns)
    at = start
    files = table.files(f"offset >= {start} and offset < {end}")
    for file in files:
        opened = table.io.new_input(file.entry.file_path).open()
        with opened as source, pq.ParquetFile(source) as parquet:
            for batch in parquet.iter_batches(READ_ROWS, columns=schema.names):
                part = _between(batch.select(schema.names).cast(schema), start, end)
                if not part.num_rows:
                    continue
                if part.column("offset")[0].as_py() < at:
                    raise ArchiveError(f"table {table.name} is not in the order of its stream")
                at = part.column("offset")[-1].as_py() + 1
                yield part


def _between(batch: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    offsets = batch.column("offset")
    wanted = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
    return batch.filter(wanted)


def offset_at(table: ArchiveTable, time_us: int) -> int:
    """Return the first offset whose record is of this time or later; the mark where none is.

    Args:
        table: Which one.
        time_us: In microseconds since 1970 (UTC).
    """
    moment = pa.scalar(time_us, pa.timestamp("us", tz="UTC"))
    for file in table.files(f"time >= '{moment.as_py().isoformat()}'"):
        for batch in read(table, file.first, file.last + 1, ("offset", "time")):
            at = pc.index(pc.greater_equal(batch.column("time"), moment), True).as_py()
            if at >= 0:
                return int(batch.column("offset")[at].as_py())
    return table.mark
