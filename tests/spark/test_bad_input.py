"""What users do wrong, and what happens to them: each is one line that says where and what."""

from __future__ import annotations

import importlib.metadata
import json
from shutil import rmtree
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import archives
import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import cogwork.sync
import cogwork.testing
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.pipeline.archive import Archive
from cogwork.pipeline.arrow import ArrowClient
from cogwork.pipeline.spark.errors import JobFailed
from cogwork.pipeline.spark.job import run_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 100
TRIMMED = 40

READ = "source('orders', 'offset bigint', {options}).count()"

QUERY = """
import sys
rows = live({stream!r}, 'body binary', **{options!r})
query = live_sink(rows, 'stream/out', sys.argv[1], **{sink!r})
query.trigger(availableNow=True).start().awaitTermination()
"""


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        for name in ("orders", "others", "out"):
            archives.create(url, name)
        archives.append(url, range(ROWS), "orders")
        yield url


@pytest.fixture
def trimmed(url: str) -> str:
    archives.trim(url, TRIMMED, "orders")
    return url


def job(place: Path, text: str) -> str:
    file = place / "job.py"
    file.write_text(text)
    return str(file)


def read(options: str) -> str:
    return READ.format(options=options)


def query(stream: str = "orders", *, sink: dict[str, str] | None = None, **options: str) -> str:
    return QUERY.format(stream=stream, options=options, sink=sink or {})


def line_of(spark: SparkSession, url: str, place: Path, text: str) -> str:
    """Run a job that fails; return what its user sees, without the file's folder."""
    with pytest.raises(JobFailed) as caught:
        run_job(spark, job(place, text), [str(place / "checkpoint")], url)
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix(f"{place}/")


def count(url: str, stream: str) -> int:
    with ArrowClient(url) as client:
        first, following = client.bounds(stream)
        return following - first


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("source('nowhere').count()", "job.py:1: there is no stream nowhere"),
        (query("nowhere"), "job.py:5: there is no stream nowhere"),
        (
            "sink(source('orders', 'body binary'), 'stream/nowhere', transactionId='t')",
            "job.py:1: rows are not accepted: stream/nowhere: ",
        ),
        (
            read("startingOffsets='500'"),
            "job.py:1: stream orders: offset 500 is beyond its end, 100 (failOnDataLoss=false",
        ),
        (
            read("endingOffsets='500'"),
            "job.py:1: stream orders: offset 500 is beyond its end, 100 (failOnDataLoss=false",
        ),
        (
            query(startingOffsets="500"),
            "job.py:5: stream orders: offset 500 is beyond its end, 100 (failOnDataLoss=false",
        ),
        (read("startingOffsets='-1'"), "job.py:1: startingOffsets is earliest, latest, an offset"),
        (
            read("startingOffsets='{\"order\": 5}'"),
            "job.py:1: startingOffsets has an offset for the stream order, which is not read: ord",
        ),
    ],
)
def test_what_is_not_there_is_one_line(
    spark: SparkSession, url: str, tmp_path: Path, text: str, line: str
) -> None:
    assert line_of(spark, url, tmp_path, text).startswith(line)


def test_offsets_beyond_the_end_are_cut_where_that_is_wanted(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    text = "found = " + read("endingOffsets='500', failOnDataLoss='false'")
    run_job(spark, job(tmp_path, f"{text}\nassert found == 100, found\n"), [], url)


def test_trimmed_records_end_a_read_or_are_left_out(
    spark: SparkSession, trimmed: str, tmp_path: Path
) -> None:
    line = line_of(spark, trimmed, tmp_path, read("startingOffsets='0'"))
    assert line.startswith(
        "job.py:1: stream orders: the records from 0 to before 40 have been given up"
    )
    text = "found = " + read("startingOffsets='0', failOnDataLoss='false'")
    run_job(spark, job(tmp_path, f"{text}\nassert found == 60, found\n"), [], trimmed)


def test_records_that_are_trimmed_before_a_query_goes_on(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    checkpoint = [str(tmp_path / "checkpoint")]
    run_job(spark, job(tmp_path, query(startingOffsets="earliest")), checkpoint, url)
    archives.append(url, range(ROWS), "orders")
    archives.trim(url, ROWS + TRIMMED, "orders")
    line = line_of(spark, url, tmp_path, query())
    assert line.startswith("job.py:5: stream orders: the records from 100 to before 140 have been")
    assert count(url, "out") == ROWS
    run_job(spark, job(tmp_path, query(failOnDataLoss="false")), checkpoint, url)
    assert count(url, "out") == 2 * ROWS - TRIMMED


def test_a_checkpoint_that_was_deleted(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """All is read again; rows that say who they are come once all the same."""
    text = query(startingOffsets="earliest", sink={"idempotencyColumns": "body"})
    for _ in range(2):
        run_job(spark, job(tmp_path, text), [str(tmp_path / "checkpoint")], url)
        rmtree(tmp_path / "checkpoint")
    assert count(url, "out") == ROWS
    run_job(spark, job(tmp_path, query(startingOffsets="latest")), [str(tmp_path / "c")], url)
    assert count(url, "out") == ROWS


def test_a_checkpoint_of_another_query(spark: SparkSession, url: str, tmp_path: Path) -> None:
    checkpoint = [str(tmp_path / "checkpoint")]
    run_job(spark, job(tmp_path, query(startingOffsets="earliest")), checkpoint, url)
    assert line_of(spark, url, tmp_path, query("others")) == (
        "job.py:5: the checkpoint is another query's: it has a place in the stream orders, and "
        "this one reads others"
    )


class Query:
    """Goes on for good, or fails: in which order Spark has its own, no test knows."""

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 # Spark's name
        if self._fails:
            raise ValueError("there is no stream nowhere")
        assert timeout is not None, "this one never ends"
        return False


def test_a_query_that_fails_ends_the_job_beside_one_that_goes_on(tmp_path: Path) -> None:
    queries = [Query(fails=False), Query(fails=True)]
    spark: Any = SimpleNamespace(streams=SimpleNamespace(active=queries))
    with pytest.raises(JobFailed, match="there is no stream nowhere"):
        run_job(spark, job(tmp_path, ""), [], "amqp://localhost")


def test_a_table_of_another_stream(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Archive.open(str(tmp_path / "archive"), make=True) as archive:
        archive.make_table("orders", 0).set_properties({"cogwork.stream": "sales"})
    words = ["pipeline", "archive", url, "orders", "--to", str(tmp_path / "archive"), "--once"]
    assert run([*words, "--master", "none"]) == ExitCode.ERROR
    assert capsys.readouterr().err == (
        f"cogwork: table cogwork.orders in {tmp_path}/archive is that of stream/sales\n"
    )


def test_bodies_that_are_none_by_the_schema_are_kept_counted_and_listed(
    spark: SparkSession, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "flight.json"
    schema.write_text(json.dumps({"type": "object", "required": ["carrier"]}))
    archives.create(url, "flights")
    with cogwork.sync.connect(url) as mesh:
        for body in (b'{"carrier": "AA"}', b"{}", b"no JSON at all"):
            mesh.publish("stream/flights", body, content_type="application/json")
    assert run(["schema", "register", url, "stream/flights", str(schema)]) == ExitCode.OK
    capsys.readouterr()
    to = str(tmp_path / "archive")
    words = ["pipeline", "archive", url, "flights", "--to", to, "--once", "--master", "none"]
    assert run(words) == ExitCode.OK
    told = capsys.readouterr()
    assert "3 records in 1 commit, 2 do not match its schema" in told.out
    listed = [line for line in told.err.splitlines() if "does not match its schema" in line]
    assert [line.split(" does not")[0] for line in listed] == [
        "cogwork: stream/flights record 1",
        "cogwork: stream/flights record 2",
    ]
    with Archive.open(to) as archive:
        bodies = spark.read.parquet(*archive.files("flights")).select("body").collect()
    assert [bytes(row.body) for row in bodies] == [b'{"carrier": "AA"}', b"{}", b"no JSON at all"]


@pytest.mark.parametrize("command", ["run", "archive", "audit", "analytics"])
def test_pandas_3_is_one_line_at_the_command_line(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    Archive.open(str(tmp_path / "archive"), make=True).close()
    words = {
        "run": [job(tmp_path, "")],
        "archive": [url, "orders", "--to", str(tmp_path / "archive"), "--once"],
    }.get(command, ["--archive", str(tmp_path / "archive")])
    versions = {"pyspark": "4.3.0", "pyarrow": "20.0", "pandas": "3.0.1"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    assert run(["pipeline", command, *words]) == ExitCode.ERROR
    assert capsys.readouterr().err == (
        "cogwork: pandas 3.0.1 is installed, and PySpark works with pandas 2: "
        "pip install 'pandas<3'\n"
    )


@pytest.mark.parametrize("command", ["audit", "analytics"])
def test_what_a_report_lacks_is_told_before_spark_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    def open_session(*_: object, **__: object) -> None:
        pytest.fail("there is no need for Spark")

    monkeypatch.setattr("cogwork.pipeline.spark.session.open_session", open_session)
    Archive.open(str(tmp_path / "archive"), make=True).close()
    words = ["pipeline", command, "--archive", str(tmp_path / "archive")]
    assert run([*words, "--html", str(tmp_path / "no" / "page.html")]) == ExitCode.USAGE
    assert f"'--html': there is no directory '{tmp_path}/no'" in capsys.readouterr().err
    if command == "audit":
        assert run([*words, "--stream", "nowhere"]) != ExitCode.OK
        assert "stream/nowhere has no table in this archive" in capsys.readouterr().err


def test_an_archiver_has_one_place_for_its_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "archive", "amqp://localhost", "orders", "--to", str(tmp_path), "--once"]
    assert run([*words, "--master", "none", "--remote", "sc://h"]) == ExitCode.USAGE
    assert "--master and --remote exclude each other" in capsys.readouterr().err
