"""The archive with Spark's workers, as whole processes, and with containers that are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from archives import STREAM, DieOnce, append, archived, assert_no_orphan, assert_whole, create
from quick_java import OPTIONS
from system.served import COGWORK, READY_TIMEOUT_S, within

import cogwork.testing
from cogwork.archive import Archive, ArchiveError, Archiver, Settings
from cogwork.archive.origin import Origin
from cogwork.archive.work import Job
from cogwork.archive.workers import SparkWorkers
from cogwork.cli.main import run
from cogwork.cli.servers.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from cogwork.archive.archiver import Outcome
    from cogwork.archive.notice import Notice

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


def started(url: str, to: Path, *more: str) -> subprocess.Popen[str]:
    command = [*COGWORK, "pipeline", "archive", url, STREAM, "--to", str(to), *more]
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": OPTIONS}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def wait_for(told: IO[str] | None, text: str) -> None:
    """Waits for a line of a process; one that ends without it fails."""
    assert told is not None
    lines: list[str] = []
    for line in told:
        lines.append(line)
        if text in line:
            return
    raise AssertionError(f"no {text!r} in {lines}")


def test_kill_9_of_the_driver_with_its_spark(url: str, tmp_path: Path) -> None:
    process = started(url, tmp_path, "--master", "local[1]", "--every", "0.1")
    try:
        wait_for(process.stderr, f"{RECORDS} of {RECORDS} records archived")
        for number in range(5):
            append(url, range(number * 100, number * 100 + 100))
        wait_for(process.stderr, "records archived")
    finally:
        process.kill()
        process.communicate(timeout=15)
    outcome = archived(url, tmp_path)
    assert (outcome.start > RECORDS, outcome.mark) == (True, RECORDS + 500)
    assert_whole(url, tmp_path)
    assert_no_orphan(tmp_path)


def test_sigterm_ends_it_cleanly(url: str, tmp_path: Path) -> None:
    process = started(url, tmp_path, "--master", "none", "--every", "60", "--json")
    try:
        wait_for(process.stdout, f'"rows": {RECORDS}')
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=15) == ("", "")
    finally:
        process.kill()
    assert process.returncode == 0
    with Archive.open(str(tmp_path)) as archive:
        assert archive.mark(STREAM) == RECORDS
    assert_whole(url, tmp_path)


def test_kill_9_of_the_container(tmp_path: Path) -> None:
    """It comes back after a while, with the same records; the archiver has waited."""
    (port,) = free_ports(1)
    url, running = f"amqp://127.0.0.1:{port}", [serve(tmp_path, port)]

    def kill(notice: Notice) -> None:
        if notice.step == "planned" and notice.start == 100:
            running[0].kill()
            running[0].wait()
            running.append(serve(tmp_path, port, wait=False))

    try:
        create(url, engine="raft")
        append(url, range(RECORDS))
        outcome = archived(url, tmp_path / "archive", commit_rows=100, on_notice=kill)
        assert (outcome.rows, len(running)) == (RECORDS, 2)
        assert_whole(url, tmp_path / "archive")
        assert_no_orphan(tmp_path / "archive")
    finally:
        for process in running:
            process.kill()
            process.wait()


def serve(folder: Path, port: int, *, wait: bool = True) -> subprocess.Popen[bytes]:
    file = folder / "cogwork.toml"
    file.write_text(f'id = "a"\ndata_dir = "{folder / "data"}"\n[[listen]]\nport = {port}\n')
    process = subprocess.Popen(
        [*COGWORK, "serve", "--config", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if wait:
        within(READY_TIMEOUT_S, lambda: listens(port), "the container listens")
    return process


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def test_the_command_says_what_is_wrong(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ["--to", str(tmp_path), "--once", "--master", "none"]
    for arguments, code, line in (
        ([url, "nothing", *to], 6, "stream nothing: there is none of this name"),
        (["amqp://127.0.0.1:1", STREAM, *to], 4, "Connection refused"),
        ([url, STREAM, *to, "--every", "5"], 2, "exclude each other"),
        ([url, STREAM, *to, "--catalog-option", "x"], 2, "not of the form K=V"),
        ([url, STREAM, *to, "--to", "gopher://x"], 1, "no catalog that can be opened"),
    ):
        assert run(["pipeline", "archive", *arguments]) == code
        errors = capsys.readouterr().err
        assert line in errors
        assert errors.count("\n") == 1
    assert run(["pipeline", "archive", url, "stream/ord*", *to]) == 0
    told = capsys.readouterr()
    assert f"stream/{STREAM} archived up to {RECORDS}" in told.out
