"""The archive without Spark: what gets in, how it is kept, and everything that is refused."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

pytest.importorskip("pyiceberg", reason="the extra [spark] is not installed")

import archives
from archives import STREAM, append, archived, assert_no_orphan, assert_whole, create, trim
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from rich.console import Console

import cogwork.sync
import cogwork.testing
from cogwork.cli.commands.pipelines.bars import Bars
from cogwork.pipeline.archive import Archive, layout
from cogwork.pipeline.archive.catalog import open_catalog
from cogwork.pipeline.archive.errors import (
    ArchiveMissing,
    CatalogError,
    DataLost,
    ForeignTable,
    PlaceTaken,
    StreamMadeAnew,
    TableMissing,
)
from cogwork.pipeline.archive.notice import Notice
from cogwork.pipeline.archive.origin import Origin
from cogwork.pipeline.archive.reading import offset_at, read
from cogwork.pipeline.archive.upkeep import Upkeep, compact, expire, keep, sweep
from cogwork.pipeline.archive.work import DAY_US, Job, _days_of, _Files
from cogwork.pipeline.arrow import ArrowClient, UnknownStream, schema_of
from cogwork.pipeline.audit.reading import parts_of
from cogwork.pipeline.audit.reading import read as read_part

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        create(url)
        append(url, range(300))
        yield url


def test_what_is_archived_is_what_the_stream_has(url: str, tmp_path: Path) -> None:
    outcome = archived(url, tmp_path, commit_rows=100)
    assert (outcome.rows, outcome.commits, outcome.mark) == (300, 3, 300)
    assert_whole(url, tmp_path)
    append(url, range(300, 310))
    outcome = archived(url, tmp_path)
    assert (outcome.start, outcome.rows, outcome.commits) == (300, 10, 1)
    assert_whole(url, tmp_path)
    assert archived(url, tmp_path).commits == 0
    with Archive.open(str(tmp_path)) as archive:
        assert archive.tables() == [STREAM]
        table = archive.table(STREAM)
        snapshot = table.table.current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        said = snapshot.summary.additional_properties
        assert (said[layout.STREAM], said[layout.NEXT]) == (STREAM, "310")
        assert (archive.mark(STREAM), table.first) == (310, 0)
        assert ds.dataset(archive.files(STREAM)).count_rows() == 310
        assert ds.dataset(archive.files(STREAM)).schema.equals(schema_of(None))
        parts = parts_of(archive.files(STREAM)) or []
        audited = [
            at for part in parts for batch in read_part(part, ("offset",)) for at in batch[0]
        ]
        assert [at.as_py() for at in audited] == list(range(310))


def test_small_files_become_one(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path, commit_rows=40)
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table(STREAM)
        before = archives.digest(table.table.scan().to_arrow())
        went, came = compact(table, archives.TIGHT)
        assert (went >= 8, came, len(archive.files(STREAM))) == (True, 1, 1)
        assert archives.digest(table.table.scan().to_arrow()) == before
        assert table.mark == 300, "compaction's snapshots have the mark, too"
        assert expire(table, archives.TIGHT) >= 8
        assert len(table.table.snapshots()) == 1
        assert keep(table, archives.TIGHT).swept >= 8
    assert_no_orphan(tmp_path)
    assert archived(url, tmp_path).commits == 0
    append(url, range(10))
    archived(url, tmp_path)
    assert_whole(url, tmp_path)


def test_a_file_ends_where_the_day_does() -> None:
    times = [DAY_US - 2, DAY_US - 1, DAY_US, DAY_US + 5, 4 * DAY_US]
    columns = {"time": pa.array(times, pa.timestamp("us", tz="UTC")), "n": pa.array(range(5))}
    parts = [
        (part.column("n").to_pylist(), day)
        for part, day in _days_of(pa.RecordBatch.from_pydict(columns))
    ]
    assert parts == [([0, 1], 0), ([2, 3], 1), ([4], 4)]


def test_each_day_is_a_partition(url: str, tmp_path: Path) -> None:
    """Records of two days, as a job writes them; compaction keeps the days apart."""
    stored = archives.records(url).combine_chunks().to_batches()[0]
    times = pa.array([DAY_US - 150 + n for n in range(300)], pa.timestamp("us", tz="UTC"))
    batch = stored.set_column(2, "time", times)
    with Archive.open(str(tmp_path), make=True) as archive:
        table = archive.make_table(STREAM, 0)
        for start in range(0, 300, 50):
            job = Job(url, STREAM, table.file_prefix, table.location, {}, start, start + 50)
            files = _Files(job, lambda _step: None)
            for part, day in _days_of(batch.slice(start, 50)):
                files.write(part, day)
            files.close()
            said = {layout.ATTEMPT: f"a{start}", layout.SEAM: "0:0"}
            table.append(start, start + 50, files.paths, said)
        assert compact(table, archives.TIGHT) == (6, 2)
        assert [(file.first, file.last) for file in table.files()] == [(0, 149), (150, 299)]
        assert ["1970-01-01" in path for path in archive.files(STREAM)] == [True, False]
        found = table.table.scan().to_arrow().sort_by("offset")
        assert found.equals(pa.Table.from_batches([batch]))
        assert offset_at(table, DAY_US) == 150
        later = table.files("time >= '1970-01-02T00:00:00+00:00'")
        assert [file.first for file in later] == [150], "a day that is not asked for is not read"


def test_reading_back_a_part(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path, commit_rows=70)
    stored = archives.records(url).slice(60, 100)
    moment = stored.column("time")[0].value
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table(STREAM)
        found = pa.Table.from_batches(list(read(table, 60, 160)))
        assert found.equals(stored)
        at = offset_at(table, moment)
        assert archives.records(url).column("time")[at].value == moment
        assert at == 0 or archives.records(url).column("time")[at - 1].value < moment
        assert offset_at(table, int(time.time() * 1e6) + 10**9) == 300


def test_names_of_tables() -> None:
    assert layout.table_name_of("orders_2") == "orders_2"
    names = {layout.table_name_of(name) for name in ("a.b", "a_b", "a-b", "$telemetry", "x" * 90)}
    assert len(names) == 5
    assert all(name.isidentifier() and len(name) <= 64 for name in names)


def test_which_streams_are_meant(url: str) -> None:
    for name in ("orders.eu", "sales", "$own"):
        create(url, name)
    with Origin(url) as origin:
        assert origin.streams(["stream/orders", "ord*"]) == ["orders", "orders.eu"]
        assert origin.streams(["*"]) == ["orders", "orders.eu", "sales"]
        assert origin.streams(["$o*"]) == ["$own"]
        with pytest.raises(UnknownStream):
            origin.streams(["orders", "x*"])


def test_retention_is_handed_back(url: str, tmp_path: Path) -> None:
    outcome = archived(url, tmp_path, trim_after=True)
    assert outcome.trimmed is not None
    append(url, range(300, 320))
    outcome = archived(url, tmp_path, trim_after=True)
    assert (outcome.rows, outcome.lost, outcome.mark) == (20, 0, 320)
    with Archive.open(str(tmp_path)) as archive:
        assert ds.dataset(archive.files(STREAM)).count_rows() == 320


def test_a_stream_that_is_empty_by_now_has_lost_what_was_not_archived(
    url: str, tmp_path: Path
) -> None:
    archived(url, tmp_path)
    append(url, range(300, 400))
    with Origin(url, timeout_s=5) as origin:
        assert origin.trim(STREAM, 400) == 400
    with pytest.raises(DataLost, match="given up its records from 300 to before 400"):
        archived(url, tmp_path)


def test_records_that_were_given_up(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path)
    append(url, range(300, 400))
    trim(url, 350)
    with ArrowClient(url) as client:
        first = client.bounds(STREAM).first
    assert first > 300, "the engine has given them up"
    with pytest.raises(DataLost, match=f"given up its records from 300 to before {first}"):
        archived(url, tmp_path)
    told: list[Notice] = []
    outcome = archived(url, tmp_path, fail_on_data_loss=False, on_notice=told.append)
    assert (outcome.lost, outcome.rows, outcome.mark) == (first - 300, 400 - first, 400)
    assert [(each.start, each.end) for each in told if each.step == "lost"] == [(300, first)]
    with Archive.open(str(tmp_path)) as archive:
        assert ds.dataset(archive.files(STREAM)).count_rows() == 300 + 400 - first


@pytest.mark.parametrize("again", [10, 300, 500])
def test_a_stream_that_was_made_anew(url: str, tmp_path: Path, again: int) -> None:
    archived(url, tmp_path)
    archives.delete(url)
    create(url)
    append(url, range(1000, 1000 + again))
    with pytest.raises(StreamMadeAnew, match="was deleted and made anew"):
        archived(url, tmp_path)
    with Archive.open(str(tmp_path)) as archive:
        assert archive.mark(STREAM) == 300


def test_a_table_of_another_stream(url: str, tmp_path: Path) -> None:
    create(url, "other")
    with Archive.open(str(tmp_path), make=True) as archive:
        archive.make_table(STREAM, 0).set_properties({layout.STREAM: "sales"})
    with pytest.raises(ForeignTable, match=r"table cogwork.orders in .* is that of stream/sales"):
        archived(url, tmp_path)
    catalog = open_catalog(str(tmp_path), make=True)
    field = NestedField(field_id=1, name="n", field_type=LongType(), required=False)
    catalog.create_table((layout.NAMESPACE, "other"), Schema(field))
    with pytest.raises(ForeignTable, match=r"table cogwork.other in .* was not made by an archive"):
        archived(url, tmp_path, name="other")
    catalog.close()


def test_what_is_not_there(url: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownStream, match="none"):
        archived(url, tmp_path, name="none")
    with pytest.raises(ArchiveMissing, match="is no archive"):
        Archive.open(str(tmp_path / "nothing"))
    with pytest.raises(CatalogError, match="no catalog that can be opened"):
        Archive.open("gopher://x")
    with Archive.open(str(tmp_path / "empty"), make=True) as archive:
        assert archive.tables() == []
        with pytest.raises(TableMissing, match="has no table of stream/orders"):
            archive.files(STREAM)


def test_a_catalog_by_its_uri(url: str, tmp_path: Path) -> None:
    """Any catalog of pyiceberg: here one in a database, with the warehouse as an option."""
    uri = f"sqlite:///{tmp_path / 'any.db'}"
    warehouse = {"warehouse": (tmp_path / "house").as_uri()}
    with Archive.open(uri, warehouse, make=True) as archive:
        table = archive.make_table(STREAM, 0)
        assert table.location.startswith(warehouse["warehouse"])
    with Archive.open(uri, warehouse) as archive:
        assert archive.tables() == [STREAM]


def test_bodies_that_are_none_by_the_schema(url: str, tmp_path: Path) -> None:
    create(url, "checked")
    with cogwork.sync.connect(url) as mesh:
        mesh.schemas.register("stream/checked", {"type": "object", "required": ["id"]})
        bodies = [b'{"id": %d}' % n for n in range(10)]
        bodies[3], bodies[7] = b"{}", b"no JSON"
        mesh.stream("checked").append(bodies)
    outcome = archived(url, tmp_path, name="checked")
    assert outcome.mismatched == 2
    assert [offset for offset, _ in outcome.mismatches] == [3, 7]
    assert "id" in outcome.mismatches[0][1]
    assert_whole(url, tmp_path, "checked")
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table("checked")
        assert (table.mismatched, table.mismatched_offsets()) == (2, [3, 7])
        (kept,) = json.loads(table.properties[layout.SCHEMA])
        assert (kept["address"], kept["version"]) == ("stream/checked", 1)
        keep(table, archives.TIGHT)
        assert table.mismatched == 2


def test_bars_on_a_terminal_and_lines_elsewhere() -> None:
    steps = [
        Notice("opened", STREAM, 100, 300),
        Notice("lost", STREAM, 100, 110, 10),
        Notice("committed", STREAM, 110, 200, 90),
        Notice("compacted", STREAM, 0, 200, 5),
    ]
    for is_terminal in (True, False):
        output = io.StringIO()
        screen = Console(file=output, force_terminal=is_terminal, width=100)
        with Bars(screen=screen) as bars:
            for step in steps:
                bars.on_notice(step)
            bars.advance(STREAM, 1, 2)
            bars.advance("stream/a[/b]", 1, 2)
        told = output.getvalue()
        assert "stream/orders has deleted records 100 to 109 before they were archived" in told
        assert "merged 5 small files into one" in told
        assert ("stream/orders: 100 of 200 records archived" in told) == (not is_terminal)
        assert ("\x1b" in told) == is_terminal
        assert ("stream/a[/b]" in told) == is_terminal


def lose_catalog(to: Path) -> None:
    """The catalog's database is gone; the tables' files are there."""
    (to / "catalog.db").unlink()


def test_a_new_table_is_refused_where_another_one_lies_and_takes_it_over_if_told_to(
    url: str, tmp_path: Path
) -> None:
    assert archived(url, tmp_path).rows == 300
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    lose_catalog(tmp_path)
    for _ in range(2):
        with pytest.raises(PlaceTaken, match="--adopt"):
            archived(url, tmp_path)
    assert all(path.exists() for path in before)
    assert archived(url, tmp_path, adopt=True).rows == 0
    assert_whole(url, tmp_path)
    archives.assert_no_orphan(tmp_path)


def test_a_sweep_leaves_alone_what_another_table_has_in_the_same_folder(
    url: str, tmp_path: Path
) -> None:
    assert archived(url, tmp_path).rows == 300
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table(STREAM)
        folder = Path(table.location.removeprefix("file://"))
        theirs = [
            folder / "data" / layout.file_name_of(f"{table.name}-{'0' * 12}", 0, 10, "a"),
            folder / "data" / layout.file_name_of(table.name, 0, 10, "earlier"),
            folder / "metadata" / "00001-theirs.metadata.json",
            folder / "metadata" / "snap-1-theirs.avro",
        ]
        ours = folder / "data" / layout.file_name_of(table.file_prefix, 0, 10, "a")
        for path in (*theirs, ours):
            path.write_bytes(b"{}")
        young = Upkeep()
        assert sweep(table, young) == 0
        assert sweep(table, archives.TIGHT) == 1
        assert not ours.exists()
        assert all(path.exists() for path in theirs)
