"""Files that tasks read by themselves: each row once, in order, in batches of some mebibytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cogwork.pipeline.arrow import COLUMNS, schema_of
from cogwork.pipeline.audit.reading import BATCH_BYTES, parts_of, read

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 1000


def records(offsets: range, body: bytes) -> pa.Table:
    columns = {name: pa.nulls(len(offsets), schema_of().field(name).type) for name in COLUMNS}
    columns["offset"], columns["body"] = pa.array(offsets), pa.repeat(body, len(offsets))
    return pa.table(columns, schema_of())


def put(place: Path, files: int, group: int) -> list[str]:
    for at in range(files):
        rows = records(range(at * ROWS, (at + 1) * ROWS), b"x")
        pq.write_table(rows, place / f"{at} %41.parquet", row_group_size=group)
    return [str(path) for path in sorted(place.iterdir())]


@pytest.mark.parametrize("part_rows", [1, 300, 2500, 1 << 20])
@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_each_row_is_read_once_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int, scheme: str
) -> None:
    monkeypatch.setattr("cogwork.pipeline.audit.reading.PART_ROWS", part_rows)
    files = put(tmp_path, 3, 150)
    parts = parts_of([scheme + each for each in files])
    assert parts is not None
    assert len(parts) == {1: 21, 300: 10, 2500: 2, 1 << 20: 1}[part_rows]
    read_rows = [list(read(part, ("offset", "subject"))) for part in parts]
    offsets = [
        at for part in read_rows for each in part for at in each.column("offset").to_pylist()
    ]
    assert offsets == list(range(3 * ROWS))
    assert all(part for part in read_rows)


def test_files_that_are_elsewhere_or_no_parquet_are_left_to_spark(tmp_path: Path) -> None:
    files = put(tmp_path, 1, 100)
    assert parts_of([*files, "s3://bucket/file.parquet"]) is None
    assert parts_of([*files, "file://host/file.parquet"]) is None
    assert parts_of([*files, str(tmp_path / "none.parquet")]) is None
    (tmp_path / "odd.parquet").write_bytes(b"PAR1 and nothing else")
    assert parts_of([*files, str(tmp_path / "odd.parquet")]) is None
    pq.write_table(records(range(1), b"").drop_columns("body"), tmp_path / "other.parquet")
    assert parts_of([*files, str(tmp_path / "other.parquet")]) is None
    assert parts_of([]) == []


def test_large_bodies_make_small_batches_even_where_a_file_has_them_once(tmp_path: Path) -> None:
    body = b"x" * 200_000
    pq.write_table(records(range(ROWS), body), tmp_path / "a.parquet")
    (part,) = parts_of([str(tmp_path / "a.parquet")]) or []
    sizes = [batch.nbytes for batch in read(part, ("offset", "body"))]
    assert max(sizes) <= BATCH_BYTES * 1.1
    narrow = list(read(part, ("offset",)))
    assert [batch.num_rows for batch in narrow] == [ROWS]
