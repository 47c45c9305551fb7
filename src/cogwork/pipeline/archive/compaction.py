"""Making large files of small ones, with the same records and all their columns.

Theory of operation. The table says which columns there are and in which order records lie, for
another engine may have changed it: columns were added, renamed or dropped, or it was rewritten by
a sort order of its own. So files are read by the table's schema, as Iceberg does (by field ids, or
by names where a file has none), and written by it. Records come out in the order in which they were
in their files; where the table has a sort order, the new file has it, too. What has to be the same
is the number of records that the manifests say, not that offsets are without gaps: somebody may
have deleted some. Files that cannot be taken together like this are left as they are: those with
delete files, those of an earlier partitioning, and all of them where the table is sorted by more
than columns.

The commit demands that all files that go are still in the table, so compaction may run beside an
archiver or another compaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import FileScanTask
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform

from cogwork.pipeline.archive import layout
from cogwork.pipeline.archive.errors import ArchiveError
from cogwork.pipeline.archive.notice import Notice, unheard
from cogwork.pipeline.archive.work import ParquetFile, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogwork.pipeline.archive.notice import Listener
    from cogwork.pipeline.archive.table import ArchiveTable, DataFile
    from cogwork.pipeline.archive.upkeep import Upkeep

__all__ = ("compact",)

SORTED_PART = 4
"""Files are sorted in memory: they become that many times smaller."""

READ_ROWS = 16_384


def compact(table: ArchiveTable, how: Upkeep, on_notice: Listener = unheard) -> tuple[int, int]:
    """Make large files of small ones; return how many went and came.

    Args:
        table: Which one.
        how: How large, and how many small files in a row are worth it.
        on_notice: Told each step.

    Raises:
        ArchiveError: A file has other records than the table says.
    """
    table.refresh()
    went = came = 0
    order = _Order(table)
    if not order.is_known:
        return 0, 0
    size = how.target_bytes // SORTED_PART if order.fields else how.target_bytes
    for group in _groups(table.files_to_rewrite(), size, how.small_files_min):
        first, end = group[0].first, max(file.last for file in group) + 1
        on_notice(Notice("compacting", table.stream, first, end, len(group)))
        path = _rewrite(table, group, order, on_notice)
        if not table.replace(group, [path]):
            remove(table.io, path)
            continue
        went, came = went + len(group), came + 1
        on_notice(Notice("compacted", table.stream, first, end, len(group)))
    return went, came


def _groups(
    files: Iterable[DataFile], target_bytes: int, small_files_min: int
) -> Iterator[list[DataFile]]:
    """Yield runs of small files of one day whose offsets follow each other, or overlap."""
    group: list[DataFile] = []
    for file in files:
        if group and not _belongs(group, file, target_bytes):
            yield from [group] if len(group) >= small_files_min else []
            group = []
        if file.size_bytes < target_bytes // 2:
            group.append(file)
    yield from [group] if len(group) >= small_files_min else []


def _belongs(group: list[DataFile], file: DataFile, target_bytes: int) -> bool:
    size = sum(each.size_bytes for each in group)
    return (
        file.first <= max(each.last for each in group) + 1
        and file.entry.partition == group[-1].entry.partition
        and size + file.size_bytes <= target_bytes
    )


def _rewrite(table: ArchiveTable, group: list[DataFile], order: _Order, on_notice: Listener) -> str:
    """Write the records of several files as one; return its path."""
    first, end = group[0].first, max(file.last for file in group) + 1
    folder = group[0].entry.file_path.rpartition("/")[0]
    attempt = f"{layout.COMPACTED}{uuid4().hex}"
    path = f"{folder}/{layout.file_name_of(table.file_prefix, first, end, attempt)}"
    target = ParquetFile(table.io, path, _schema_of(table))
    rows = 0
    try:
        for batch in order.applied(_all_batches(table, group)):
            rows += batch.num_rows
            target.write(batch)
            on_notice(Notice("compacting", table.stream, first, first + rows))
        target.close()
    except BaseException:
        target.abandon()
        remove(table.io, path)
        raise
    return path


def _is_unchanged(table: ArchiveTable) -> bool:
    """Say whether a table has the columns that an archiver has made."""
    return bool(table.table.schema().fields == layout.iceberg_schema().fields)


def _schema_of(table: ArchiveTable) -> pa.Schema:
    """Return the table's columns as they are written: by their ids where they are not only ours."""
    if _is_unchanged(table):
        return layout.file_schema()
    return pa.schema([_usual(field) for field in schema_to_pyarrow(table.table.schema())])


def _usual(field: pa.Field) -> pa.Field:
    """Return a column with the types that archivers have, and its ids: texts are not large ones."""
    kind = field.type
    if pa.types.is_large_string(kind):
        return field.with_type(pa.string())
    if pa.types.is_large_binary(kind):
        return field.with_type(pa.binary())
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_usual(each) for each in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_usual(kind.key_field), _usual(kind.item_field)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return field.with_type(pa.list_(_usual(kind.value_field)))
    return field


def _all_batches(table: ArchiveTable, group: list[DataFile]) -> Iterator[pa.RecordBatch]:
    """Yield all records of files.

    Raises:
        ArchiveError: A file has more or fewer than the table says.
    """
    schema = _schema_of(table)
    read = _read_plainly if _is_unchanged(table) else _scanned
    for file in group:
        rows = 0
        for batch in read(table, file):
            rows += batch.num_rows
            yield batch.select(schema.names).cast(schema)
        if rows != file.rows:
            raise ArchiveError(
                f"table {table.name} says that {file.path} has {file.rows} records, and there are "
                f"{rows}"
            )


def _read_plainly(table: ArchiveTable, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield a file as it is, a part at a time: nobody has changed the columns."""
    opened = table.io.new_input(file.entry.file_path).open()
    with opened as source, pq.ParquetFile(source) as parquet:
        yield from parquet.iter_batches(READ_ROWS)


def _scanned(table: ArchiveTable, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield a file in the columns of the table, whatever they were when it was written."""
    of_iceberg = table.table
    scan = ArrowScan(of_iceberg.metadata, table.io, of_iceberg.schema(), AlwaysTrue())
    yield from scan.to_record_batches([FileScanTask(file.entry)])


class _Order:
    """The sort order of a table.

    Attributes:
        fields: Columns to sort by, each with whether it falls, and whether its nulls come first;
            empty where records just stay in their order.
        is_known: Whether it can be kept here; else compaction is left to who sorts.
    """

    def __init__(self, table: ArchiveTable) -> None:
        schema = table.table.schema()
        self.fields: list[tuple[str, bool, bool]] = []
        self.is_known = True
        for field in table.table.sort_order().fields:
            name = schema.find_column_name(field.source_id)
            if name not in schema.column_names or not isinstance(
                field.transform, IdentityTransform
            ):
                self.is_known = False
                return
            falls = field.direction is SortDirection.DESC
            self.fields.append((name, falls, field.null_order is NullOrder.NULLS_FIRST))

    def applied(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield records in the table's order."""
        if not self.fields:
            yield from batches
            return
        rows = pa.Table.from_batches(list(batches))
        columns: dict[str, pa.ChunkedArray] = {}
        keys = []
        for number, (name, falls, is_null_first) in enumerate(self.fields):
            columns |= {f"null{number}": rows[name].is_null(), f"value{number}": rows[name]}
            keys.append((f"null{number}", _direction(falls=is_null_first)))
            keys.append((f"value{number}", _direction(falls=falls)))
        # Within equal keys, records stay in the order of their stream.
        columns["offset"] = rows["offset"]
        at = pc.sort_indices(pa.table(columns), sort_keys=[*keys, ("offset", "ascending")])
        yield from rows.take(at).to_batches(READ_ROWS)


def _direction(*, falls: bool) -> str:
    return "descending" if falls else "ascending"
