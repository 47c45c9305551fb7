"""Compaction of tables that somebody else has changed: columns, order, records, partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

pytest.importorskip("pyiceberg", reason="the extra [spark] is not installed")

import archives
import pyarrow as pa
import pyarrow.parquet as pq
from archives import STREAM
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

import cogwork.testing
from cogwork.pipeline.archive import Archive
from cogwork.pipeline.archive.errors import ArchiveError
from cogwork.pipeline.archive.upkeep import compact, keep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.pipeline.archive.table import ArchiveTable

RUNS = 4
ROWS = 100


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    with cogwork.testing.container() as url:
        yield url


@pytest.fixture
def url(container: str) -> Iterator[str]:
    archives.create(container)
    archives.append(container, range(RUNS * ROWS))
    yield container
    archives.delete(container)


@pytest.fixture
def table(url: str, tmp_path: Path) -> Iterator[ArchiveTable]:
    """A table of some small files."""
    archives.archived(url, tmp_path, commit_rows=ROWS)
    with Archive.open(str(tmp_path)) as archive:
        made = archive.table(STREAM)
        assert len(made.files()) == RUNS
        yield made


def rewrite(table: ArchiveTable, *parts: pa.Table) -> None:
    """Put files of another engine in the place of those that are there."""
    table.refresh()
    folder = table.files()[0].entry.file_path.rpartition("/")[0]
    paths = []
    for part in parts:
        path = f"{folder}/{uuid4().hex}.parquet"
        pq.write_table(part, path.removeprefix("file://"))
        paths.append(path)
    with table.table.transaction() as transaction:
        transaction.delete("offset >= 0")
        transaction.add_files(paths)
    table.refresh()


def rows(table: ArchiveTable) -> pa.Table:
    table.refresh()
    return table.table.scan().to_arrow().sort_by("offset")


def shared_out(found: pa.Table) -> list[pa.Table]:
    size = found.num_rows // RUNS
    return [found.slice(at, size) for at in range(0, found.num_rows, size)]


def test_columns_that_a_user_added_keep_their_values(
    url: str, table: ArchiveTable, tmp_path: Path
) -> None:
    with table.table.update_schema() as update:
        update.add_column("note", StringType())
        update.add_column("score", FloatType())
        update.add_column("count", IntegerType())
        update.add_column("tags", ListType(100, StringType(), element_required=False))
        inner = NestedField(101, "x", LongType(), required=False)
        update.add_column("inner", StructType(inner))
    found = rows(table)
    count = found.num_rows
    own = {
        "note": pa.array([f"note {n}" if n % 3 else None for n in range(count)]),
        "score": pa.array([n / 4 for n in range(count)], pa.float32()),
        "count": pa.array(range(count), pa.int32()),
        "tags": pa.array([["a", None, str(n)] if n % 2 else None for n in range(count)]),
        "inner": pa.array([{"x": n} for n in range(count)], pa.struct([("x", pa.int64())])),
    }
    for name, values in own.items():
        found = found.set_column(found.schema.get_field_index(name), name, values)
    rewrite(table, *shared_out(found))
    with table.table.update_schema() as update:
        update.rename_column("note", "remark")
        update.update_column("score", DoubleType())
        update.update_column("count", LongType())
        update.delete_column("reply_to")
        update.add_column("later", StringType())
    expected = archives.digest(rows(table))
    assert compact(table, archives.TIGHT) == (RUNS, 1)
    assert archives.digest(rows(table)) == expected
    assert rows(table).column("remark").to_pylist() == own["note"].to_pylist()
    (file,) = table.files()
    assert pq.read_table(file.path).column("remark").to_pylist() == own["note"].to_pylist()
    assert table.mark == RUNS * ROWS
    # A scan by a value of such a column finds it: its bounds are in the manifest.
    assert table.table.scan(row_filter="count = 7").to_arrow().num_rows == 1
    assert table.table.scan(row_filter="count > 400").to_arrow().num_rows == 0
    field_id = table.table.schema().find_field("count").field_id
    assert field_id in file.entry.lower_bounds

    with table.table.update_schema() as update:
        update.add_column("reply_to", StringType())
    archives.append(url, range(ROWS))
    archives.archived(url, tmp_path)
    table.refresh()
    assert compact(table, archives.TIGHT) == (2, 1), "with what is archived afterwards"
    assert rows(table).column("remark").null_count == own["note"].null_count + ROWS


@pytest.mark.parametrize("form", ["backwards", "shuffled", "by subject", "overlapping"])
def test_records_in_any_order_stay_as_they_are(table: ArchiveTable, form: str) -> None:
    found = rows(table)
    parts = {
        "backwards": lambda: [each.take(list(range(ROWS))[::-1]) for each in shared_out(found)],
        "shuffled": lambda: [
            each.take([n * 37 % ROWS for n in range(ROWS)]) for each in shared_out(found)
        ],
        "by subject": lambda: [each.sort_by("subject") for each in shared_out(found)],
        "overlapping": lambda: shared_out(found.sort_by([("subject", "descending")])),
    }[form]()
    rewrite(table, *parts)
    expected = [each.column("offset").to_pylist() for each in parts]
    kept = keep(table, archives.TIGHT)
    assert (kept.compacted, kept.into) == (RUNS, 1)
    (file,) = table.files()
    offsets = pq.read_table(file.path).column("offset").to_pylist()
    assert sorted(offsets) == list(range(RUNS * ROWS))
    for part in expected:
        assert offsets[offsets.index(part[0]) :][: len(part)] == part, "each file in its order"
    assert (file.first, file.last) == (0, RUNS * ROWS - 1)
    assert keep(table, archives.TIGHT).compacted == 0


def test_the_sort_order_of_a_table_is_kept(table: ArchiveTable) -> None:
    with table.table.update_sort_order() as update:
        update.desc("subject", IdentityTransform(), NullOrder.NULLS_LAST)
    assert compact(table, archives.TIGHT) == (RUNS, 1)
    (file,) = table.files()
    keys = pq.read_table(file.path).select(["subject", "offset"]).to_pylist()
    assert [(each["subject"], -each["offset"]) for each in keys] == sorted(
        ((each["subject"], -each["offset"]) for each in keys), reverse=True
    )
    assert SortDirection.DESC is table.table.sort_order().fields[0].direction


def test_a_sort_order_by_more_than_columns_is_left_to_who_sorts(table: ArchiveTable) -> None:
    with table.table.update_sort_order() as update:
        update.asc("subject", BucketTransform(8))
    assert keep(table, archives.TIGHT).compacted == 0
    assert len(table.files()) == RUNS


def test_records_that_a_user_deleted_are_not_missed(table: ArchiveTable) -> None:
    found = rows(table)
    rewrite(table, *[each.filter([n % 10 != 5 for n in range(ROWS)]) for each in shared_out(found)])
    kept = keep(table, archives.TIGHT)
    assert (kept.compacted, kept.into) == (RUNS, 1)
    assert rows(table).num_rows == RUNS * ROWS * 9 // 10


def test_files_of_an_earlier_partitioning_are_left_as_they_are(
    url: str, table: ArchiveTable, tmp_path: Path
) -> None:
    with table.table.update_spec() as update:
        update.add_field("stream", IdentityTransform())
    assert keep(table, archives.TIGHT).compacted == 0
    found = rows(table)
    rewrite(table, *shared_out(found))
    assert keep(table, archives.TIGHT).compacted == RUNS, "those of the new one are compacted"
    (file,) = table.files()
    assert file.entry.partition[1] == STREAM
    assert archives.digest(rows(table)) == archives.digest(found)


def test_a_file_with_other_records_than_the_table_says_is_told(table: ArchiveTable) -> None:
    path = table.files()[1].path
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(ArchiveError, match=rf"says that {path} has 100 records, and there are 99"):
        keep(table, archives.TIGHT)
    assert len(table.files()) == RUNS
