"""The pipeline's commands with `--remote`, on a Spark Connect server of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("grpc", reason="the extra [spark] is not installed")

from archives import assert_no_orphan, assert_whole
from spark_clusters import HERE, command, connect_server, environment

import cogwork.sync
import cogwork.testing
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.manager import Manager
from cogwork.pipeline.arrow.loop_thread import loop_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES = ("in", "out", "again", "copies")

STREAMS = "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in NAMES)

ROWS = 1000

WAIT_S = 120.0

COMMAND = (sys.executable, "-m", "cogwork.cli.main")

CONSUMER = "org.cogwork.consumer"


def rows_of(url: str, kind: str) -> list[dict[str, Any]]:
    """Return what a container tells of its consumers, or of its connections."""

    async def ask() -> list[dict[str, Any]]:
        async with cogwork.connect(url) as client:
            return (await Manager(client).rows(kind))[0]

    return loop_thread().wait(ask())


def wait_until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def is_gone(process: int) -> bool:
    """Return whether a process has ended, be it that nobody has asked how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAMS) as url:
        with cogwork.sync.connect(url) as client:
            client.stream("in").append([b"%d" % number for number in range(ROWS)])
        yield url


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_a_job_runs_unchanged_over_spark_connect(server: str, url: str, tmp_path: Path) -> None:
    status = (*COMMAND, "status", url, "--json")
    job = (str(HERE / "connect_job.py"), str(tmp_path / "checkpoint"), *status)
    told = command("pipeline", "run", "--url", url, "--remote", server, *job, place=tmp_path)
    assert told == f"{ROWS} of pyspark.sql.connect.session\n"


FAILING = """
import time

def bad(batches):
    raise ValueError("in a task")
    yield from batches

rows = spark.readStream.format("rate").load()
query = rows.mapInArrow(bad, rows.schema).writeStream.format("noop").start()
while query.isActive:
    time.sleep(0.1)
"""


@pytest.mark.timeout(400)
@pytest.mark.soak
def test_a_query_that_fails_unseen_fails_the_job_over_spark_connect(
    server: str, tmp_path: Path
) -> None:
    job = tmp_path / "job.py"
    for asked, error in (
        ("", f"cogwork: {job}:5: ValueError: in a task\n"),
        ("assert 'in a task' in str(query.exception())\n", ""),
    ):
        job.write_text(FAILING + asked)
        done = subprocess.run(
            [*COMMAND, "pipeline", "run", "--remote", server, str(job)],
            env=environment(tmp_path),
            check=False,
            capture_output=True,
            text=True,
        )
        assert (done.stderr, done.returncode) == (error, ExitCode.ERROR if error else ExitCode.OK)


@pytest.mark.timeout(400)
@pytest.mark.soak
def test_an_archive_is_written_and_audited_over_spark_connect(
    server: str, url: str, tmp_path: Path
) -> None:
    to, remote = str(tmp_path / "archive"), ("--remote", server, "--json")
    words = ("pipeline", "archive", url, "in", "--to", to, "--once")
    (row,) = json.loads(command(*words, *remote, place=tmp_path))["streams"]
    assert (row["rows"], row["mark"]) == (ROWS, ROWS)
    assert_whole(url, tmp_path / "archive", "in")
    assert_no_orphan(tmp_path / "archive", "in")
    report = json.loads(command("pipeline", "audit", "--archive", to, *remote, place=tmp_path))
    assert [check["verdict"] for check in report["checks"]] == ["holds"] * 3


@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform != "linux", reason="the worker is looked for in /proc")
@pytest.mark.soak
def test_ctrl_c_ends_what_runs_at_the_server(server: str, url: str, tmp_path: Path) -> None:
    options = ("--url", url, "--remote", server, "--json")
    running = subprocess.Popen(
        [
            *(*COMMAND, "pipeline", "run", *options),
            *(str(HERE / "interrupted_job.py"), str(tmp_path)),
        ],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    worker = tmp_path / "worker"
    with running:
        wait_until(lambda: any(each["position"] == ROWS for each in rows_of(url, CONSUMER)))
        wait_until(lambda: worker.exists() and worker.read_text() != "")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        out, err = running.communicate(timeout=WAIT_S)
    assert running.returncode == ExitCode.INTERRUPTED
    assert err.strip() == "begun"
    told = json.loads(out)
    assert (told["exit_code"], told["error"]) == (ExitCode.INTERRUPTED, "interrupted")
    (query,) = told["queries"]
    assert (query["query"], query["rows"]) == ("copier", ROWS)
    wait_until(lambda: is_gone(int(worker.read_text())))
    wait_until(lambda: rows_of(url, CONSUMER) == [])
    wait_until(lambda: len(rows_of(url, "connection")) == 1)
