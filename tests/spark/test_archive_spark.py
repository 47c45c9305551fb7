"""The archive with Spark's workers, one of which is killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from archives import STREAM, DieOnce, append, assert_no_orphan, assert_whole, create

import cogwork.testing
from cogwork.pipeline.archive import Archive, ArchiveError, Archiver, Settings
from cogwork.pipeline.archive.origin import Origin
from cogwork.pipeline.archive.work import Job
from cogwork.pipeline.archive.workers import SparkWorkers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from cogwork.pipeline.archive.archiver import Outcome

RECORDS = 400


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        create(url)
        append(url, range(RECORDS))
        yield url


def archived_by_spark(spark: SparkSession, url: str, to: Path) -> Outcome:
    with Origin(url, timeout_s=30) as origin, Archive.open(str(to), make=True) as archive:
        workers = SparkWorkers(spark)
        return Archiver(origin, archive, workers, Settings(commit_rows=RECORDS // 2)).run(STREAM)


def test_spark_writes_and_reads_back(spark: SparkSession, url: str, tmp_path: Path) -> None:
    outcome = archived_by_spark(spark, url, tmp_path)
    assert (outcome.rows, outcome.commits) == (RECORDS, 2)
    assert_whole(url, tmp_path)
    with Archive.open(str(tmp_path)) as archive:
        found = spark.read.parquet(*archive.files(STREAM))
    found.createOrReplaceTempView("archived")
    sql = """
        SELECT count(*), count(DISTINCT offset), min(offset), max(offset),
               bit_xor(xxhash64(offset, time, producer, sequence, subject, body))
        FROM {table}
    """
    by_source = spark.read.format("cogwork").option("url", url).option("stream", STREAM).load()
    by_source.createOrReplaceTempView("streamed")
    archive_row, stream_row = (
        tuple(spark.sql(sql.format(table=table)).first() or ())
        for table in ("archived", "streamed")
    )
    assert archive_row == stream_row
    assert archive_row[:4] == (RECORDS, RECORDS, 0, RECORDS - 1)


def test_kill_9_of_a_worker_in_the_middle_of_a_file(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """This session tries no task again: the archiver ends with one line, and goes on later."""
    to = tmp_path / "archive"
    with Origin(url) as origin, Archive.open(str(to), make=True) as archive:
        workers = SparkWorkers(spark, DieOnce(tmp_path / "died"))
        archiver = Archiver(origin, archive, workers, Settings(commit_rows=RECORDS // 2))
        with pytest.raises(ArchiveError, match="a Python worker was lost") as raised:
            archiver.run(STREAM)
        assert (tmp_path / "died").exists(), str(raised.value)
        assert archive.mark(STREAM) == 0
        folder = Path(archive.table(STREAM).location.removeprefix("file://"))
    assert list(folder.rglob("*.parquet")), "half a file is left"
    assert archived_by_spark(spark, url, to).rows == RECORDS
    assert_whole(url, to)
    assert_no_orphan(to)


def test_what_a_worker_raises_is_one_line(spark: SparkSession, url: str, tmp_path: Path) -> None:
    with Origin(url) as origin, Archive.open(str(tmp_path), make=True) as archive:
        table = archive.make_table(STREAM, 0)
        part = Job(url, STREAM, table.name, table.location, {}, 0, RECORDS + 5, timeout_s=20)
        with pytest.raises(ArchiveError) as raised:
            SparkWorkers(spark).write([part])
        assert origin.bounds(STREAM).next == RECORDS
    assert f"its records end before offset {RECORDS}" in str(raised.value)
    assert "\n" not in str(raised.value)
